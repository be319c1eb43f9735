"""Backends that settings of tests name, most of them broken in one way."""

from __future__ import annotations

from django.core.checks import Warning

from prism_memory.stores import Durability, VectorStore
from prism_memory.testing import FakeEmbedder
from prism_memory.tokens import TokenCounter

NOT_A_CLASS = 5


class Nothing:
    """Of no use to anybody."""


class NoOptions(TokenCounter):
    def count(self, text):
        return len(text)


class AnyOptions(FakeEmbedder):
    def __init__(self, **options):
        super().__init__()
        self.options = options


class Particular(FakeEmbedder):
    """Raises whatever it is told to."""

    def __init__(self, *, error):
        raise error("The colour is wrong.")


class Nameless(FakeEmbedder):
    def __init__(self, *, space=None, batch_size=96):
        super().__init__(batch_size=batch_size)
        self.space = space


class Warned(FakeEmbedder):
    def check(self, setting):
        return [Warning(f"{setting} is odd.", id="tests.W001")]


class Uncheckable(FakeEmbedder):
    def check(self, setting):
        raise RuntimeError("I crashed.")


class VolatileStore(VectorStore):
    pass


class DurableStore(VectorStore):
    durability = Durability.DURABLE
