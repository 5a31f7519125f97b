"""The network of a node: links of Pods, names, Services, and the ways in and out.

Everything here runs inside the node's own network namespace and ends with it. The parts know nothing of each other's
use; whoever runs the node puts them together:

- `probe` tells what the kernel allows.
- `Links` makes the bridge and connects Pods to it; `AddressPool` says which address a Pod gets.
- `ServiceSpace` is where the addresses of Services live; `ServiceProxy` serves them from their endpoints.
- `Records`, `Answers`, `Forwarder` and `DnsServer` are the cluster's DNS.
- `Outbound` is the way out for Pods, `Gate` with `LoopbackPort` the way in for the host, and `Relay` carries
  connections from inside to a unix socket.
- `pod_resolution`, `pod_hosts` and `pod_names` say what a Pod finds in /etc/resolv.conf and /etc/hosts.
"""

from kubereef.node.network.abilities import NetworkAbilities, probe
from kubereef.node.network.dns.answers import Answers
from kubereef.node.network.dns.forwarding import Forwarder, Upstream
from kubereef.node.network.dns.records import Records
from kubereef.node.network.dns.server import DnsServer
from kubereef.node.network.forward import Gate, LoopbackPort, open_through
from kubereef.node.network.httpproxy import HttpProxy
from kubereef.node.network.ipam import AddressPool, NoFreeAddress
from kubereef.node.network.links import LinkFailed, Links, PodLink, Route
from kubereef.node.network.namespaces import (
    Namespace,
    NamespaceThreads,
    Sockets,
    SocketsHere,
    SocketsThere,
    namespace_of,
)
from kubereef.node.network.nftables import NfTablesUnavailable
from kubereef.node.network.outbound import Outbound, Way, best_way
from kubereef.node.network.outside import NotReached
from kubereef.node.network.proxy.rules import Listener
from kubereef.node.network.proxy.service import NoClaims, Places, ServiceProxy
from kubereef.node.network.relay import (
    NotForwarded,
    Relay,
    connect_tcp,
    connect_unix,
    listen_tcp,
    listen_unix,
)
from kubereef.node.network.resolv import (
    BadHostname,
    PodNames,
    Resolution,
    pod_hosts,
    pod_names,
    pod_resolution,
    read_resolution,
    write_resolution,
)
from kubereef.node.network.servicespace import ServiceSpace

__all__ = [
    "AddressPool",
    "Answers",
    "BadHostname",
    "DnsServer",
    "Forwarder",
    "Gate",
    "HttpProxy",
    "LinkFailed",
    "Links",
    "Listener",
    "LoopbackPort",
    "Namespace",
    "NamespaceThreads",
    "NetworkAbilities",
    "NfTablesUnavailable",
    "NoClaims",
    "NoFreeAddress",
    "NotForwarded",
    "NotReached",
    "Outbound",
    "Places",
    "PodLink",
    "PodNames",
    "Records",
    "Relay",
    "Resolution",
    "Route",
    "ServiceProxy",
    "ServiceSpace",
    "Sockets",
    "SocketsHere",
    "SocketsThere",
    "Upstream",
    "Way",
    "best_way",
    "connect_tcp",
    "connect_unix",
    "listen_tcp",
    "listen_unix",
    "namespace_of",
    "open_through",
    "pod_hosts",
    "pod_names",
    "pod_resolution",
    "probe",
    "read_resolution",
    "write_resolution",
]
