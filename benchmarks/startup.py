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
started = time.perf_counter()
django.setup()
spent = time.perf_counter() - started
print(json.dumps([spent, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def setup(*apps: str) -> tuple[float, list[str]]:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *apps], check=True, capture_output=True, text=True
    )
    spent, modules = json.loads(run.stdout)
    return spent, modules


def added(runs: int = RUNS) -> dict[str, Any]:
    """Median seconds of django.setup() without and with the app, in turn, and heavy imports."""
    without, with_it, imported = [], [], set()
    for _ in range(runs):
        without.append(setup()[0])
        spent, modules = setup("prism_memory")
        with_it.append(spent)
        imported.update(modules)
    return {
        "without": median(without),
        "with": median(with_it),
        "added": median(with_it) - median(without),
        "heavy imports": sorted(imported.intersection(HEAVY)),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    figures = added()
    print(
        f"django.setup(): {1e3 * figures['without']:.0f} ms without the app, "
        f"{1e3 * figures['added']:.0f} ms more with it; "
        f"heavy imports: {', '.join(figures['heavy imports']) or 'none'}"
    )
    if arguments.output:
        write_json(arguments.output / "startup.json", figures)
