"""Real text from files that the machine has: documentation, docstrings and comments of packages.

Collects distinct English sentences of 4 to 40 words from under the running interpreter's prefixes
(and from any other roots), in an order that a seed fixes.
"""

from __future__ import annotations

import random
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["collect"]

SUFFIXES = {".py", ".pyi", ".rst", ".md", ".txt"}
LARGEST = 2_000_000
SEED = 0

DOCSTRING = re.compile(r'"""(.*?)"""|\'\'\'(.*?)\'\'\'', re.DOTALL)
COMMENTS = re.compile(r"(?:^[ \t]*#[^\n]*\n?)+", re.MULTILINE)
HASH = re.compile(r"^[ \t]*#+:?[ \t]?", re.MULTILINE)
PARAGRAPH = re.compile(r"\n\s*\n|\n\s*[-*]\s+|\n\s*:?[\w ,*]+:\s")
END = re.compile(r"(?<=[a-z)'\"`][.!?])\s+(?=[A-Z`\"'(])")
MARKUP = re.compile(r":[a-z:]+:`~?|``?|\*\*")
WORD = re.compile(r"[A-Za-z']+")


def collect(count: int, roots: Iterable[Path] = ()) -> list[str]:
    """Return up to ``count`` distinct sentences, shuffled by the seed.

    Files are read in the order of their paths until there are one and a half times as many.
    """
    found: dict[str, None] = {}
    for path in _files([*default_roots(), *roots]):
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        found.update(dict.fromkeys(sentences(text, code=path.suffix in {".py", ".pyi"})))
        if len(found) >= count * 3 // 2:
            break
    ordered = list(found)
    random.Random(SEED).shuffle(ordered)
    return ordered[:count]


def default_roots() -> list[Path]:
    paths = sysconfig.get_paths()
    return list(dict.fromkeys(Path(paths[name]) for name in ("purelib", "platlib", "stdlib")))


def sentences(text: str, *, code: bool) -> Iterator[str]:
    """Yield the sentences of a document, or of the docstrings and comments of source code."""
    for part in _prose(text) if code else [text]:
        for paragraph in PARAGRAPH.split(part):
            for sentence in END.split(" ".join(paragraph.split())):
                sentence = MARKUP.sub("", sentence).strip()
                if _is_prose(sentence):
                    yield sentence


def _prose(source: str) -> Iterator[str]:
    for match in DOCSTRING.finditer(source):
        yield match[1] or match[2] or ""
    for match in COMMENTS.finditer(source):
        yield HASH.sub("", match[0])


def _is_prose(sentence: str) -> bool:
    """Whether it is words rather than code, tables or rules."""
    if not 20 <= len(sentence) <= 300 or not sentence[0].isupper():
        return False
    words = WORD.findall(sentence)
    return 4 <= len(words) <= 40 and sum(map(len, words)) >= 0.72 * len(sentence)


def _files(roots: Iterable[Path]) -> Iterator[Path]:
    seen: set[Path] = set()
    for root in roots:
        for path in sorted(root.rglob("*")):
            if path.suffix in SUFFIXES and path not in seen:
                seen.add(path)
                if path.is_file() and path.stat().st_size <= LARGEST:
                    yield path


if __name__ == "__main__":
    for sentence in collect(int(sys.argv[1]), map(Path, sys.argv[2:])):
        print(sentence)
