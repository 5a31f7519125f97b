"""The operator's way to a cluster: requests, transports, credentials, a client, and informers."""
