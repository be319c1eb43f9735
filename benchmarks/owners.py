"""Many owners with a few memories each, beside one with many: recall() of one of them.

    python -m benchmarks.owners [--owners 100000] [--each 50] [--width 64] [--output FOLDER]

The rows are those that the app writes, inserted by the hundred thousand; 100,000 owners with 50
memories each take some six gigabytes of disk at a width of 64. The same questions go to as many
owners in the large database and in one that holds a single owner, and to one collection of 100,000.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.filling import EMBEDDER, QUERIES, SPACE, handle, random_vectors
from benchmarks.latency import filled
from benchmarks.measuring import seconds, table, write_json
from benchmarks.plotting import bars
from benchmarks.project import configure

ASKED = 100
LIMIT = 8
#: Owners whose rows are inserted in one transaction.
STEP = 2_000
MEMORY = (
    *("id", "key", "record_id", "content"),
    *("collection_key", "collection", "owner_key", "owner"),
)


def fill_owners(owners: int, each: int, width: int) -> None:
    """Insert the rows of owners "0", "1", … with consecutive keys."""
    from django.db import connection, transaction

    from prism_memory.models import Space

    with connection.cursor() as cursor:
        cursor.execute("PRAGMA cache_size = -2000000")  # the indexes of digests are large
    space = Space.objects.create(name=SPACE, width=width, bits=256)
    vectors = np.asarray(random_vectors(each * 64, width), np.float64)
    for start in range(0, owners, STEP):
        with transaction.atomic():
            insert_owners(space, range(start, min(start + STEP, owners)), each, vectors)


def insert_owners(space: Any, owners: range, each: int, vectors: Any) -> None:
    from django.utils import timezone

    from prism_memory.filters import attribute_tokens
    from prism_memory.inserting import insert
    from prism_memory.models import Embedding, Memory, MemoryKind, SignaturePage
    from prism_memory.pages import Page
    from prism_memory.signatures import signatures
    from prism_memory.stores.keys import collection_key, record_key

    kind = MemoryKind.OBSERVATION.value
    signs = signatures(vectors)
    memories: dict[str, list[Any]] = {name: [] for name in MEMORY}
    embeddings: dict[str, list[Any]] = {"memory": [], "vector": [], "signature": []}
    pages: list[dict[str, Any]] = []
    for owner in owners:
        address, first = handle(f"{owner}")._address, owner * each + 1
        name = address.collection
        key = collection_key(name)
        rows = [(owner * 7 + row) % len(vectors) for row in range(each)]
        ids = list(range(first, first + each))
        memories["id"] += ids
        memories["key"] += [record_key(name, f"{pk}") for pk in ids]
        memories["record_id"] += [f"{pk}" for pk in ids]
        memories["content"] += [f"Sentence {row} of what was said." for row in rows]
        of_all = {
            "collection_key": key, "collection": name, "owner_key": address.owner.digest,
            "owner": f"{owner}",
        }  # fmt: skip
        for field, value in of_all.items():
            memories[field] += [value] * each
        embeddings["memory"] += ids
        embeddings["vector"] += [vectors[row].tobytes() for row in rows]
        embeddings["signature"] += [signs[row].tobytes() for row in rows]
        tokens = [attribute_tokens(name, {"role": "user", "kind": kind})] * each
        pages.append({"collection_key": key, **Page.of(ids, signs[rows], tokens).columns()})
    insert("default", Memory, memories, {
        "owner_model": "", "scope": "default", "kind": kind, "role": "user", "name": "",
        "metadata": {}, "occurred_at": timezone.now(), "created_at": timezone.now(),
        "attempts": 0, "failure": "",
    })  # fmt: skip
    insert("default", Embedding, embeddings, {"space": space.pk})
    by_column = {name: [page[name] for page in pages] for name in pages[0]}
    insert("default", SignaturePage, by_column, {"space": space.pk})


def asked(owners: Iterator[str], width: int) -> float:
    """Median seconds of a recall by each of these owners."""
    vectors = np.asarray(random_vectors(ASKED, width, seed=1), np.float64)
    taken = []
    for turn, owner in enumerate(owners):
        QUERIES[f"{turn}"] = vectors[turn % len(vectors)]
        memory = handle(owner)
        taken.append(
            seconds(lambda memory=memory, turn=turn: memory.recall(f"{turn}", limit=LIMIT))
        )  # type: ignore[misc]
    return median(taken[3:])


def measured(owners: int, each: int, width: int) -> dict[str, float]:
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memories.sqlite3"
        configure(path, EMBEDDER, RECALL={"query_cache": 0})
        fill_owners(owners, each, width)
        chosen = (f"{owner}" for owner in random.integers(0, owners, ASKED))
        return {"seconds": asked(chosen, width), "bytes": path.stat().st_size}


def large(rows: int, width: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        configure(Path(folder) / "memories.sqlite3", EMBEDDER, RECALL={"query_cache": 0})
        filled(rows, width, "one")
        return {"seconds": asked(iter(["one"] * ASKED), width)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--owners", type=int, default=100_000)
    parser.add_argument("--each", type=int, default=50)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--one", choices=["owners", "large"], help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    if given.one:
        once = measured(given.owners, given.each, given.width) if given.one == "owners" else (
            large(100_000, given.width)
        )  # fmt: skip
        print(json.dumps(once))
        return

    def run(kind: str, *options: str) -> dict[str, float]:
        call = [sys.executable, "-m", "benchmarks.owners", "--width", str(given.width)]
        done = subprocess.run(
            [*call, "--one", kind, *options], check=True, stdout=subprocess.PIPE, text=True
        )
        return dict(json.loads(done.stdout.splitlines()[-1]))

    each = ["--each", str(given.each)]
    found = {
        f"one owner with {given.each}": run("owners", "--owners", "1", *each),
        f"{given.owners:,} owners with {given.each}": run(
            "owners", "--owners", str(given.owners), *each
        ),
        "one owner with 100,000": run("large"),
    }
    print(f"recall() of one owner, {given.width} dimensions\n")
    print(table(["", "ms"], [
        [name, f"{1e3 * figures['seconds']:.2f}"] for name, figures in found.items()
    ]))  # fmt: skip
    if given.output:
        write_json(given.output / "owners.json", {"width": given.width, "owners": found})
        bars(
            given.output / "owners.svg",
            {"recall()": {name: 1e3 * figures["seconds"] for name, figures in found.items()}},
            title=f"recall() of one owner, {given.width} dimensions",
            unit="ms",
        )


if __name__ == "__main__":
    main()
