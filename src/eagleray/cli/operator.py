"""`eagleray operator`: the controllers against any Kubernetes, until they are told to stop."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from eagleray.kube.access import Access, ConfigError
from eagleray.kube.http import HttpTransport, spare_tls_buffers
from eagleray.kube.kubeconfig import find_access
from eagleray.operator.assembly import EXIT_AGAIN, Operator
from eagleray.runtime.options import Options
from eagleray.runtime.startup import begin_logging, options_or_exit
from kubewire.sources import SystemClock, SystemEntropy


def main(arguments: Sequence[str]) -> int:
    """Run the operator and return its exit status; flags are read as the reference reads them, not by argparse."""
    options = options_or_exit(arguments, os.environ)
    clock = SystemClock()
    try:
        access = find_access(os.environ, clock, kubeconfig=options.kubeconfig)
    except ConfigError as bad:
        print(f"eagleray operator: {bad}", file=sys.stderr)
        return 1
    logs = begin_logging(options, clock)
    spare_tls_buffers()
    try:
        return asyncio.run(_operate(options, access, clock))
    finally:
        logs.close()


async def _operate(options: Options, access: Access, clock: SystemClock) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    while True:
        operator = Operator(
            options,
            HttpTransport(access),
            clock=clock,
            entropy=SystemEntropy(),
            hostname=os.uname().nodename,
            begins_anew=True,
        )
        try:
            code = await operator.run(stop)
        finally:
            await operator.close()
        if code != EXIT_AGAIN:
            return code
