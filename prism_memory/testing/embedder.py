"""An embedder for tests."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence

from ..embedders import TEXT_FORMAT, Embedder

__all__ = ["FakeEmbedder"]

WORD = re.compile(r"\w+")


class FakeEmbedder(Embedder):
    """A deterministic embedder for tests: no model, no network, the same vectors everywhere.

    Every word, case-folded, adds a direction that is derived from its digest; so texts that share
    words are near. ``dimensions``: the width. ``calls`` keeps the texts of every call of ``embed``;
    setting ``failure`` to an exception makes every call raise it.
    """

    def __init__(self, *, dimensions: int = 64, batch_size: int = 96) -> None:
        self.dimensions = dimensions
        self.batch_size = batch_size
        self.space = f"fake@{dimensions}/{TEXT_FORMAT}"
        self.calls: list[list[str]] = []
        self.failure: Exception | None = None

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.calls.append(list(texts))
        if self.failure is not None:
            raise self.failure
        return [self.vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        if self.failure is not None:
            raise self.failure
        return self.vector(text)

    def vector(self, text: str) -> list[float]:
        """Return the vector of a text, of length 1, without recording a call."""
        # Without words (punctuation, emoji) the whole text is the word.
        words = WORD.findall(text.casefold()) or [text]
        total = [0.0] * self.dimensions
        for word in words:
            for axis, value in enumerate(self._direction(word)):
                total[axis] += value
        norm = math.sqrt(sum(value * value for value in total)) or 1.0
        return [value / norm for value in total]

    def _direction(self, word: str) -> list[float]:
        stream = hashlib.shake_256(word.encode()).digest(2 * self.dimensions)
        pairs = zip(stream[::2], stream[1::2], strict=True)
        return [(high * 256 + low - 32767.5) / 32767.5 for high, low in pairs]
