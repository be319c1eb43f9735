"""Helpers for tests: of projects that use Prism Memory, and of stores written for it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .embedder import FakeEmbedder

if TYPE_CHECKING:
    from .conformance import StoreConformance
    from .indexes import IndexedStoreConformance

__all__ = ["FakeEmbedder", "IndexedStoreConformance", "StoreConformance"]

#: These import models, unittest and hypothesis, which a project's settings should not pay for.
LATER = {"IndexedStoreConformance": ".indexes", "StoreConformance": ".conformance"}


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(LATER[name], __name__), name)
