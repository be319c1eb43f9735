"""Rates of writing and forgetting, against the bare statements that write or delete the same rows.

    python -m benchmarks.rates [--rows 100000] [--output FOLDER]

Bare means: the statements themselves, already worded, with their parameters at hand, through the
same connection, in as many transactions: no digest, check, lock or conversion. Processor time is
given too, because the disk and other processes blur the rest. Once with SQLite as Django sets it
up, once as its documentation tunes it (WAL, synchronous=NORMAL, IMMEDIATE).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.filling import EMBEDDER, QUERIES, SPACE, handle, random_vectors
from benchmarks.measuring import counted, memory_grown, table, write_json
from benchmarks.plotting import bars
from benchmarks.project import configure, sqlite

__all__ = ["backfill", "forget", "remember_six"]

WIDTH = 256
MEMORIES, EMBEDDINGS, PAGES = (
    *("prism_memory_memory", "prism_memory_embedding"),
    "prism_memory_signaturepage",
)


class Bare:
    """The rows of a table as they lie there, and the INSERT that writes them again."""

    def __init__(self, name: str) -> None:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {name}")
            names = [column[0] for column in cursor.description]
            self.rows = [tuple(row) for row in cursor.fetchall()]
        places = ", ".join(["%s"] * len(names))
        quoted = ", ".join(f'"{column}"' for column in names)
        self.sql = f"INSERT INTO {name} ({quoted}) VALUES ({places})"


def execute(*many: tuple[str, Sequence[Any]]) -> None:
    """Run statements with their rows of parameters in one transaction."""
    from django.db import connection, transaction

    with transaction.atomic(), connection.cursor() as cursor:
        for sql, rows in many:
            cursor.executemany(sql, rows)


def emptied(*names: str) -> None:
    """Delete all rows of tables, and the room that they took.

    A bare INSERT into pages that a DELETE left free would be spared what ours paid for: a file that
    grows.
    """
    from django.db import connection

    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"DELETE FROM {name}")
        cursor.execute("VACUUM")


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Seconds by the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - clock, time.process_time() - processor


def compared(ours: Sequence[tuple[float, float]], bare: Sequence[tuple[float, float]]) -> Any:
    found = {}
    for at, kind in enumerate(("clock", "processor")):
        mine, theirs = (median(each[at] for each in side) for side in (ours, bare))
        found[kind] = {"seconds": mine, "bare": theirs, "ratio": mine / theirs}
    return found


def remember_six(rounds: int = 60) -> dict[str, Any]:
    """remember() of six new messages, embedded after the commit, in two transactions."""
    memory = handle("six")
    vectors = random_vectors(6 * (rounds + 2), WIDTH).astype(np.float64).tolist()
    turns = []
    for turn in range(rounds + 2):
        said = [f"Message {n} of turn {turn}, as it was said." for n in range(6)]
        QUERIES.update(zip(said, vectors[6 * turn :], strict=False))
        roles = ("user", "assistant") * 3
        turns.append(
            [{"role": role, "content": text} for role, text in zip(roles, said, strict=True)]
        )
    memory.remember(turns[-1])  # makes the space
    with counted() as statements:
        memory.remember(turns[-2])
    with counted() as repeated:
        memory.remember(turns[-2])
    ours = [timed(lambda turn=turn: memory.remember(turn)) for turn in turns[:rounds]]  # type: ignore[misc]
    tables = [Bare(name) for name in (MEMORIES, EMBEDDINGS, PAGES)]
    emptied(EMBEDDINGS, MEMORIES, PAGES)
    memories, embeddings, pages = tables
    bare = []
    for turn in range(rounds):
        rows = slice(6 * turn, 6 * turn + 6)
        first = (memories.sql, memories.rows[rows])
        # Most pages were merged since; the last, of six memories, is written as often as they were.
        page = (99_000 + turn, *pages.rows[-1][1:])
        second = (embeddings.sql, embeddings.rows[rows]), (pages.sql, [page])
        bare.append(timed(lambda first=first, second=second: (execute(first), execute(*second))))  # type: ignore[misc]
    emptied(EMBEDDINGS, MEMORIES, PAGES)
    return {
        "statements": len(statements),
        "statements of a repeat": len(repeated),
        **compared(ours, bare),
    }


def backfill(rows: int) -> dict[str, Any]:
    """embed_pending() of many, with the embedder's own time taken off."""
    from prism_memory import backends
    from prism_memory.models import Embedding, MemoryKind, SignaturePage
    from prism_memory.stores import VectorRecord, stores

    memory, store = handle("many"), stores["default"]
    for start in range(0, rows, 5_000):
        store.upsert(
            VectorRecord(
                collection=memory.collection, id=f"{row}", content=f"Text {row} of all that wait.",
                role="user", kind=MemoryKind.OBSERVATION.value, owner=memory._address, metadata={},
            )
            for row in range(start, min(start + 5_000, rows))
        )  # fmt: skip
    vectors = random_vectors(rows, WIDTH).astype(np.float64)
    embedder = backends.embedder()
    spent = [0.0, 0.0]

    def embed(texts: Sequence[str]) -> Any:
        began = time.perf_counter(), time.process_time()
        found = [vectors[int(text.split()[1])].tolist() for text in texts]
        spent[0] += time.perf_counter() - began[0]
        spent[1] += time.process_time() - began[1]
        return found

    type(embedder).embed = lambda self, texts: embed(texts)  # type: ignore[method-assign]
    type(embedder).batch_size = 1_024
    with memory_grown() as grown:
        clock, processor = timed(memory.embed_pending)
    embeddings, pages = Bare(EMBEDDINGS), Bare(PAGES)
    emptied(EMBEDDINGS, PAGES)

    def bare() -> None:
        for start in range(0, rows, 1_024):
            few = slice(start // 512, start // 512 + 2)
            execute(
                (embeddings.sql, embeddings.rows[start : start + 1_024]),
                (pages.sql, pages.rows[few]),
            )

    bare_seconds = timed(bare)
    assert Embedding.objects.filter(space__name=SPACE).count() == rows
    assert sum(SignaturePage.objects.values_list("size", flat=True)) == rows
    return {
        "MB more": grown[0],
        **compared([(clock - spent[0], processor - spent[1])], [bare_seconds]),
    }


def forget(rows: int) -> dict[str, Any]:
    """forget() of everything in a filled collection, and the bare DELETEs of the same rows."""
    from prism_memory.models import Memory

    memory = handle("many")
    tables = [Bare(name) for name in (MEMORIES, EMBEDDINGS, PAGES)]
    with counted() as statements:
        ours = timed(memory.forget)
    assert not Memory.objects.exists()
    for each in tables:
        execute((each.sql, each.rows))
    key = tables[0].rows[0][2]
    owned = f"SELECT id FROM {MEMORIES} WHERE collection_key = %s"
    bare = timed(
        lambda: execute(
            (f"DELETE FROM {PAGES} WHERE collection_key = %s", [(key,)]),
            (f"DELETE FROM {EMBEDDINGS} WHERE memory_id IN ({owned})", [(key,)]),
            (f"DELETE FROM {MEMORIES} WHERE collection_key = %s", [(key,)]),
        )
    )
    return {"statements": len(statements), **compared([ours], [bare])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--tuned", action="store_true", help="only SQLite as tuned")
    parser.add_argument("--plain", action="store_true", help="only SQLite as Django sets it up")
    arguments = parser.parse_args()
    if not (arguments.tuned or arguments.plain):  # settings can't be changed in a process
        for how in ("--plain", "--tuned"):
            subprocess.run(
                [sys.executable, "-m", "benchmarks.rates", how, *sys.argv[1:]], check=True
            )
        return
    with tempfile.TemporaryDirectory() as folder:
        database = sqlite(Path(folder) / "rates.sqlite3")
        if arguments.plain:
            del database["OPTIONS"]
        configure(database, EMBEDDER, RECALL={"query_cache": 0})
        figures = {
            "remember() of six": remember_six(),
            f"backfill of {arguments.rows:,}": backfill(arguments.rows),
            f"forget() of {arguments.rows:,}": forget(arguments.rows),
        }
    name = "plain" if arguments.plain else "tuned"
    print(f"\nSQLite, {name}\n")
    lines = [
        (what, kind, f"{1e3 * each['seconds']:.1f}", f"{1e3 * each['bare']:.1f}",
         f"{each['ratio']:.2f}")
        for what, found in figures.items()
        for kind, each in found.items() if isinstance(each, dict)
    ]  # fmt: skip
    print(table(["", "time", "ms", "bare ms", "ratio"], lines))
    for what, found in figures.items():
        rest = {key: value for key, value in found.items() if not isinstance(value, dict)}
        print(what, rest)
    if arguments.output:
        write_json(arguments.output / f"rates-{name}.json", figures)
        bars(
            arguments.output / f"rates-{name}.svg",
            {
                what: {
                    "the app": 1e3 * found["clock"]["seconds"],
                    "bare statements": 1e3 * found["clock"]["bare"],
                }
                for what, found in figures.items()
            },
            title=f"Writing and forgetting, SQLite, {name}",
            unit="ms",
            log=True,
        )


if __name__ == "__main__":
    main()
