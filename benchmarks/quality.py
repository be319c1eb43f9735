"""How many of the true nearest are among the candidates that the signatures nominate.

    python -m benchmarks.quality [--model local] [--rows 20000 100000] [--output FOLDER]

recall@8: the share of the 8 rows of highest cosine, found by exhaustive search, that are among the
candidates whose vectors are read; over 200 sentences that are not stored. "Hamming" ranks by the
distance of the signatures alone; "estimate" is what the store does: Hamming to 4,096, then the
unquantised query against the same bits. Both read the same 32 bytes a row.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.embeddings import MODELS, QUERIES, vectors
from benchmarks.measuring import table, write_json
from benchmarks.plotting import plot
from prism_memory.signatures import hamming, signature, signatures
from prism_memory.stores.ranking import SignatureRanking

__all__ = ["recall_by_candidates"]

BEST = 8
CANDIDATES = (32, 64, 128, 256, 512)


def recall_by_candidates(stored: Any, queries: Any, bits: int = 256) -> dict[str, list[float]]:
    """recall@8 for each number of CANDIDATES, by Hamming distance alone and by the estimate."""
    signs = signatures(stored, bits)
    keys = np.arange(len(stored), dtype=np.int64)
    found: dict[str, list[list[float]]] = {"Hamming": [], "estimate": []}
    for query in queries:
        products = stored @ query
        best = np.argpartition(-products, BEST)[:BEST]
        vector = query.astype(np.float64)
        near = np.argsort(hamming(signature(vector, bits), signs), kind="stable")
        ranking = SignatureRanking(lambda: [(keys, signs)], vector, max(CANDIDATES)).ids()
        nominated = np.fromiter(ranking, np.int64, min(max(CANDIDATES), len(keys)))
        for name, order in (("Hamming", near), ("estimate", nominated)):
            found[name].append([float(np.isin(best, order[:many]).mean()) for many in CANDIDATES])
    return {name: np.mean(shares, axis=0).tolist() for name, shares in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=sorted(MODELS), default="local")
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    every = vectors(arguments.model, max(arguments.rows) + QUERIES)
    # The last ones are the queries, whatever the number of rows.
    queries, width = every[-QUERIES:], every.shape[1]
    figures = {}
    for rows in arguments.rows:
        figures[rows] = recall_by_candidates(every[: min(rows, len(every) - QUERIES)], queries)
    lines = [
        (f"{rows:,}", name, *(f"{100 * share:.1f}" for share in shares))
        for rows, named in figures.items()
        for name, shares in named.items()
    ]
    print(f"{arguments.model}, {width} dimensions, recall@8 in %, by candidates\n")
    print(table(["rows", "order", *map(str, CANDIDATES)], lines))
    if arguments.output:
        stem = arguments.output / f"quality-{arguments.model}"
        write_json(
            stem.with_suffix(".json"),
            {"model": arguments.model, "candidates": CANDIDATES, "recall@8": figures},
        )
        plot(
            stem.with_suffix(".svg"),
            {
                f"{name}, {rows:,}": [
                    (many, 100 * share) for many, share in zip(CANDIDATES, shares, strict=True)
                ]
                for rows, named in figures.items()
                for name, shares in named.items()
            },
            title=f"recall@8 by candidates: {arguments.model}, {width} dimensions",
            x="vectors read", y="%",
        )  # fmt: skip


if __name__ == "__main__":
    main()
