"""An HTTP/1.1 proxy that drops nothing it need not drop.

- `heads` and `bodies` read messages strictly: what could be read in two ways is refused.
- `wire` is one connection with bounded buffers, `pool` keeps those to endpoints.
- `exchange` carries one request to one of several endpoints, and once more where that is safe.
- `server` takes clients' connections and ends in good order.
"""
