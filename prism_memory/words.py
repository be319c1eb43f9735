"""The words of a text, as they are compared: folded, stemmed, without the commonest.

A word is a run of Unicode letters, digits and the marks on them, after NFKC and case folding.
Scripts that put no blanks between words (Han, kana, Thai, Lao, Khmer, Burmese; Hangul too, whose
particles cling to words) are cut into overlapping pairs of characters instead, and Han also into
single ones: the usual way to search them without a dictionary. Stems are those of Snowball
(Porter 1980; https://snowballstem.org), by the maintained library ``snowballstemmer``.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final

from .exceptions import ConfigurationError

__all__ = ["COMMON", "words"]

_ENGLISH: Final = """
    a about above after again against all am an and any are aren as at be because been before being
    below between both but by can cannot could couldn d did didn do does doesn doing don down during
    each few for from further had hadn has hasn have haven having he her here hers herself him
    himself his how i if in into is isn it its itself just ll m me more most my myself no nor not
    now of off on once only or other our ours ourselves out over own re s same she should shouldn so
    some such t than that the their theirs them themselves then there these they this those through
    to too under until up ve very was wasn we were weren what when where which while who whom why
    will with won would wouldn you your yours yourself yourselves
"""
#: Words that say nothing of a subject, by language; for others their frequency has to tell.
COMMON: Final = {"english": frozenset(_ENGLISH.split())}

#: Stems kept, per process: some 10 MB. A stem takes 20 to 40 µs to find.
STEMS: Final = 65_536
#: A longer run of letters is no word of any language, and stemmers take the square of its length.
LONGEST: Final = 64

_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_ASCII: Final = re.compile("[0-9A-Za-z]+")

_stemmers = threading.local()


def words(text: str, language: str | None) -> list[str]:
    """The words of a text in their order, repeats included. Language None: words as they stand.

    A language is one of ``LANGUAGES``. Texts in other scripts than its own keep their words.
    """
    if text.isascii():
        found = _ASCII.findall(text.lower())
    else:
        found = _any_script(unicodedata.normalize("NFKC", text).casefold())
    if language is None:
        return found
    common = COMMON.get(language, frozenset())
    return [_stem(language, word) for word in found if word not in common]


def _any_script(text: str) -> list[str]:
    if max(text) > "\uffff":  # mostly emoji
        text = "".join(c if c <= "\uffff" or _in_words(c) else " " for c in text)
    split: list[str] = _word().findall(text)
    if not _UNSPACED.search(text):
        return split
    found: list[str] = []
    for word in split:
        at = 0
        for run in _UNSPACED.finditer(word):
            found += [word[at : run.start()]] if run.start() > at else []
            found += _pairs(run[0])
            at = run.end()
        found += [word[at:]] if at < len(word) else []
    return found


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    return [one + other for one, other in pairwise(run)] + _HAN.findall(run)


@cache
def _word() -> re.Pattern[str]:
    """Runs of letters and digits with their marks, which Python's ``\\w`` leaves out.

    As one class of all that is neither, below U+10000: larger classes are ten times slower. It
    takes 30 ms to make, once a process.
    """
    others = ""
    for code in range(0x10000):
        # Variation selectors are marks, but say how a character looks and not which it is.
        if not _in_words(chr(code)) or 0xFE00 <= code <= 0xFE0F:
            others += f"\\u{code:04x}"
    return re.compile(f"[^{others}]+")


def _in_words(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN"


@lru_cache(maxsize=STEMS)
def _stem(language: str, word: str) -> str:
    return word if len(word) > LONGEST else _stemmer(language)(word)


def _stemmer(language: str) -> Callable[[str], str]:
    """This thread's stemmer: they keep the word that they work on in themselves."""
    if language not in vars(_stemmers):
        import snowballstemmer

        try:
            stemmer = snowballstemmer.stemmer(language)
        except KeyError:
            raise ConfigurationError(
                f'PRISM_MEMORY["RECALL"]["language"] is {language!r:.80}, which the installed '
                "snowballstemmer does not know.",
                hint="Upgrade it, or name another language, or None.",
            ) from None
        setattr(_stemmers, language, stemmer.stemWord)
    stem: Callable[[str], str] = getattr(_stemmers, language)
    return stem
