"""How long recall() takes, the embedder excluded, beside other ways to find the nearest vectors.

    python -m benchmarks.latency [--rows 20000 100000] [--width 256] [--peers] [--output FOLDER]

All are asked in turn, so that what else the machine does slows all alike; medians. recall() does
the whole of its work: it ranks signatures, reads and scores vectors, and makes a Recollection. The
others return row numbers. ``--output`` writes JSON and a plot.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.filling import EMBEDDER, QUERIES, fill, handle, random_vectors
from benchmarks.measuring import interleaved, table, write_json
from benchmarks.peers import PEERS, SqliteVec
from benchmarks.plotting import plot
from benchmarks.project import configure

__all__ = ["asked", "filled"]

ASKED = 30
LIMIT = 8
OURS = "recall()"


def filled(rows: int, width: int, owner: str) -> tuple[Any, Any]:
    """Fill a collection with vectors; return them (float32) and those of the queries."""
    vectors = random_vectors(rows + ASKED, width, seed=rows)
    fill([f"Sentence {row} of what was said in those days." for row in range(rows)],
         vectors[:rows], owner=owner)  # fmt: skip
    for turn, vector in enumerate(vectors[rows:]):
        QUERIES[f"{owner} {turn}"] = np.asarray(vector, np.float64)
    return vectors[:rows], vectors[rows:]


def asked(owner: str, turn: int) -> Any:
    return handle(owner).recall(f"{owner} {turn}", limit=LIMIT)


def measure(rows: int, width: int, folder: Path, kinds: list[Any]) -> dict[str, float]:
    """Median seconds by name."""
    owner = f"{rows}-{width}"
    vectors, queries = filled(rows, width, owner)
    calls: dict[str, Any] = {OURS: lambda turn: asked(owner, turn)}
    for kind in kinds:
        place = folder / f"{kind.__name__}-{owner}"
        place.mkdir()
        try:
            peer = kind(place)
        except ImportError as error:
            print(f"left out: {kind.name} ({error})")
            continue
        peer.fill(vectors)
        calls[peer.name] = lambda turn, peer=peer: peer.nearest(queries[turn], LIMIT)
    return interleaved(calls, ASKED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--peers", action="store_true", help="all of them, not only sqlite-vec")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    kinds = PEERS if arguments.peers else [SqliteVec]
    with tempfile.TemporaryDirectory(dir=os.environ.get("PRISM_BENCHMARK_DATA")) as name:
        folder = Path(name)
        folder.chmod(0o755)
        configure(folder / "memories.sqlite3", EMBEDDER, RECALL={"query_cache": 0})
        found = {}
        for rows in arguments.rows:
            found[rows] = measure(rows, arguments.width, folder, kinds)
            print(f"\n{rows:,} rows, {arguments.width} dimensions\n")
            ours = found[rows][OURS]
            print(table(["", "ms", "recall() is × that"], [
                [name, f"{1e3 * taken:.2f}", f"{ours / taken:.2f}"]
                for name, taken in found[rows].items()
            ]), flush=True)  # fmt: skip
    if arguments.output:
        stem = f"latency-{arguments.width}"
        write_json(arguments.output / f"{stem}.json", {"seconds": found})
        names = list(found[arguments.rows[0]])
        plot(
            arguments.output / f"{stem}.svg",
            {name: [(rows, 1e3 * found[rows][name]) for rows in found] for name in names},
            title=f"A query's milliseconds, {arguments.width} dimensions",
            x="rows", y="ms", log=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
