"""The contract of an embedder: texts in, one vector a text out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.core.checks import CheckMessage

TEXT_FORMAT = "named-1"
"""The format of the embedded text: ``name: content`` when the speaker has a name, else ``content``.

It belongs in an embedder's ``space``: vectors of differently formatted texts don't compare well.
"""


class Embedder:
    """Turns texts into vectors.

    Implementers set ``space`` and write ``embed``. The app checks what comes back, in one place for
    every embedder: the count, the width, finiteness, zero vectors. Integers and numeric strings are
    converted. Constructors do no I/O: ``manage.py check`` constructs every configured embedder.
    """

    #: Names the coordinate system, known without a call: model, requested width, endpoint and
    #: ``TEXT_FORMAT``. Vectors are compared only within one space.
    space: str

    #: How many texts go into one call of ``embed``.
    batch_size: int = 96

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one vector a text, in the order of the texts.

        Any exception means that none of the texts was embedded; they stay pending.
        """
        raise NotImplementedError

    def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector of a query; override it where queries and documents differ."""
        return self.embed([text])[0]

    def check(self, setting: str) -> list[CheckMessage]:
        """Return system check messages about this embedder, without I/O.

        ``setting`` names the entry that configured it, for example ``PRISM_MEMORY["EMBEDDER"]``.
        """
        return []
