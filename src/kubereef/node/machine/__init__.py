"""A whole node: its process, its network, its place in the cluster.

Outside, in Kubereef's process, `launch.Node` starts it and is the way to it. Inside, `program.run` puts it together:

- `client` speaks to the API server, through a relay that ends in a unix socket outside.
- `networking` is the bridge with DNS, Services and the way out; `following` keeps it up to date.
- `registration` says that the node is there, with the `capacity` of this machine.
- `hostimages` pulls images where the package index can be reached.
"""
