"""Real workers of django-rq, in processes of their own, and how they are killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def wait_for(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Wait until something is the case; fail when it does not come."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"in vain: waited for {what}"
        time.sleep(0.02)


class Worker:
    """``manage.py rqworker default``. RQ runs each job in a child, its work-horse."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.log = log.open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "django", "rqworker", "default", *options(environment)],
            cwd=ROOT,
            env={**os.environ, **environment, "DJANGO_SETTINGS_MODULE": "tests.redis.settings"},
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )

    def processes(self) -> Iterator[int]:
        """The worker and its work-horse: all processes of their session."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(ProcessLookupError):
                    if os.getsid(int(entry.name)) == self.process.pid:
                        yield int(entry.name)

    def horses(self) -> list[int]:
        return [pid for pid in self.processes() if pid != self.process.pid]

    def kill(self, *, horse_only: bool = False) -> None:
        """End it in the middle of whatever it does, as the system does when memory is short."""
        for pid in self.horses() if horse_only else [self.process.pid, *self.horses()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not horse_only:
            self.process.wait(20)
            self.log.close()


def options(environment: dict[str, str]) -> list[str]:
    serializer = environment.get("PRISM_WORKER_SERIALIZER")
    return ["--serializer", serializer] if serializer else []
