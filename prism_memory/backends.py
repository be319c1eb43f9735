"""Builds what a settings entry names: a dotted path and the options of its constructor."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, TypeVar

from django.utils.module_loading import import_string

from .conf import Once, settings
from .exceptions import ConfigurationError

if TYPE_CHECKING:
    from .conf import BackendEntry
    from .embedders import Embedder
    from .tokens import TokenCounter

__all__ = ["build", "build_embedder", "build_token_counter", "embedder", "token_counter"]

Backend = TypeVar("Backend")


def build(entry: BackendEntry, base: type[Backend]) -> Backend:
    """Construct the backend of a settings entry. Constructors do no I/O.

    Raises ConfigurationError when it can't be imported, is of the wrong kind, or does not take the
    options; the message names the setting and the value.
    """
    try:
        backend = import_string(entry.backend)
    except Exception as error:  # a module may raise anything
        raise ConfigurationError(
            f"{entry.setting}: {entry.backend!r} can't be imported ({error}).",
            hint="Give the dotted path of a class that is installed.",
            id="prism_memory.E005",
        ) from error
    if not (isinstance(backend, type) and issubclass(backend, base)):
        raise ConfigurationError(
            f"{entry.setting}: {entry.backend!r} is not a {base.__module__}.{base.__qualname__}.",
            hint="Name a subclass of it.",
            id="prism_memory.E005",
        )
    parameters = inspect.signature(backend).parameters
    known = [
        name for name, parameter in parameters.items() if parameter.kind != parameter.VAR_KEYWORD
    ]
    if len(known) == len(parameters):
        unknown = [name for name in entry.options if name not in known]
        if unknown:
            raise ConfigurationError(
                f"{entry.setting}: unknown options {', '.join(map(repr, unknown))}.",
                hint=f"{entry.backend} takes: {', '.join(known) or 'no options'}.",
                id="prism_memory.E006",
            )
    try:
        return backend(**entry.options)
    except Exception as error:  # and so may a constructor
        raise ConfigurationError(
            f"{entry.setting}: {entry.backend} refuses its options ({error}).",
            hint="Correct the options.",
            id="prism_memory.E006",
        ) from error


def build_embedder() -> Embedder:
    """Construct the configured embedder, and make sure that it says what the app needs to know."""
    from .embedders import Embedder

    entry = settings().embedder
    embedder = build(entry, Embedder)
    space, size = getattr(embedder, "space", None), embedder.batch_size
    if not isinstance(space, str) or space == "":
        raise ConfigurationError(
            f"{entry.setting}: the space of {entry.backend} is {space!r:.80}.",
            hint='Set it to a string that names model and width, such as "my-model@256".',
        )
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ConfigurationError(
            f"{entry.setting}: the batch_size of {entry.backend} is {size!r:.80}.",
            hint="Set it to a whole number of at least 1.",
        )
    return embedder


def build_token_counter() -> TokenCounter:
    """Construct the configured token counter."""
    from .tokens import TokenCounter

    return build(settings().token_counter, TokenCounter)


#: The configured embedder, one per process.
embedder: Once[Embedder] = Once(build_embedder)

#: The configured token counter, one per process.
token_counter: Once[TokenCounter] = Once(build_token_counter)
