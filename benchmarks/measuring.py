"""Timing, counting, and saying on what machine: medians of interleaved rounds."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

__all__ = ["counted", "interleaved", "machine", "memory_grown", "seconds", "table", "write_json"]


def seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def interleaved(
    calls: Mapping[str, Callable[[int], Any]], rounds: int, *, warm: int = 2
) -> dict[str, float]:
    """The median seconds of each call, which gets the round's number.

    All take turns, so that whatever else runs on the machine slows all of them alike.
    """
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(-warm, rounds):
        for name, call in calls.items():
            spent = seconds(partial(call, turn % rounds))
            if turn >= 0:
                taken[name].append(spent)
    return {name: statistics.median(values) for name, values in taken.items()}


@contextmanager
def counted(alias: str = "default") -> Iterator[list[str]]:
    """Note the SQL statements of a block; of an ``executemany``, one."""
    from django.db import connections

    statements: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        statements.append(sql)
        return execute(sql, params, many, context)

    with connections[alias].execute_wrapper(note):
        yield statements


@contextmanager
def memory_grown() -> Iterator[list[float]]:
    """Note by how many MB the process's memory peaks above what it was; on Linux only."""
    grown = [float("nan")]
    reset, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if not reset.exists():
        yield grown
        return

    def kilobytes(name: str) -> int:
        [line] = [line for line in status.read_text().splitlines() if line.startswith(name)]
        return int(line.split()[1])

    reset.write_text("5")  # the peak starts anew; getrusage() would remember the parent's
    before = kilobytes("VmRSS")
    yield grown
    grown[0] = (kilobytes("VmHWM") - before) / 1024


def machine() -> dict[str, Any]:
    """What the figures of a run depend on."""
    import django
    import numpy as np

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "django": django.__version__,
        "numpy": np.__version__,
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines)


def write_json(path: Path, figures: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": machine(), **figures}, indent=1) + "\n", "utf-8")
