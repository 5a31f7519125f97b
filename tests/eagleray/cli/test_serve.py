"""The `serve` command: what it shows of services once and live, and how it ends when it cannot."""

import argparse
import asyncio
import fcntl
import inspect
import io
import os
import re
import struct
import sys
import termios
from contextlib import asynccontextmanager

import pytest

from eagleray.cli.main import main
from eagleray.cli.serve import fitted, perform
from eagleray.cli.serveactions import ServeActions
from eagleray.kube.client import Client
from eagleray.kube.retries import Patience
from kubereef.node.scripted import Script, Waits
from kubereef.server.requests import User
from kubereef.simulation import run
from kubewire.sources import SeededEntropy
from tests.eagleray.kube.local import FaultyTransport, transport_to
from tests.eagleray.rayservice.situations import (
    active,
    change,
    has_condition,
    head_at,
    incremental,
    new_pending,
    pending,
    promoted,
    serve_world,
    serving,
    set_image,
    side,
)
from tests.eagleray.world import rayservice


class Asker:
    """Somebody who asks about the services of a world; `way` can be made to fail."""

    def __init__(self, world, user=None):
        self.world = world
        self.way = FaultyTransport(transport_to(world.simulated.server, *([user] if user else [])))
        client = Client(self.way, world.clock, SeededEntropy("serve"), patience=Patience(total=5, tries=2))
        self.actions = ServeActions(client, world.clock)

    async def ask(self, name="", *, watch=False, namespace="default"):
        arguments = argparse.Namespace(name=name, watch=watch)
        return await perform(self.actions, arguments, namespace)

    @asynccontextmanager
    async def watching(self, name="s", namespace="default"):
        """Let the command go on beside the test; it is ended as Ctrl-C ends it."""
        asking = asyncio.create_task(self.ask(name, watch=True, namespace=namespace))
        await self.world.pass_time(1)
        try:
            yield asking
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)


async def named(world, text):
    """Return the lines of a text with clusters numbered in the order in which they were made."""
    made = sorted(await world.list("RayCluster"), key=lambda one: one["metadata"]["creationTimestamp"])
    names = [one["metadata"]["name"] for one in made]
    names += [name for name in (await active(world), await pending(world)) if name]
    for number, name in enumerate(dict.fromkeys(names), start=1):
        text = text.replace(name, f"s-{number:05}")
    return re.sub(r"(?<=-head-)\w{5}", "xxxxx", text).splitlines()


async def shown(world, capsys, name="s", **options):
    """Return what the command prints about services once."""
    capsys.readouterr()
    assert await Asker(world).ask(name, **options) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return await named(world, printed.out)


def lines(text):
    """Return the lines of a picture as it stands in a test, where long lines go on, further in, on the next one."""
    return re.sub(r"\n {4,}(?=\S)", " ", inspect.cleandoc(text)).splitlines()


async def traffic_reached(world, percent):
    async def is_so():
        return ((await side(world, "pending")).get("trafficRoutedPercent") or 0) >= percent

    await world.until(is_so, 600, step=0.1)


# --- once


def test_a_service_that_serves(capsys):
    async def live():
        async with serving() as (world, _):
            head = head_at(world, await active(world))
            head.set_application("app", "RUNNING", "", Model="HEALTHY", Ingress="HEALTHY")
            await world.pass_time(20)
            return await shown(world, capsys)

    assert run(live()) == lines(
        """
        RayService default/s: serves, 2 Pods take requests
           CLUSTER   ROLE     STATE   CAPACITY   TRAFFIC   AGE
           s-00001   active   ready   100%       100%      32s
           APPLICATION   CLUSTER   STATUS    MESSAGE
           app           s-00001   RUNNING
           - Ingress               HEALTHY
           - Model                 HEALTHY
        """
    )


