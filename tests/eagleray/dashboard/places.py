"""Addresses that tests speak of."""

from eagleray.dashboard.address import head_address
from eagleray.dashboard.orders import Owner
from eagleray.kube.resources import Key


def head_service(name="demo-head-svc", namespace="default", ports=({"name": "dashboard", "port": 8265},)):
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"ports": list(ports)}}


def place(name="demo", namespace="default", secret=""):
    """Return the address of the dashboard of a cluster."""
    return head_address(head_service(f"{name}-head-svc", namespace), domain="cluster.local", secret=secret)


def rayjob(name="job", namespace="default"):
    return Owner("RayJob", Key(namespace, name))
