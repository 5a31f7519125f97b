"""Runs scenarios and says which steps are answered differently from a real API server."""

import asyncio
import ssl
from pathlib import Path
from typing import NamedTuple

import yaml

from kubereef import simulation
from kubereef.controllers.standard import CONTROLLERS
from kubereef.serving import Settings, serving
from kubewire.sources import SystemClock
from tests.kubereef.conformance.cleaning import clean_up
from tests.kubereef.conformance.comparing import Matcher, compared
from tests.kubereef.conformance.running import Result, Run
from tests.kubereef.conformance.scenarios import Scenario, every_step, label
from tests.kubereef.conformance.transports import Https, InProcess

# Nothing that a server does by itself takes longer; waiting in vain for more would hold up the tests.
_PATIENCE = 3.0


class Judged(NamedTuple):
    """One step, numbered from 1, and where its answer differs."""

    name: str
    status: int
    differences: list[str]


def in_process(scenario: Scenario) -> list[Judged]:
    """Run a scenario against a cluster of its own within this process, under virtual time."""

    async def story() -> list[Judged]:
        cluster = simulation.SimulatedCluster(root_ca=_ANY_CERTIFICATE, tracks_owners=True)
        await cluster.start()
        if scenario.needs_controllers:
            await cluster.run(*CONTROLLERS)
        try:
            return judge(scenario, run := Run(InProcess(cluster.server), scenario), await run())
        finally:
            await cluster.stop()

    return simulation.run(story())


def over_https(scenario: Scenario, directory: Path) -> list[Judged]:
    """Run a scenario against a cluster of its own over HTTPS, in real time; the directory keeps its certificates."""

    async def story() -> list[Judged]:
        async with serving(Settings(directory, in_memory=True)) as served:
            user = yaml.safe_load(served.kubeconfig.read_text())["users"][0]["user"]
            trust = ssl.create_default_context(cafile=directory / "ca.crt")
            transport = Https(served.url, user["token"], trust, SystemClock())
            try:
                return judge(scenario, run := Run(transport, scenario, _PATIENCE), await run())
            finally:
                await transport.close()

    return asyncio.run(story())


def against(scenario: Scenario, url: str, token: str, authority: Path, identity: str) -> list[Judged]:
    """Run a scenario against a server that is there already, and leave nothing behind; its names have the identity."""

    async def story() -> list[Judged]:
        trust = ssl.create_default_context(cafile=authority)
        transport = Https(url, token, trust, SystemClock())
        run = Run(transport, scenario, identity=identity)
        try:
            return judge(scenario, run, await run())
        finally:
            await clean_up(run, transport)
            await transport.close()

    return asyncio.run(story())


def judge(scenario: Scenario, run: Run, results: list[Result]) -> list[Judged]:
    """Compare every answer of a run with the recorded one."""
    assert [label(step) for step in every_step(scenario.steps)] == [
        step["step"] for step in scenario.answers
    ], "the answers were recorded for other steps than the scenario has now"
    matcher = Matcher(run.own)
    return [
        _judged(number, result, dict(wanted), matcher, run)
        for number, (result, wanted) in enumerate(zip(results, scenario.answers, strict=True), 1)
    ]


def _judged(number: int, result: Result, wanted: dict[str, object], matcher: Matcher, run: Run) -> Judged:
    name = f"{number}. {wanted.pop('step')}"
    differences = [result.problem] if result.problem else []
    if result.answer is None:
        return Judged(name, 0, differences)
    live = compared(result.step, result.answer, run.variables)
    differences += matcher.differences(wanted, live, result.answer.received)
    return Judged(name, result.answer.status, differences)


# Pods are handed the certificate of the authority; who it belongs to does not matter to them here.
_ANY_CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