def test_a_service_that_starts_says_what_it_waits_for(capsys):
    async def live():
        no_image = Waits(reason="ImagePullBackOff", message="no such image")
        script = Script(when={"ray.io/node-type": "head"}, steps=[no_image])
        async with serve_world(scripts=[script]) as (world, _):
            await world.create(rayservice())
            await world.pass_time(30)
            return await shown(world, capsys)

    assert run(live()) == lines(
        """
        RayService default/s: does not serve (Initializing), 0 Pods take requests
          s-00001: group headgroup, Pod s-00001-head-xxxxx: container ray: ImagePullBackOff:
              no such image; check the image's name and tag, the registry, and
              imagePullSecrets
           CLUSTER   ROLE      STATE      CAPACITY   TRAFFIC   AGE
           s-00001   pending   starting   100%       0%        30s
        """
    )


def test_an_upgrade_shows_both_clusters_and_what_the_new_one_waits_for(capsys):
    async def live():
        async with serving() as (world, ray):
            ray.application_faults = {"app": ("DEPLOY_FAILED", "\x1b[31mTraceback:\n\n  no torch\x1b[0m\x07")}
            await set_image(world, "2.53.0")
            await new_pending(world)
            await world.pass_time(30)
            return await shown(world, capsys)

    assert run(live()) == lines(
        """
        RayService default/s: serves, 2 Pods take requests
          upgrading: s-00002: application app is DEPLOY_FAILED: Traceback: no torch
           CLUSTER   ROLE      STATE   CAPACITY   TRAFFIC   AGE
           s-00001   active    ready   100%       100%      42s
           s-00002   pending   ready   100%       0%        31s
           APPLICATION   CLUSTER   STATUS          MESSAGE
           app           s-00001   RUNNING
           app           s-00002   DEPLOY_FAILED   Traceback: no torch
        """
    )


def test_a_message_that_goes_on_and_on_is_cut(capsys):
    async def live():
        async with serve_world(application_faults={"app": ("DEPLOY_FAILED", "no torch " * 1000)}) as (
            world,
            _,
        ):
            await world.create(rayservice())
            await world.pass_time(30)
            return await shown(world, capsys)

    printed = run(live())
    assert printed[1].endswith("…")
    assert printed[-1].endswith("…")
    assert max(map(len, printed)) <= 202


def test_an_incremental_upgrade_shows_traffic_and_capacity(capsys):
    async def live():
        async with serving(incremental(interval=60)) as (world, _):
            await set_image(world, "2.53.0")
            await new_pending(world)
            await traffic_reached(world, 25)
            await world.pass_time(10)
            return await shown(world, capsys)

    assert run(live()) == lines(
        """
        RayService default/s: serves, 4 Pods take requests
          upgrading: traffic moves again in 50s
           CLUSTER   ROLE      STATE   CAPACITY   TRAFFIC   AGE
           s-00001   active    ready   100%       75%       82s
           s-00002   pending   ready   50%        25%       71s
           APPLICATION   CLUSTER   STATUS    MESSAGE
           app           s-00001   RUNNING
           app           s-00002   RUNNING
        """
    )


def test_a_rollback(capsys):
    async def live():
        async with serving(incremental(interval=30)) as (world, _):
            before = (await world.get("RayService", "s"))["spec"]["rayClusterConfig"]
            await set_image(world, "2.53.0")
            await new_pending(world)
            await traffic_reached(world, 50)
            await change(world, rayClusterConfig=before)
            await world.pass_time(10)
            return await shown(world, capsys)

    assert run(live()) == lines(
        """
        RayService default/s: serves, 4 Pods take requests
          rolling back: traffic moves again in 20s
           CLUSTER   ROLE      STATE   CAPACITY   TRAFFIC   AGE
           s-00001   active    ready   100%       50%       82s
           s-00002   pending   ready   50%        50%       71s
           APPLICATION   CLUSTER   STATUS    MESSAGE
           app           s-00001   RUNNING
           app           s-00002   RUNNING
        """
    )


