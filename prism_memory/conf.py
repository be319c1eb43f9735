"""The one reader of ``settings.PRISM_MEMORY``: defaults, merging and validation.

Reading constructs nothing and does no I/O. Every error carries the id of its system check, so that
``manage.py check`` and the first use say the same words.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.conf import settings as django_settings
from django.core.signals import setting_changed

from .exceptions import ConfigurationError
from .languages import LANGUAGES
from .texts import unstorable

__all__ = ["DEFAULTS", "BackendEntry", "MemorySettings", "Once", "problems", "settings"]

NAME = "PRISM_MEMORY"

# In seconds, some 285 years: timedelta, datetime and Thread.join() all take it.
LONGEST = 9_000_000_000

DEFAULTS: dict[str, Any] = {
    "OWNERS": None,  # the user model
    "DEFAULT_SCOPE": "default",
    "EMBEDDER": {
        "BACKEND": "prism_memory.embedders.LiteLLMEmbedder",
        "OPTIONS": {"model": "text-embedding-3-small", "batch_size": 96},
    },
    "TOKEN_COUNTER": {
        "BACKEND": "prism_memory.tokens.TiktokenCounter",
        "OPTIONS": {"encoding": "o200k_base"},
    },
    "RECALL": {
        "limit": 8,
        "overfetch": 8,
        "min_score": None,
        "relevance": 1.0,
        "recency": 0.0,
        "wording": 0.0,
        "surroundings": 0.0,
        "half_life": 604800,
        "language": "english",
        "first_share": 0.25,
        "query_cache": 300,
    },
    "RETENTION": None,
    "QUEUE": "auto",
    "INLINE_DEADLINE": 10.0,
    "REQUIRE_DURABLE": True,
    "STORE": "default",
    "STORES": {
        "default": {
            "BACKEND": "prism_memory.stores.DatabaseStore",
            "OPTIONS": {"strategy": "signature", "bits": 256, "candidates": 256},
        }
    },
}


@dataclass(frozen=True)
class BackendEntry:
    """A dotted path and the options of its constructor; ``setting`` names where it stands."""

    setting: str
    backend: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class MemorySettings:
    """The settings, merged with their defaults and of the right types."""

    owners: tuple[str, ...]
    default_scope: str
    embedder: BackendEntry
    token_counter: BackendEntry
    recall: Mapping[str, Any]
    retention: float | None
    queue: str | BackendEntry
    inline_deadline: float
    require_durable: bool
    store: str
    stores: Mapping[str, BackendEntry]


Value = TypeVar("Value")


class Once(Generic[Value]):
    """A value that is made on first use, once per process, and anew after a settings change."""

    instances: list[Once[Any]] = []

    def __init__(self, make: Callable[[], Value]) -> None:
        self.make = make
        self.lock = threading.RLock()
        self.made: list[Value] = []
        self.instances.append(self)

    def __call__(self) -> Value:
        with self.lock:
            if not self.made:
                self.made.append(self.make())
            return self.made[0]

    def reset(self) -> None:
        with self.lock:
            self.made.clear()


def _reset(*, setting: str, **kwargs: Any) -> None:
    if setting in {NAME, "AUTH_USER_MODEL", "RQ_QUEUES", "TASKS"}:
        for once in Once.instances:
            once.reset()


setting_changed.connect(_reset, dispatch_uid="prism_memory.conf")


def _seconds(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= LONGEST


def _whole(value: object, *, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _scope(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 255 and not unstorable(value)


def _share(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e308


SECONDS = f"a number of seconds above 0, at most {LONGEST:,}"

# key → (what it must be, in words; the test)
RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "OWNERS": (
        'a list of "app_label.ModelName" strings',
        lambda v: (
            v is None
            or (isinstance(v, (list, tuple)) and all(isinstance(m, str) and "." in m for m in v))
        ),
    ),
    "DEFAULT_SCOPE": ("a string of 1 to 255 characters that databases can store", _scope),
    "RETENTION": (f"None or {SECONDS}", lambda v: v is None or _seconds(v)),
    "QUEUE": (
        '"auto", "inline", the name of a django-rq queue, or {"BACKEND": …, "OPTIONS": …}',
        lambda v: isinstance(v, dict) or (isinstance(v, str) and v != ""),
    ),
    "INLINE_DEADLINE": (SECONDS, _seconds),
    "REQUIRE_DURABLE": ("True or False", lambda v: isinstance(v, bool)),
    "STORE": ("the alias of a store in STORES", lambda v: isinstance(v, str)),
    "RECALL": ("a dict", lambda v: isinstance(v, dict)),
    "STORES": (
        "a dict of alias to store, with at least one entry",
        lambda v: isinstance(v, dict) and v != {} and all(isinstance(alias, str) for alias in v),
    ),
}
RECALL_RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "limit": ("a whole number of at least 1", lambda v: _whole(v, least=1)),
    "overfetch": ("a whole number of at least 1", lambda v: _whole(v, least=1)),
    "min_score": (
        "None or a number from -1 to 1",
        lambda v: (
            v is None or (isinstance(v, (int, float)) and not isinstance(v, bool) and -1 <= v <= 1)
        ),
    ),
    "relevance": ("a number of at least 0", _share),
    "recency": ("a number of at least 0", _share),
    "wording": ("a number of at least 0", _share),
    "surroundings": ("a number of at least 0", _share),
    "half_life": (SECONDS, _seconds),
    "language": (
        f"None or one of {', '.join(sorted(LANGUAGES))}",
        lambda v: v is None or (isinstance(v, str) and v in LANGUAGES),
    ),
    "first_share": (
        "a number above 0, at most 1",
        lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) and 0 < v <= 1,
    ),
    "query_cache": (
        "a whole number of seconds, 0 for none",
        lambda v: _whole(v, least=0),
    ),
}


def _unknown(
    given: Mapping[Any, Any], known: Mapping[str, Any], setting: str
) -> Iterator[ConfigurationError]:
    for key in given:
        if key not in known:
            yield ConfigurationError(
                f"{setting} has the unknown key {key!r}.",
                hint=f"Known keys: {', '.join(known)}.",
                id="prism_memory.E001",
            )


def _entry_problems(setting: str, entry: object) -> Iterator[ConfigurationError]:
    hint = 'Give {"BACKEND": "dotted.path.Class", "OPTIONS": {…}}.'
    if not isinstance(entry, Mapping) or not isinstance(entry.get("BACKEND"), str):
        # Not the whole entry: its options may hold a key.
        found = entry.get("BACKEND") if isinstance(entry, Mapping) else entry
        yield ConfigurationError(
            f"{setting} names no BACKEND: {found!r:.80}.", hint=hint, id="prism_memory.E003"
        )
        return
    yield from _unknown(entry, {"BACKEND": 0, "OPTIONS": 0}, setting)
    options = entry.get("OPTIONS", {})
    if not isinstance(options, Mapping) or not all(isinstance(key, str) for key in options):
        yield ConfigurationError(
            f'{setting}["OPTIONS"] is not a dict of options.', hint=hint, id="prism_memory.E003"
        )


def _validate(given: object) -> Iterator[ConfigurationError]:
    if not isinstance(given, Mapping):
        yield ConfigurationError(
            f"{NAME} is {type(given).__name__}, not a dict.",
            hint="Give a dict.",
            id="prism_memory.E001",
        )
        return
    yield from _unknown(given, DEFAULTS, NAME)
    for key, (words, valid) in RULES.items():
        if key in given and not valid(given[key]):
            yield ConfigurationError(
                f'{NAME}["{key}"] is {given[key]!r:.80}.',
                hint=f"It must be {words}.",
                id="prism_memory.E002",
            )
    recall = given.get("RECALL", {})
    if isinstance(recall, dict):
        setting = f'{NAME}["RECALL"]'
        yield from _unknown(recall, RECALL_RULES, setting)
        for key, (words, valid) in RECALL_RULES.items():
            if key in recall and not valid(recall[key]):
                yield ConfigurationError(
                    f'{setting}["{key}"] is {recall[key]!r:.80}.',
                    hint=f"It must be {words}.",
                    id="prism_memory.E002",
                )
        merged = {**DEFAULTS["RECALL"], **recall}
        if merged["relevance"] == merged["recency"] == merged["wording"] == 0:
            yield ConfigurationError(
                f"{setting} gives relevance, recency and wording no weight.",
                hint="At least one of the three must be above 0.",
                id="prism_memory.E002",
            )
    for key in ("EMBEDDER", "TOKEN_COUNTER"):
        if key in given:
            yield from _entry_problems(f'{NAME}["{key}"]', given[key])
    entries = given.get("STORES", DEFAULTS["STORES"])
    if isinstance(entries, dict):
        for alias, entry in entries.items():
            yield from _entry_problems(f'{NAME}["STORES"][{alias!r}]', entry)
        chosen = given.get("STORE", DEFAULTS["STORE"])
        if entries and isinstance(chosen, str) and chosen not in entries:
            yield ConfigurationError(
                f'{NAME}["STORE"] is {chosen!r}, which STORES does not define.',
                hint=f"Defined: {', '.join(map(repr, entries))}.",
                id="prism_memory.E004",
            )


def _given() -> Any:
    return getattr(django_settings, NAME, {})


def problems() -> list[ConfigurationError]:
    """Return everything that is wrong with the shape of the settings."""
    return list(_validate(_given()))


def _read() -> MemorySettings:
    for problem in problems():
        raise problem
    merged: dict[str, Any] = {**copy.deepcopy(DEFAULTS), **_given()}

    def entry(setting: str, value: Mapping[str, Any]) -> BackendEntry:
        return BackendEntry(setting, value["BACKEND"], dict(value.get("OPTIONS", {})))

    owners = merged["OWNERS"]
    return MemorySettings(
        owners=(django_settings.AUTH_USER_MODEL,) if owners is None else tuple(owners),
        default_scope=merged["DEFAULT_SCOPE"],
        embedder=entry(f'{NAME}["EMBEDDER"]', merged["EMBEDDER"]),
        token_counter=entry(f'{NAME}["TOKEN_COUNTER"]', merged["TOKEN_COUNTER"]),
        recall={**DEFAULTS["RECALL"], **merged["RECALL"]},
        retention=merged["RETENTION"],
        queue=(
            entry(f'{NAME}["QUEUE"]', merged["QUEUE"])
            if isinstance(merged["QUEUE"], Mapping)
            else merged["QUEUE"]
        ),
        inline_deadline=float(merged["INLINE_DEADLINE"]),
        require_durable=merged["REQUIRE_DURABLE"],
        store=merged["STORE"],
        stores={
            alias: entry(f'{NAME}["STORES"][{alias!r}]', value)
            for alias, value in merged["STORES"].items()
        },
    )


#: The settings as they are now; raises ConfigurationError for the first problem.
settings: Once[MemorySettings] = Once(_read)
