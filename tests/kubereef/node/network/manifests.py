"""Services and EndpointSlices to test with."""


def service(name="web", *, namespace="default", ip="10.96.0.10", ports=None, **spec):
    """A ClusterIP Service with one unnamed port, unless told otherwise."""
    spec.setdefault("clusterIP", ip)
    spec.setdefault("ports", [{"port": 80}] if ports is None else ports)
    return {"metadata": {"namespace": namespace, "name": name}, "spec": spec}


def headless(name="peers", **spec):
    """A Service without an address of its own."""
    return service(name, ip="None", **spec)


def endpoint(address, *, ready=True, serving=None, terminating=False, hostname=None):
    """An endpoint, ready unless told otherwise."""
    conditions = {"ready": ready, "terminating": terminating}
    if serving is not None:
        conditions["serving"] = serving
    return {"addresses": [address], "conditions": conditions} | ({"hostname": hostname} if hostname else {})


def endpoint_slice(of, *endpoints, name=None, namespace="default", ports=None, kind="IPv4"):
    """A slice of a Service's endpoints, at port 8080 unless told otherwise."""
    return {
        "metadata": {
            "namespace": namespace,
            "name": name or f"{of}-1",
            "labels": {"kubernetes.io/service-name": of},
        },
        "addressType": kind,
        "ports": [{"port": 8080}] if ports is None else ports,
        "endpoints": [one if isinstance(one, dict) else endpoint(one) for one in endpoints],
    }
