"""recall() when it is hard: after a write, in a transaction, in a fresh process; and its memory.

    python -m benchmarks.conditions [--rows 100000] [--width 256] [--output FOLDER]

There is no cache to warm up, so each should take about as long as any other. The fresh process has
imported the app and numpy but has no connection yet. Memory is the growth of the process's peak.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.filling import EMBEDDER, QUERIES, handle
from benchmarks.latency import ASKED, asked, filled
from benchmarks.measuring import interleaved, memory_grown, seconds, table, write_json
from benchmarks.plotting import bars
from benchmarks.project import configure

FRESH = 5


def in_process(owner: str, width: int) -> dict[str, float]:
    from django.db import transaction

    QUERIES["written"] = np.ones(width).tolist()
    memory = handle(owner).synchronously()

    def after_a_write(turn: int) -> float:
        QUERIES[f"Written in turn {turn}."] = np.ones(width).tolist()
        memory.remember([{"role": "user", "content": f"Written in turn {turn}."}])
        return seconds(lambda: asked(owner, turn))

    def in_a_transaction(turn: int) -> None:
        with transaction.atomic():
            asked(owner, turn)

    written = [after_a_write(turn) for turn in range(ASKED)]
    found = interleaved(
        {"as usual": lambda turn: asked(owner, turn), "in a transaction": in_a_transaction}, ASKED
    )
    return {**found, "right after a write": median(written)}


def fresh(path: Path, owner: str, width: int) -> dict[str, float]:
    """What a new process reports of its first recall."""
    call = [sys.executable, "-m", "benchmarks.conditions", "--first", str(path), owner, str(width)]
    runs = [
        json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
        for _ in range(FRESH)
    ]
    return {key: median(run[key] for run in runs) for key in runs[0]}


def first(path: Path, owner: str, width: int) -> None:
    configure(path, EMBEDDER, RECALL={"query_cache": 0})
    QUERIES[f"{owner} 0"] = np.random.default_rng(0).standard_normal(width).tolist()
    # Everything is imported and looked up, over a collection of nobody's.
    handle("nobody").recall(f"{owner} 0")
    from django.db import connection

    connection.close()
    with memory_grown() as grown:
        spent = seconds(lambda: asked(owner, 0))
    print(json.dumps({"seconds": spent, "MB": grown[0]}))


def main() -> None:
    if sys.argv[1:2] == ["--first"]:
        first(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memories.sqlite3"
        configure(path, EMBEDDER, RECALL={"query_cache": 0})
        owner = f"{arguments.rows}-{arguments.width}"
        filled(arguments.rows, arguments.width, owner)
        figures: dict[str, Any] = in_process(owner, arguments.width)
        once = fresh(path, owner, arguments.width)
    figures["first in a fresh process"] = once["seconds"]
    usual = figures["as usual"]
    print(f"{arguments.rows:,} rows, {arguments.width} dimensions\n")
    print(table(["recall()", "ms", "× usual"], [
        [name, f"{1e3 * taken:.1f}", f"{taken / usual:.2f}"] for name, taken in figures.items()
    ]))  # fmt: skip
    print(f"\nmemory of the first one: {once['MB']:.0f} MB")
    if arguments.output:
        stem = f"conditions-{arguments.rows}"
        write_json(arguments.output / f"{stem}.json", {**figures, "MB more": once["MB"]})
        bars(
            arguments.output / f"{stem}.svg",
            {"recall()": {name: 1e3 * taken for name, taken in figures.items()}},
            title=f"recall() when it is hard, {arguments.rows:,} rows",
            unit="ms",
        )


if __name__ == "__main__":
    main()
