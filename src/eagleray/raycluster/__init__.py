"""The RayCluster controller: observe, plan, act."""
