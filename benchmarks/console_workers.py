"""CPU time of the periodic work of a worker, in a process without Celery.

    GANTRY_HOME=… NAMESRV_ADDR=… python -m benchmarks.console_workers sampler

`sampler` stores the history, `evaluation` evaluates findings and alarms; several words run several.
Prints a line when the first steps have filled caches and slots, and the CPU time since that line
after SIGINT.
"""

import contextlib
import os
import signal
import sys
import time
from typing import Any, Final

WORKS: Final = ("sampler", "evaluation")
#: Seconds before the measurement: at least two steps.
WARM_UP_SECONDS: Final = 26.0


def main(*names: str) -> None:
    """Run the work until SIGINT, and print its share of a core."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    import django

    django.setup()
    running = [_work(name) for name in names]
    for each in running:
        each.start()
    time.sleep(WARM_UP_SECONDS)
    print(f"running: {' '.join(names)}", flush=True)
    began, before_s = time.monotonic(), time.process_time()
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()
    used_s, took_s = time.process_time() - before_s, time.monotonic() - began
    for each in running:
        each.stop()
    print(f"{' + '.join(names)}: {used_s / took_s:.1%} of a core, {used_s:.2f} s in {took_s:.0f} s")


def _work(name: str) -> Any:
    from console.services.findings.background import Evaluations
    from console.services.history.sampler import Sampler

    return Sampler() if name == "sampler" else Evaluations()


if __name__ == "__main__":
    main(*sys.argv[1:])
