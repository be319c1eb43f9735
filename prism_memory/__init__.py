"""Prism Memory: durable memory for AI assistants, as a Django app."""

from .provenance import Provenance
from .weighting import Weighting

__version__ = "0.1.0"
__all__ = ["Provenance", "Weighting", "__version__"]
