"""Batch schedulers: what each wants of a Ray object before its Pods exist, behind one small interface."""