def test_a_replaced_cluster_is_shown_with_the_time_that_is_left_to_it(capsys):
    async def live():
        async with serving() as (world, _):
            await set_image(world, "2.53.0")
            await promoted(world, await new_pending(world))
            await world.pass_time(20)
            return await shown(world, capsys)

    assert run(live()) == lines(
        """
        RayService default/s: serves, 2 Pods take requests
           CLUSTER   ROLE                     STATE   CAPACITY   TRAFFIC   AGE
           s-00002   active                   ready   100%       100%      24s
           s-00001   replaced, kept for 40s   ready   0%         0%        35s
           APPLICATION   CLUSTER   STATUS    MESSAGE
           app           s-00002   RUNNING
        """
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"suspend": True},
            """
            RayService default/s: suspended, 0 Pods take requests
            """,
            id="suspended",
        ),
        pytest.param(
            {"upgradeStrategy": {"type": "Sometimes"}},
            """
            RayService default/s: does not serve (ValidationFailed), 0 Pods take requests
              The RayService spec is invalid: spec.upgradeStrategy.type: "Sometimes" is unknown; use NewCluster,
                NewClusterWithIncrementalUpgrade or None
            """,
            id="invalid",
        ),
        pytest.param(
            {"managedBy": "kueue.x-k8s.io/multikueue"},
            """
            RayService default/s: managed by kueue.x-k8s.io/multikueue, 0 Pods take requests
            """,
            id="of another manager",
        ),
    ],
)
def test_a_service_that_is_not_to_serve(spec, expected, capsys):
    async def live():
        async with serve_world() as (world, _):
            await world.create(rayservice(**spec))
            await world.pass_time(5)
            return await shown(world, capsys)

    assert run(live()) == lines(expected)


def test_a_service_that_no_operator_has_seen(capsys):
    async def live():
        async with serve_world(operator=False) as (world, _):
            await world.create(rayservice())
            return await shown(world, capsys)

    assert run(live()) == ["RayService default/s: waits for an operator, 0 Pods take requests"]


def test_a_service_that_is_being_deleted(capsys):
    async def live():
        async with serving() as (world, _):
            hold = {"metadata": {"finalizers": ["example.com/hold"]}}
            await world.patch("RayCluster", await active(world), hold)
            await world.delete("RayService", "s")
            await world.pass_time(5)
            return await shown(world, capsys)

    state, _, cluster, *_ = run(live())
    assert state.startswith("RayService default/s: being deleted, ")
    assert cluster.split()[:3] == ["s-00001", "active", "deleting"]


def test_all_services_of_a_namespace_and_of_all(capsys):
    async def live():
        async with serve_world() as (world, _):
            none = [await shown(world, capsys, ""), await shown(world, capsys, "", namespace="")]
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
            await world.api.create("/api/v1/namespaces", space)
            await world.create(rayservice("one"))
            await world.create(rayservice("two"))
            await world.create(rayservice("three", namespace="other"))
            await world.pass_time(30)
            return none, await shown(world, capsys, ""), await shown(world, capsys, "", namespace="")

    none, of_one, of_all = run(live())
    assert none == [["no RayServices in default"], ["no RayServices"]]

    def places(printed):
        return [line.split(":")[0] for line in printed if line.startswith("RayService ")]

    assert places(of_one) == ["RayService default/one", "RayService default/two"]
    assert places(of_all) == [*places(of_one), "RayService other/three"]
    assert of_one.count("") == 1  # between the two
    assert [line.split()[1] for line in of_one if "ready" in line] == ["active", "active"]


