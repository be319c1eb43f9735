"""Backends that settings of tests name, most of them broken in one way."""

from __future__ import annotations

import time

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


class AskingStore(VectorStore):
    """Asks its server whether anything is kept, as a store over Redis would."""

    #: What the server says, or raises.
    answer: Durability | Exception = Durability.VOLATILE
    asked = 0

    @property
    def durability(self):
        type(self).asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class SlowStore(DurableStore):
    """Takes its time to be built, and counts how often it is."""

    built = 0

    def __init__(self):
        time.sleep(0.02)
        type(self).built += 1
