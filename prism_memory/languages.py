"""The languages whose words can be stemmed, apart from ``words`` so that settings load fast."""

from __future__ import annotations

from typing import Final

__all__ = ["LANGUAGES"]

_LANGUAGES: Final = """
    arabic armenian basque catalan czech danish dutch english esperanto estonian finnish french
    german greek hindi hungarian indonesian irish italian lithuanian nepali norwegian persian polish
    portuguese romanian russian serbian sesotho spanish swedish tamil turkish yiddish
"""
#: What ``RECALL["language"]`` may be, besides None: the languages of snowballstemmer 3.1.
LANGUAGES: Final = frozenset(_LANGUAGES.split())
