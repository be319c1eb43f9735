"""The default store: ranks packed signatures in the application's own database."""

from __future__ import annotations

from .nominating import Nominations, by_signature, by_vector
from .options import one_of, whole_number
from .table import Search, TableStore

__all__ = ["DatabaseStore"]


class DatabaseStore(TableStore):
    """Nearest by the signatures of all rows, or by all vectors.

    ``strategy``: "signature" ranks 32 bytes a row and reads ``candidates`` vectors in full;
    "exact" reads every vector, and is what the other is measured against. ``bits``: the size of a
    signature, a multiple of 64. ``candidates``: how many vectors are scored exactly.
    """

    def __init__(
        self, *, strategy: str = "signature", bits: int = 256, candidates: int = 256
    ) -> None:
        self.strategy = one_of("strategy", strategy, ("signature", "exact"))
        self.bits = whole_number("bits", bits, multiple=64)
        self.candidates = whole_number("candidates", candidates)

    def nominate(self, search: Search) -> Nominations:
        return by_vector(search) if self.strategy == "exact" else by_signature(search)
