"""A Kubernetes in one process; knows nothing of Ray."""
