"""A whole node: its process, its network, its place in the cluster.

Outside, in Kubereef's process or one of its own, `launch.Node` starts it and is the way to it. `controlplane` is what
it belongs to: Kubereef's own API server, or with `joining` that of another cluster, which a `kubeconfig` leads to;
`keys` are the files by which they know each other. Inside, `program.run` puts it together:

- `client` speaks to the API server, through a relay that ends in a unix socket outside.
- `networking` is the bridge with DNS, Services and the way out; `following` keeps it up to date.
- `registration` says that the node is there, with the `capacity` of this machine.
- `hostimages` pulls images where the package index can be reached.
"""
