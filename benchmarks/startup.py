"""What the app adds to django.setup(), and what it must not import there.

python -m benchmarks.startup [--output FOLDER]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measuring import write_json
from benchmarks.plotting import bars

__all__ = ["added"]

RUNS = 15
HEAVY = ("numpy", "litellm", "tiktoken", "model2vec", "rq", "redis", "openai", "pymilvus")
PROGRAM = """
import json, sys, time
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", *sys.argv[1:]],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
import django
started = time.perf_counter(), time.process_time()
django.setup()
spent = [time.perf_counter() - started[0], time.process_time() - started[1]]
print(json.dumps([*spent, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def setup(*apps: str) -> tuple[float, float, list[str]]:
    """Seconds of django.setup() by the clock and of the processor, and what is imported then."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *apps], check=True, capture_output=True, text=True
    )
    spent, worked, modules = json.loads(run.stdout)
    return spent, worked, modules


def added(runs: int = RUNS) -> dict[str, Any]:
    """Median seconds of django.setup() without and with the app, in turn, and heavy imports."""
    without, with_it, imported = [], [], set()
    for _ in range(runs):
        without.append(setup()[:2])
        *spent, modules = setup("prism_memory")
        with_it.append(spent)
        imported.update(modules)
    (bare, bare_worked), (full, full_worked) = (
        map(median, zip(*figures, strict=True)) for figures in (without, with_it)
    )
    return {
        "without": bare,
        "with": full,
        "added": full - bare,
        "added of the processor": full_worked - bare_worked,
        "heavy imports": sorted(imported.intersection(HEAVY)),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    figures = added()
    print(
        f"django.setup(): {1e3 * figures['without']:.0f} ms without the app, "
        f"{1e3 * figures['added']:.0f} ms more with it "
        f"({1e3 * figures['added of the processor']:.0f} ms of processor time); "
        f"heavy imports: {', '.join(figures['heavy imports']) or 'none'}"
    )
    if arguments.output:
        write_json(arguments.output / "startup.json", figures)
        bars(
            arguments.output / "startup.svg",
            {
                "django.setup()": {
                    f"{how} the app": 1e3 * figures[how] for how in ("without", "with")
                }
            },
            title="Starting up",
            unit="ms",
        )
