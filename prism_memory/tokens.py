"""How many tokens a text costs a model: exactly with tiktoken, or estimated without it.

Nothing here uses the network, and tiktoken is imported at the first count. A counter of your own is
a subclass of :class:`TokenCounter`, named in ``PRISM_MEMORY["TOKEN_COUNTER"]``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import tempfile
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .exceptions import ConfigurationError, EncodingUnavailable
from .token_estimate import estimate

if TYPE_CHECKING:
    from django.core.checks import CheckMessage
    from tiktoken import Encoding

__all__ = ["HeuristicCounter", "TiktokenCounter", "TokenCounter"]

SETTING = 'PRISM_MEMORY["TOKEN_COUNTER"]'
NO_FILE = "Or configure prism_memory.tokens.HeuristicCounter, which needs no file."

_encodings: dict[str, Encoding] = {}
_lock = threading.Lock()

# tiktoken fails on a run of a million blanks, so that longer runs than this are counted in pieces.
# A cut lowered the sum by two tokens at most, in 20,000 cuts: they are added, lest it fall short.
LONGEST_BLANK = 500_000
PER_CUT = 2
# No token stands for more characters than this.
LONGEST_TOKEN = 128
BLANK = re.compile(r"\s+")


class TokenCounter:
    """Counts tokens. Called often and from several threads; constructors do no I/O."""

    def count(self, text: str) -> int:
        """How many tokens `text` is to the model, alone and without a message around it."""
        raise NotImplementedError

    def check(self, setting: str) -> list[CheckMessage]:
        """System check messages; `setting` names the entry that configured this counter."""
        return []


class TiktokenCounter(TokenCounter):
    """Counts with one of tiktoken's encodings, found on this machine and never downloaded.

    The encoding's files are looked for where tiktoken keeps what it once downloaded, then in the
    folder that litellm ships. A file counts only if its hash is the one that tiktoken expects.
    System checks do no I/O, so an encoding that is missing is an error at the first count.
    """

    def __init__(self, *, encoding: str = "o200k_base") -> None:
        if not isinstance(encoding, str):
            raise ConfigurationError(f"{SETTING}: encoding {encoding!r} is not a string.")
        self.encoding = encoding

    def count(self, text: str) -> int:
        """The exact number of tokens. What looks like a special token counts as ordinary text.

        A lone surrogate, which has no UTF-8, counts as the replacement character. Raises
        EncodingUnavailable, or ConfigurationError for an unknown encoding.
        """
        encoding = _encodings.get(self.encoding) or self._load()
        if len(text) <= LONGEST_BLANK:
            return len(encoding.encode_ordinary(text))
        cuts = [0]
        for run in BLANK.finditer(text):
            cuts += range(run.start() + LONGEST_BLANK, run.end(), LONGEST_BLANK)
        pieces = [text[start:end] for start, end in pairwise([*cuts, len(text)])]
        counts = [len(encoding.encode_ordinary(piece)) for piece in pieces]
        return sum(counts) + PER_CUT * (len(counts) - 1)

    def cut(self, text: str, limit: int) -> str:
        """The beginning of a text, of at most `limit` tokens. Raises like count()."""
        if self.count(text) <= limit:
            return text
        encoding = _encodings[self.encoding]
        # A cut can leave a part of a character, or a piece that is encoded otherwise at the end.
        for length in range(limit, 0, -1):
            tokens = encoding.encode_ordinary(text[: limit * LONGEST_TOKEN])[:length]
            beginning = encoding.decode_bytes(tokens).decode("utf-8", "ignore")
            if self.count(beginning) <= limit:
                return beginning
        return ""

    def _load(self) -> Encoding:
        def read(url: str, expected_hash: str | None = None) -> bytes:
            return _read(url, expected_hash, self.encoding)

        with _lock:
            if self.encoding not in _encodings:
                parts = _parts(self.encoding, read)
                from tiktoken import Encoding

                _encodings[self.encoding] = Encoding(**parts)
            return _encodings[self.encoding]


def _parts(encoding: str, read: Callable[..., bytes]) -> dict[str, Any]:
    """What tiktoken makes an encoding of, from the files that `read` returns.

    By itself tiktoken downloads what it does not find and deletes what has another hash. Hence its
    code runs in private copies of two modules, in which `read` stands in for that: neither the
    host's tiktoken nor its environment is touched.
    """
    loading, public = _copy("tiktoken.load"), _copy("tiktoken_ext.openai_public")
    known = public.ENCODING_CONSTRUCTORS
    if encoding not in known:
        hint = f"Known encodings: {', '.join(sorted(known))}."
        raise ConfigurationError(f"{SETTING}: unknown encoding {encoding!r}.", hint=hint)
    if not hasattr(loading, "read_file_cached"):  # what would be used instead might download
        message = f"{SETTING}: {encoding!r} can't be read with this version of tiktoken."
        raise EncodingUnavailable(message, hint=NO_FILE)
    vars(loading)["read_file_cached"] = read
    for loader in ("load_tiktoken_bpe", "data_gym_to_mergeable_bpe_ranks"):
        vars(public)[loader] = getattr(loading, loader)
    parts: dict[str, Any] = known[encoding]()
    return parts


def _copy(name: str) -> ModuleType:
    """A module's code, run in a module object that nobody else sees."""
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:
        spec = None
    if spec is None or spec.loader is None:
        message = f"{SETTING}: {name} can't be imported."
        raise EncodingUnavailable(message, hint=f"Install tiktoken. {NO_FILE}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _read(url: str, expected_hash: str | None, encoding: str) -> bytes:
    """The file that tiktoken would download, from the first folder that holds it unharmed."""
    looked = []
    for folder in _folders():
        path = folder / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
        try:
            data = path.read_bytes()
        except OSError:
            looked.append(f"{folder} (no {path.name})")
            continue
        if expected_hash in (None, hashlib.sha256(data).hexdigest()):
            return data
        looked.append(f"{folder} ({path.name} is there, but its hash is wrong)")
    raise EncodingUnavailable(
        f"{SETTING}: encoding {encoding!r} is not on this machine; looked in {'; '.join(looked)}.",
        hint="Nothing is downloaded on its own. Where there is a network, run once: python -c "
        f"\"import tiktoken; tiktoken.get_encoding('{encoding}')\", with TIKTOKEN_CACHE_DIR set to "
        f"a folder that the application has too. Or take an encoding that litellm ships. {NO_FILE}",
    )


def _folders() -> list[Path]:
    """Where encodings may lie: tiktoken's folders, as it finds them, then litellm's."""
    given = [os.environ.get(f"{name}_CACHE_DIR") for name in ("TIKTOKEN", "DATA_GYM")]
    folders = [Path(folder) for folder in given if folder]
    folders.append(Path(tempfile.gettempdir(), "data-gym-cache"))
    try:
        # Finding a top-level package does not import it; litellm's import takes seconds.
        spec = importlib.util.find_spec("litellm")
    except ValueError:  # a stand-in without a spec
        spec = None
    packages = (spec and spec.submodule_search_locations) or ()
    return folders + [Path(package, "litellm_core_utils", "tokenizers") for package in packages]


class HeuristicCounter(TokenCounter):
    """Estimates by script, without any file or dependency: made to rarely fall short by much.

    :mod:`prism_memory.token_estimate` says how, and how far it was off for which kind of text.
    """

    def count(self, text: str) -> int:
        """About how many tokens `text` is. An empty text is none."""
        return estimate(text)
