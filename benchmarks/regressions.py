"""The small version that runs in CI: fails when a ratio or a count worsens, never on time alone.

    python -m benchmarks.regressions

Statements, rows and vectors read, bytes, recall, and ratios of medians within this run. Real
sentences come from the running interpreter's packages; vectors from the embedder that ships.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.filling import EMBEDDER, QUERIES, fill, handle
from benchmarks.measuring import counted, interleaved, table
from benchmarks.project import configure
from benchmarks.quality import recall_by_candidates
from benchmarks.rates import backfill, remember_six
from benchmarks.startup import added

ROWS = 12_000
ASKED = 40
#: Sentences and queries that recall is measured on.
STORED, HELD_OUT = 12_000, 100


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        configure(Path(folder) / "memories.sqlite3", EMBEDDER, RECALL={"query_cache": 0})
        stored, queries = real_vectors()
        checks = [
            *quality(stored, queries),
            *reading(stored, queries),
            *statements(stored),
            *start(),
            *writing(),
        ]
    print(table(["what", "measured", "bound", ""], [
        [what, f"{measured:.3f}".rstrip("0").rstrip("."), f"{sign} {bound}",
         "" if held else "WORSE"]
        for what, measured, sign, bound, held in map(judged, checks)
    ]))  # fmt: skip
    worse = [check for check in checks if not judged(check)[-1]]
    print(f"\n{len(checks) - len(worse)} passed, {len(worse)} failed")
    return 1 if worse else 0


def judged(check: tuple[str, float, str, float]) -> tuple[str, float, str, float, bool]:
    what, measured, sign, bound = check
    held = measured <= bound if sign == "≤" else measured >= bound
    return what, measured, sign, bound, held


def real_vectors() -> tuple[Any, Any]:
    from benchmarks.embeddings import local, normalised
    from benchmarks.sentences import collect

    sentences = collect(STORED + HELD_OUT)
    vectors = normalised(local(sentences))
    return vectors[:-HELD_OUT], vectors[-HELD_OUT:]


def quality(stored: Any, queries: Any) -> Iterator[tuple[str, float, str, float]]:
    shares = recall_by_candidates(stored, queries)
    yield "recall@8 in %, 256 candidates", 100 * shares["estimate"][3], "≥", 98.5
    yield "recall@8 in %, 32 candidates", 100 * shares["estimate"][0], "≥", 84
    gained = 100 * (shares["estimate"][0] - shares["Hamming"][0])
    yield "what the estimate adds to that", gained, "≥", 10


def reading(stored: Any, queries: Any) -> Iterator[tuple[str, float, str, float]]:
    from prism_memory.models import SignaturePage

    rows = len(stored)
    fill([f"Sentence {row} that was said." for row in range(rows)], stored, owner="large")
    few = rows // 10
    fill([f"Sentence {row} that was said." for row in range(few)], stored[:few], owner="small")
    for turn, query in enumerate(queries[:ASKED]):
        QUERIES[f"{turn}"] = np.asarray(query, np.float64)
    large, small = handle("large"), handle("small")
    with counted() as statements:
        found = large.recall("0")
    yield "statements of a recall", len(statements), "≤", 4
    yield "vectors scored by a recall", found.vectors_scored, "≤", 256
    with counted() as filtered:
        found = large.recall("0", filter={"role": "user"})
    yield "statements of a filtered recall", len(filtered), "≤", 3
    yield "vectors scored by a filtered recall", found.vectors_scored, "≤", 256
    pages = SignaturePage.objects.values_list("size", "ids", "signatures")
    held = [(size, len(ids) + len(signs)) for size, ids, signs in pages]
    size, taken = map(sum, zip(*held, strict=True))
    yield "bytes read a row while ranking", taken / size, "≤", 40
    yield "in % of a vector of 1,536 doubles", 100 * taken / size / (8 * 1_536), "≤", 0.4
    yield "pages per 512 rows", len(held) / (size / 512), "≤", 1.25
    times = interleaved(
        {
            "large": lambda turn: large.recall(f"{turn}"),
            "small": lambda turn: small.recall(f"{turn}"),
            "exhaustive": lambda turn: exhaustive(stored, queries[turn]),
        },
        ASKED,
    )
    yield "recall(): ten times the rows, × the time", times["large"] / times["small"], "≤", 2


def exhaustive(stored: Any, query: Any) -> Any:
    return np.argpartition(-(stored @ query), 8)


def statements(stored: Any) -> Iterator[tuple[str, float, str, float]]:
    memory = handle("six")

    def messages(turn: int, many: int = 6) -> list[dict[str, str]]:
        said = [f"Message {n} of turn {turn}." for n in range(many)]
        QUERIES.update(zip(said, stored.astype(np.float64).tolist(), strict=False))
        return [{"role": "user", "content": text} for text in said]

    memory.remember(messages(0))
    with counted() as six:
        memory.remember(messages(1))
    with counted() as sixty:
        memory.remember(messages(2, 60))
    with counted() as repeated:
        memory.remember(messages(2, 60))
    yield "statements of remember(), six messages", len(six), "≤", 12
    yield "statements of remember(), sixty", len(sixty), "≤", len(six)
    yield "statements of remember(), a repeat", len(repeated), "≤", 3
    for turn in range(3, 20):
        memory.remember(messages(turn))
    with counted() as erased:
        memory.forget()
    yield "statements of forget()", len(erased), "≤", 10


def start() -> Iterator[tuple[str, float, str, float]]:
    figures = added(runs=5)
    yield "heavy packages imported by setup()", len(figures["heavy imports"]), "≤", 0
    yield "setup() with the app, × without", figures["with"] / figures["without"], "≤", 1.6


def writing() -> Iterator[tuple[str, float, str, float]]:
    """Processor time, which the disk and other processes blur less. It leaves the tables empty."""
    from prism_memory.models import Memory

    Memory.objects.all().delete()
    six, many = remember_six(), backfill(10_000)
    yield "remember() of six, × its bare statements", six["processor"]["ratio"], "≤", 16
    yield "a backfill, × its bare statements", many["processor"]["ratio"], "≤", 5


if __name__ == "__main__":
    sys.exit(main())
