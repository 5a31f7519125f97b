"""What a node follows, told one object at a time."""

from kubereef.node.machine.following import ObjectSink, Selected, service_sinks


def named(name, namespace="default"):
    return {"metadata": {"namespace": namespace, "name": name}}


class Listener:
    def __init__(self):
        self.heard = []

    def apply_service(self, service):
        self.heard.append(("service", service["metadata"]["name"]))

    def remove_service(self, namespace, name):
        self.heard.append(("no service", f"{namespace}/{name}"))

    def apply_slice(self, endpoint_slice):
        self.heard.append(("slice", endpoint_slice["metadata"]["name"]))

    def remove_slice(self, namespace, name):
        self.heard.append(("no slice", f"{namespace}/{name}"))


def test_a_list_removes_what_is_not_in_it():
    heard = []
    sink = ObjectSink(lambda obj: heard.append(obj["metadata"]["name"]), lambda *key: heard.append(key))
    sink.replace([named("a"), named("b")], 1)
    sink.apply("ADDED", named("c"), 2)
    sink.apply("DELETED", named("b"), 3)
    heard.clear()
    sink.replace([named("c")], 4)
    assert heard == [("default", "a"), "c"]


def test_services_and_slices_are_told_to_everybody():
    one, two = Listener(), Listener()
    services, slices = service_sinks(one, two)
    services.apply("ADDED", named("web"), 1)
    slices.apply("MODIFIED", named("web-x"), 2)
    services.apply("DELETED", named("web"), 3)
    slices.apply("DELETED", named("web-x"), 4)
    told = [
        ("service", "web"),
        ("slice", "web-x"),
        ("no service", "default/web"),
        ("no slice", "default/web-x"),
    ]
    assert one.heard == told
    assert two.heard == told


async def test_a_selection_is_added_to_whatever_is_asked_for():
    asked = []

    class Client:
        async def get(self, url):
            asked.append(url)
            return {}

        async def watch(self, url):
            asked.append(url)
            for event in list[dict[str, str]]():
                yield event

    own = Selected(Client(), "spec.nodeName=n")
    await own.get("/api/v1/pods")
    assert [event async for event in own.watch("/api/v1/pods?resourceVersion=7")] == []
    assert asked == [
        "/api/v1/pods?fieldSelector=spec.nodeName%3Dn",
        "/api/v1/pods?resourceVersion=7&fieldSelector=spec.nodeName%3Dn",
    ]
