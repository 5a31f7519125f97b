"""The kubelet's own HTTPS API: logs, exec, attach, port-forward, and what the node runs.

`server` is the front door (TLS, access, routes). `logs` reads log files. exec and attach are in `remote`, port-forward
is in `portforward`; both speak to clients through `conversations` and `spdysession`, over WebSockets or an upgraded
connection (`upgrades`). `access` asks the API server who a client is and what it may do.
"""

PORT = 10250
"""Where a kubelet is reached at its node's address."""
