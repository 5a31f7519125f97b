"""The RayJob controller: a state machine, declared as data, over what the cluster and Ray say."""