def test_who_may_not_see_clusters_is_shown_what_the_services_know(capsys):
    async def live():
        async with serving() as (world, _):
            about = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reader"}}
            rules = [{"apiGroups": ["ray.io"], "resources": ["rayservices"], "verbs": ["get", "watch"]}]
            await world.create({**about, "kind": "Role", "rules": rules})
            binding = {
                "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}],
                "roleRef": {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"},
            }
            await world.create({**about, "kind": "RoleBinding", **binding})
            code = await Asker(world, User("ann")).ask("s")
            allowed = code, await named(world, capsys.readouterr().out)
            code = await Asker(world, User("bob")).ask("s")
            return allowed, (code, capsys.readouterr())

    (code, printed), (refused, told) = run(live())
    assert code == 0
    assert printed == lines(
        """
        RayService default/s: serves, 2 Pods take requests
           CLUSTER   ROLE     STATE   CAPACITY   TRAFFIC   AGE
           s-00001   active   ready   100%       100%      -
           APPLICATION   CLUSTER   STATUS    MESSAGE
           app           s-00001   RUNNING

        note: clusters are shown as the services know them: rayclusters.ray.io is forbidden:
            User "ann" cannot list resource "rayclusters" in API group "ray.io" in the namespace
            "default"
        """
    )
    assert (refused, told.out) == (2, "")
    assert told.err.startswith('eagleray serve: rayservices.ray.io "s" is forbidden')


# --- live


def pictures(text):
    """Return the pictures that were printed one below the other."""
    return [part.splitlines() for part in text.strip().split("\n\n")]


def test_every_change_is_shown_and_nothing_else(capsys):
    async def live():
        async with serving() as (world, ray):
            ray.deploys = 10
            capsys.readouterr()
            async with Asker(world).watching() as asking:
                await world.pass_time(300)
                at_rest = capsys.readouterr().out
                await set_image(world, "2.53.0")
                await promoted(world, await new_pending(world))
                await world.pass_time(120)
                assert not asking.done()
                return at_rest, pictures(capsys.readouterr().out)

    at_rest, changes = run(live())
    assert len(pictures(at_rest)) == 1
    roles = [[line.split()[1] for line in one if re.match(r" +s-\w{5} +\w+,? ", line)] for one in changes]
    assert roles[0] == ["active"] or roles[0] == ["active", "pending"]
    assert ["active", "pending"] in roles
    assert ["active", "replaced,"] in roles
    assert roles[-1] == ["active"]  # what was replaced has gone, which is no change of the service
    assert len(changes) < 15


def test_a_server_that_hangs_up_is_asked_again(capsys):
    async def live():
        async with serving() as (world, _):
            asker = Asker(world)
            capsys.readouterr()
            async with asker.watching() as asking:
                first = capsys.readouterr().out
                asker.way.cut_watches()
                await change(world, suspend=True)
                await has_condition(world, "Suspended", "True", "SuspendComplete")
                await world.pass_time(5)
                return first, pictures(capsys.readouterr().out), asker.way.open, asking.done()

    first, changes, watches, is_over = run(live())
    assert " serves, " in first
    assert changes[-1] == ["RayService default/s: suspended, 0 Pods take requests"]
    assert (watches, is_over) == (2, False)


def test_a_server_that_does_not_come_back_is_told(capsys):
    async def live():
        async with serving() as (world, _):
            asker = Asker(world)
            async with asker.watching() as asking:
                capsys.readouterr()
                asker.way.next = ["not sent"] * 100
                asker.way.refuse_watches = [ConnectionRefusedError("nobody listens")] * 100
                asker.way.cut_watches()
                await world.pass_time(60)
                return await asking, capsys.readouterr()

    code, told = run(live())
    assert (code, told.out) == (2, "")
    assert told.err.startswith("eagleray serve: ")


def test_the_end_of_a_service_ends_the_command(capsys):
    async def live():
        async with serving() as (world, _), Asker(world).watching() as asking:
            await world.delete("RayService", "s")
            await world.pass_time(30)
            return await asking, capsys.readouterr()

    code, told = run(live())
    assert (code, told.err) == (0, "")
    assert told.out.splitlines()[-1] == "RayService default/s is gone"


def test_services_come_and_go_while_all_are_watched(capsys):
    async def live():
        async with serve_world() as (world, _):
            capsys.readouterr()
            async with Asker(world).watching(""):
                await world.create(rayservice())
                await world.pass_time(30)
                await world.delete("RayService", "s")
                await world.pass_time(30)
                return pictures(capsys.readouterr().out)

    first, *between, last = run(live())
    assert first == last == ["no RayServices in default"]
    assert any(one[0] == "RayService default/s: serves, 2 Pods take requests" for one in between)


class Terminal(io.StringIO):
    """A terminal that does not know its size."""

    def isatty(self):
        return True


def test_on_a_terminal_each_picture_takes_the_place_of_the_one_before(monkeypatch):
    async def live():
        async with serving() as (world, _):
            terminal = Terminal()
            with monkeypatch.context() as patched:
                patched.setattr(sys, "stdout", terminal)
                patched.setenv("TERM", "xterm")
                async with Asker(world).watching():
                    await world.pass_time(5)
            return terminal.getvalue()

    drawn = run(live())
    first, *others = drawn.split("\x1b[5A\x1b[J")
    assert len(first.splitlines()) == 5
    assert len(others) >= 4  # time goes on, and so does the age of the cluster
    ages = [one.splitlines()[2].split()[-1] for one in (first, *others)]
    assert ages == sorted(set(ages))


def test_on_a_dumb_terminal_nothing_is_drawn_over(monkeypatch):
    async def live():
        async with serving() as (world, _):
            terminal = Terminal()
            with monkeypatch.context() as patched:
                patched.setattr(sys, "stdout", terminal)
                patched.setenv("TERM", "dumb")
                async with Asker(world).watching():
                    await world.pass_time(5)
            return terminal.getvalue()

    assert "\x1b" not in run(live())


def test_on_a_small_terminal_lines_are_cut_so_that_they_can_be_drawn_over(monkeypatch):
    async def live(terminal):
        async with serving() as (world, _):
            with monkeypatch.context() as patched:
                patched.setattr(sys, "stdout", terminal)
                patched.setenv("TERM", "xterm")
                async with Asker(world).watching():
                    await world.pass_time(2)

    master, slave = os.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 4, 30, 0, 0))
        with os.fdopen(slave, "w", encoding="utf-8") as terminal:
            run(live(terminal))
            drawn = os.read(master, 100_000).decode()
    finally:
        os.close(master)
    first, *others = drawn.replace("\r\n", "\n").split("\x1b[3A\x1b[J")
    assert first.splitlines() == [
        "RayService default/s: serves,"[:29],
        "   CLUSTER   ROLE     STATE",
        "… 3 more lines",
    ]
    assert len(others) >= 1


