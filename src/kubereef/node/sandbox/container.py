"""Containers: start one in a Pod's sandbox, wait for it, signal it, run commands in it.

    container = await start_container(control, pod, spec, Stdio(stdout=out, stderr=err))
    probe = await container.enter(Command(argv=("cat", "/ready"), env=…), Stdio(stdout=pipe))
    container.signal(signal.SIGTERM)
    ended = await container.wait()

The entrypoint is process 1 of the container's pid namespace (unless the Pod shares one), as in Kubernetes: it gets no
signal that it does not handle, SIGKILL excepted, and its end is the end of everything in the container. A command that
cannot be run raises `StartFailed` from `start_container` or `enter`: both return when the program really runs.
"""

from kubereef.node.sandbox.control import Answer, Birth, Control, Process
from kubereef.node.sandbox.errors import StartFailed
from kubereef.node.sandbox.messages import EnterContainer, StartContainer
from kubereef.node.sandbox.pod import PodSandbox
from kubereef.node.sandbox.specs import Command, ContainerSpec, Stdio, check_command, check_container

_NO_STREAMS = Stdio()


class Container(Process):
    """A container that was started; made by `start_container`."""

    def __init__(self, birth: Birth, spec: ContainerSpec, control: Control) -> None:
        super().__init__(birth)
        self.spec = spec
        self._control = control

    async def enter(self, command: Command, stdio: Stdio = _NO_STREAMS) -> Process:
        """Run a command inside; a `terminal` of the command takes the place of `stdio`."""
        check_command(command)
        if not self.is_running:
            raise StartFailed("namespaces", "the container is not running")
        roles = {"container": self._pidfd, **_streams(stdio)}
        request = EnterContainer(command, self.spec.cgroup, tuple(roles))
        return Process(_born(await self._control.ask(request, tuple(roles.values()))))


async def start_container(
    control: Control, pod: PodSandbox, spec: ContainerSpec, stdio: Stdio = _NO_STREAMS
) -> Container:
    """Start a container in the Pod; a `terminal` of its command takes the place of `stdio`."""
    check_container(spec)
    roles = {**pod.descriptors(), **_streams(stdio)}
    answer = await control.ask(StartContainer(spec, tuple(roles)), tuple(roles.values()))
    return Container(_born(answer), spec, control)


def _streams(stdio: Stdio) -> dict[str, int]:
    return {name: fd for name, fd in stdio._asdict().items() if fd is not None}


def _born(answer: Answer) -> Birth:
    assert answer.birth is not None, "helpers answer these requests with a process or a failure"
    return answer.birth
