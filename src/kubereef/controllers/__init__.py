"""The controllers of the cluster: each brings what is towards what is wanted, through the API."""
