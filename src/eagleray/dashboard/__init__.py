"""Ray's HTTP API, and the poller that keeps it out of reconcile."""
