"""Gateways: requests from a Gateway's address to Services, by hostname, path, header and weight (Gateway API).

- `definitions` and `install` bring the kinds, the GatewayClass and the rights of the data plane into a cluster.
- `reading` and `attachment` say what Gateways and HTTPRoutes mean: pure functions that both sides below use.
- `statuses` and `controller` are the control side, in Kubereef's process: conditions, and an address for each Gateway.
- `table`, `balance` and `filters` are what the data plane decides by; `proxy` carries the requests; `dataplane` runs
  in the node and follows the API, so that an endpoint that leaves gets no request more.
"""
