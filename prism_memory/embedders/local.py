"""Embeddings without a provider: a static table that ships with this package."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_memory.embedders.base import TEXT_FORMAT, Embedder
from prism_memory.exceptions import ConfigurationError

if TYPE_CHECKING:
    from django.core.checks import CheckMessage

__all__ = ["LocalEmbedder"]

MODEL = Path(__file__).with_name("local_model")
MISSING = "LocalEmbedder needs the package model2vec, which is not installed."
HINT = 'Install it with: pip install "prism-memory-django[local]"'

_model: Any = None
_loading = threading.Lock()


class LocalEmbedder(Embedder):
    """Embeds texts on this machine: no network, no key, no cost, the same bits everywhere.

    A text's vector is the mean of its wordpieces' rows in a table of 30,522 × 256 int8, distilled
    from all-MiniLM-L6-v2. The table knows English, and no word order. It takes half a second to
    load, once a process, on first use; then 0.1 ms a text, or 0.03 ms in a batch (two cores).
    docs/local-embedder.md tells how the table is made and how well it retrieves.

    Vectors have 256 dimensions and no common length; only their direction means something. Sums of
    int8 rows are exact, so a vector depends on nothing but its text: not on the rest of the batch,
    the processor or the versions of the libraries.
    """

    #: The number goes up with every change of the table.
    space = f"prism-local-1@256/{TEXT_FORMAT}"

    def __init__(self, *, batch_size: int = 1024) -> None:
        """Take the number of texts a call, at least 1; load nothing yet.

        Raises ValueError, or TypeError, for anything else.
        """
        if isinstance(batch_size, bool) or not isinstance(batch_size, int):
            raise TypeError(f"batch_size is {batch_size!r:.80}, not a whole number")
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}, not 1 or more")
        self.batch_size = batch_size

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector of 256 finite floats a text, in the order of ``texts``.

        All of a long text counts: nothing is cut off. A text without a single known wordpiece
        (blank, or only emoji, say) has no mean; it gets the table's row for unknown words, so that
        all such texts are alike and nearly at right angles to everything else.

        Raises ConfigurationError where model2vec is not installed.
        """
        if not texts:
            return []
        model = load()
        # model2vec would start processes for a large batch, and cut texts at 512 pieces.
        rows = model.encode(list(texts), max_length=None, use_multiprocessing=False)
        rows = rows.astype("float32")  # older versions of model2vec give doubles
        rows[~rows.any(axis=1)] = model.embedding[model.unk_token_id]
        vectors: list[list[float]] = rows.tolist()
        return vectors

    def check(self, setting: str) -> list[CheckMessage]:
        """Return an error when model2vec is missing; find out without importing it."""
        from django.core.checks import Error

        if find_spec("model2vec") is not None:
            return []
        return [Error(f"{setting}: {MISSING}", hint=HINT, id="prism_memory.E009")]


def load() -> Any:
    """Return the process's one ``model2vec.StaticModel``, read from this package's directory.

    Raises ConfigurationError where model2vec is not installed.
    """
    global _model
    if _model is None:
        with _loading:
            if _model is None:
                try:
                    from model2vec import StaticModel
                except ModuleNotFoundError as error:
                    raise ConfigurationError(f"{MISSING} {HINT}") from error
                _model = StaticModel.from_pretrained(MODEL)
    return _model
