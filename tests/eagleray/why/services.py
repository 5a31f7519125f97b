"""Asks `why` about the RayService `s` of a world, and makes its clusters fail."""

from eagleray.kube.transport import Answer
from kubereef.node.scripted import Script, Waits
from tests.eagleray.dashboard.scripted import ScriptedHead
from tests.eagleray.rayservice.situations import active, change, pending
from tests.eagleray.why import asking

HEADS = {"ray.io/node-type": "head"}
LARGE = {"resources": {"requests": {"cpu": "1000"}}}
NO_IMAGE = Waits(reason="ImagePullBackOff", message="no such image")
DEADLINE = {"annotations": {"eagleray.io/upgrade-deadline-seconds": "600"}}
TRACEBACK = """Deploying app 'app' failed with exception:
Traceback (most recent call last):
  File "/srv/app.py", line 1, in <module>
    import torch
ModuleNotFoundError: No module named 'torch'"""
NO_TORCH = {"app": ("DEPLOY_FAILED", TRACEBACK)}
REFUSAL = b"ValidationError: 1 validation error for ServeDeploySchema: applications.0.import_path"


async def why(world, user=None):
    """Return what is printed and whether all is well; clusters are numbered in the order in which they were made."""
    shown, is_well = await asking.why(world, "s", user, "rayservice")
    made = sorted(await world.list("RayCluster"), key=lambda one: one["metadata"]["creationTimestamp"])
    names = [one["metadata"]["name"] for one in made]
    names += [name for name in (await active(world), await pending(world)) if name]
    for number, name in enumerate(dict.fromkeys(names), start=1):
        shown = [line.replace(name, f"s-{number}") for line in shown]
    return shown, is_well


async def stuck(world):
    shown, is_well = await why(world)
    assert not is_well
    return shown


def of_new_heads(*steps):
    """Return what happens to heads that are not the first ones."""
    return Script(when={**HEADS, "generation": "new"}, steps=list(steps))


async def change_heads(world):
    """Describe a cluster whose head has a label by which it is known."""
    service = await world.get("RayService", "s")
    config = service["spec"]["rayClusterConfig"]
    config["headGroupSpec"]["template"]["metadata"] = {"labels": {"generation": "new"}}
    await change(world, rayClusterConfig=config)


def refuse_configurations(monkeypatch):
    """Have Serve refuse whatever it is handed from now on."""
    monkeypatch.setattr(ScriptedHead, "_put_serve", lambda _head, _configuration: Answer(400, REFUSAL))
