"""Prism Memory: durable memory for AI assistants, as a Django app."""

from .provenance import Provenance
from .weighting import CONVERSATION, Weighting

__version__ = "0.1.0"
__all__ = ["CONVERSATION", "Provenance", "Weighting", "__version__"]