@pytest.mark.parametrize(
    ("count", "rows", "expected"),
    [
        pytest.param(2, 3, ["line 0", "line 1"], id="all of them fit"),
        pytest.param(4, 3, ["line 0", "… 3 more lines"], id="the rest is counted"),
    ],
)
def test_lines_that_a_terminal_can_show(count, rows, expected):
    assert fitted([f"line {number}" for number in range(count)], 80, rows) == expected


# --- what cannot be asked


def test_a_service_that_does_not_exist(capsys):
    async def live():
        async with serve_world() as (world, _):
            return [await Asker(world).ask("none", watch=watch) for watch in (False, True)]

    assert run(live()) == [2, 2]
    told = capsys.readouterr()
    sentence = "eagleray serve: there is no RayService default/none, or its CRD is not installed\n"
    assert (told.out, told.err) == ("", sentence * 2)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param([".."], "'..' is no name", id="a name that no object has"),
        pytest.param(["-n", "A/B"], "'A/B' is no namespace", id="a namespace that is none"),
        pytest.param(["--context", "x"], "there is no context 'x'", id="an unknown context"),
        pytest.param(["s", "-A"], "name a RayService, or ask for all namespaces", id="one of all"),
        pytest.param([], "127.0.0.1:1", id="a server that does not answer"),
        pytest.param(["-w"], "127.0.0.1:1", id="a server that does not answer, live"),
    ],
)
def test_what_cannot_be_asked_ends_with_2_and_a_sentence(arguments, sentence, tmp_path, capsys):
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    assert main(["serve", "status", *arguments, "--kubeconfig", str(file)]) == 2
    shown_text = capsys.readouterr()
    assert shown_text.out == ""
    assert shown_text.err.startswith("eagleray serve: ")
    assert sentence in shown_text.err
    assert len(shown_text.err.splitlines()) == 1


# Nothing listens at port 1.
KUBECONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""
