"""A Kubernetes with Ray's operator on this machine: started, kept, and told what to run."""
