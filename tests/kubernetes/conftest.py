"""One real control plane for all tests here, with nodes on which Pods seem to run, and Ray in them."""

import asyncio
import functools
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from eagleray.rayapi.crd import crd
from eagleray.rayapi.kinds import KINDS
from kubewire import errors
from tests.kubernetes.accounts import Account
from tests.kubernetes.audit import Audit, accounts_in
from tests.kubernetes.land import Land, client_of
from tests.kubernetes.namespaces import Namespace
from tests.kubernetes.operators import Operator
from tests.kubernetes.plane import NotHere, Plane, programs

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SYSTEM = "ray-system"
# The CRDs are large, and a machine may be busy.
PATIENCE = 120.0


class Settled(NamedTuple):
    """A plane with everything on it."""

    plane: Plane
    land: Land
    audit: Audit
    account: Account


@pytest.fixture(scope="session")
def binaries():
    """The programs of a control plane; without Go, tests are skipped that need them."""
    try:
        return programs()
    except NotHere as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def directory():
    """Where a plane keeps its files; the path is short, as those of sockets have to be."""
    with tempfile.TemporaryDirectory(prefix="plane-") as made:
        yield Path(made)


def kubectl(plane, *arguments):
    """Run kubectl as the administrator and return what it says; without it the test is skipped, but not in CI."""
    if shutil.which("kubectl") is None:
        assert not os.environ.get("CI"), "kubectl is not on the PATH, and CI has to have it"
        pytest.skip("kubectl is not on the PATH")
    command = ["kubectl", f"--kubeconfig={plane.kubeconfig}", f"--cache-dir={plane.directory / 'kubectl'}"]
    run = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert run.returncode == 0, f"kubectl {' '.join(arguments)}: {run.stderr}"
    return run.stdout


@pytest.fixture(scope="session")
def settled(binaries, directory):
    """The plane: nodes have joined it, our CRDs are installed, and the operator's account has its rights."""
    audit = Audit(directory, accounts_in(SYSTEM))
    with Land(directory) as land:
        flags = {"kube-apiserver": [*land.flags, *audit.flags]}
        with Plane(directory, binaries, flags) as plane, land.on(plane):
            account = Account(plane, SYSTEM)
            land.run(_installed(plane, account))
            yield Settled(plane, land, audit, account)


async def _installed(plane, account):
    api = client_of(plane)
    try:
        await define(api, *map(crd, KINDS))
        await account.install(api)
    finally:
        await api.close()


async def define(api, *definitions):
    """Create CRDs that are not there yet, and wait until their kinds are served."""
    for definition in definitions:
        with suppress(errors.AlreadyExists):
            await api.create(DEFINITIONS, definition)
    for definition in definitions:
        await Namespace(api, "").until(functools.partial(_is_served, api, definition))


async def _is_served(api, definition):
    """Return whether a kind has a list: a server says that there is one before it has filled its cache."""
    spec = definition["spec"]
    return await api.get(f"/apis/{spec['group']}/v1/{spec['names']['plural']}?limit=1")


@pytest.fixture
def plane(settled):
    return settled.plane


@pytest.fixture
def land(settled):
    return settled.land


@pytest.fixture
def audit(settled):
    return settled.audit


@pytest.fixture
def account(settled):
    return settled.account


@pytest.fixture
async def namespace(plane, request):
    """A namespace of the test's own, which goes with it."""
    api = client_of(plane)
    name = f"t{abs(hash(request.node.nodeid)) % 10**9}"
    namespace = Namespace(api, name)
    await namespace.make()
    yield namespace
    await namespace.remove()
    await api.close()


@pytest.fixture
async def start(settled, namespace, tmp_path):
    """Start operators that run as the operator's account; they end with the test."""
    running: list[Operator] = []
    token = tmp_path / "token"
    token.write_text(await settled.account.token(namespace.api))
    kubeconfig = settled.account.kubeconfig(token)

    async def started(*flags, leads=False):
        log = tmp_path / f"{len(running)}.log"
        election = "--enable-leader-election" + ("" if leads else "=false")
        place = f"--leader-election-namespace={SYSTEM}"
        operator = Operator(kubeconfig, log, "--use-kubernetes-proxy", election, place, *flags)
        running.append(operator)
        await asyncio.to_thread(operator.until_ready)
        return operator

    yield started
    for operator in running:
        operator.kill()
        print(operator.last_words())  # shown if the test has failed
