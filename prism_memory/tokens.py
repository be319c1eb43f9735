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

_encodings: dict[str, Encoding] = {}
_lock = threading.Lock()

# tiktoken fails on a run of a million blanks. No text needs that many, so a run is cut after each
# half million. A cut changes the count by two tokens at most (measured), which are added.
LONG_BLANK = re.compile(r"\s{500000}(?=\s)")


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
        whole, start = 0, 0
        for cut in LONG_BLANK.finditer(text):
            whole += len(encoding.encode_ordinary(text[start : cut.end()])) + 2
            start = cut.end()
        return whole + len(encoding.encode_ordinary(text[start:] if start else text))

    def check(self, setting: str) -> list[CheckMessage]:
        """An error if the encoding is unknown, or its file is not on this machine."""
        from django.core.checks import Error

        def find(url: str, expected_hash: str | None = None) -> bytes:
            _read(url, expected_hash, setting, self.encoding)
            raise _Found

        try:
            _parts(self.encoding, setting, find)
        except _Found:
            return []
        except ConfigurationError as error:
            return [Error(str(error), id="prism_memory.E010")]
        return []

    def _load(self) -> Encoding:
        from tiktoken import Encoding

        def read(url: str, expected_hash: str | None = None) -> bytes:
            return _read(url, expected_hash, SETTING, self.encoding)

        with _lock:
            if self.encoding not in _encodings:
                _encodings[self.encoding] = Encoding(**_parts(self.encoding, SETTING, read))
            return _encodings[self.encoding]


class _Found(Exception):  # noqa: N818 - good news
    """Ends a check as soon as a file was found, before it is parsed."""


def _parts(encoding: str, setting: str, read: Callable[..., bytes]) -> dict[str, Any]:
    """What tiktoken makes an encoding of, from the files that `read` returns.

    By itself tiktoken downloads what it does not find and deletes what has another hash. Hence its
    code runs in private copies of two modules, in which `read` stands in for that: neither the
    host's tiktoken nor its environment is touched.
    """
    loading, public = _copy("tiktoken.load"), _copy("tiktoken_ext.openai_public")
    known = public.ENCODING_CONSTRUCTORS
    if encoding not in known:
        names = ", ".join(sorted(known))
        raise ConfigurationError(f"{setting}: unknown encoding {encoding!r}. Known are: {names}.")
    if not hasattr(loading, "read_file_cached"):
        raise EncodingUnavailable(f"{setting}: this tiktoken reads its files in a way of its own.")
    vars(loading)["read_file_cached"] = read
    for loader in ("load_tiktoken_bpe", "data_gym_to_mergeable_bpe_ranks"):
        vars(public)[loader] = getattr(loading, loader)
    parts: dict[str, Any] = known[encoding]()
    return parts


def _copy(name: str) -> ModuleType:
    """A module's code, run in a module object that nobody else sees."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise EncodingUnavailable(f"{SETTING}: {name} is missing. Install tiktoken.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _read(url: str, expected_hash: str | None, setting: str, encoding: str) -> bytes:
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
        f"{setting}: the encoding {encoding!r} is not on this machine. Looked in "
        f"{'; '.join(looked)}. Nothing is downloaded on its own: run "
        f"`python -c 'import tiktoken; tiktoken.get_encoding({encoding!r})'` once where there is a "
        "network, with TIKTOKEN_CACHE_DIR naming a folder that goes along with the application; or "
        "choose o200k_base or cl100k_base, which litellm ships; or prism_memory.tokens."
        "HeuristicCounter, which needs no file."
    )


def _folders() -> list[Path]:
    """Where encodings may lie: tiktoken's folders, as it finds them, then litellm's."""
    given = [os.environ.get(f"{name}_CACHE_DIR") for name in ("TIKTOKEN", "DATA_GYM")]
    folders = [Path(folder) for folder in given if folder]
    folders.append(Path(tempfile.gettempdir(), "data-gym-cache"))
    # Finding a top-level package does not import it; litellm's import takes seconds.
    spec = importlib.util.find_spec("litellm")
    for package in (spec and spec.submodule_search_locations) or ():
        folders.append(Path(package, "litellm_core_utils", "tokenizers"))
    return folders


class HeuristicCounter(TokenCounter):
    """Estimates by script, without any file or dependency: made to rarely fall short by much.

    :mod:`prism_memory.token_estimate` says how, and how far it was off for which kind of text.
    """

    def count(self, text: str) -> int:
        """About how many tokens `text` is. An empty text is none."""
        return estimate(text)
