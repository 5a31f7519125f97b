"""Nodes: where Pods run. They reach the cluster through the Kubernetes API alone."""
