"""Runs Ray on Kubernetes, and on a machine without one."""

__version__ = "0.1.0"
