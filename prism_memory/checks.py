"""System checks: what ``manage.py check`` says of the settings. No I/O, no calls, no queries."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Warning

from . import backends
from .conf import NAME, problems, settings
from .exceptions import ConfigurationError

if TYPE_CHECKING:
    from .embedders import Embedder
    from .queues import Queue
    from .stores import VectorStore
    from .tokens import TokenCounter

__all__ = ["check_settings"]


def check_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check the shape of ``PRISM_MEMORY``, then every backend that it names."""
    wrong = [_as_message(problem) for problem in problems()]
    if wrong:
        return wrong  # what can't be read can't be built
    return [*_owners(), *_embedder(), *_token_counter(), *_stores(), *_queue()]


def _built(
    setting: str, make: Callable[[], Embedder | Queue | TokenCounter | VectorStore]
) -> Iterator[CheckMessage]:
    try:
        yield from make().check(setting)
    except ConfigurationError as error:
        yield _as_message(error)
    except Exception as error:  # noqa: BLE001 - a backend of the project's own may raise anything
        yield Error(
            f"{setting}: its check failed with {type(error).__qualname__}: {error}",
            hint="Correct the check() of this backend.",
            id="prism_memory.E006",
        )


def _as_message(error: ConfigurationError) -> CheckMessage:
    return Error(error.message, hint=error.hint, id=error.id)


def _owners() -> Iterator[CheckMessage]:
    from .owners import owner_models

    try:
        owner_models()
    except ConfigurationError as error:
        yield _as_message(error)


def _embedder() -> Iterator[CheckMessage]:
    yield from _built(settings().embedder.setting, backends.build_embedder)
    if "EMBEDDER" not in getattr(django_settings, NAME, {}):
        yield Warning(
            f'{NAME}["EMBEDDER"] is not set, so what people say is sent to OpenAI to be embedded.',
            hint=(
                "To stay on this machine: pip install 'prism-memory-django[local]' and "
                f'{NAME} = {{"EMBEDDER": {{"BACKEND": "prism_memory.embedders.LocalEmbedder"}}}}. '
                "To use OpenAI, or another provider, name it there."
            ),
            id="prism_memory.W001",
        )


def _token_counter() -> Iterator[CheckMessage]:
    yield from _built(settings().token_counter.setting, backends.build_token_counter)


def _queue() -> Iterator[CheckMessage]:
    from .queues import build_queue

    yield from _built(f'{NAME}["QUEUE"]', build_queue)


def _stores() -> Iterator[CheckMessage]:
    from .stores.registry import stores

    for alias in stores:
        yield from _built(stores.source(alias), partial(_store, alias))


def _store(alias: str) -> VectorStore:
    from .stores.contract import Durability
    from .stores.registry import stores, volatile

    store = stores.look_at(alias)
    # A property may ask a server; it is asked when the store is used.
    told = inspect.getattr_static(store, "durability")
    if settings().require_durable and told is Durability.VOLATILE:
        raise volatile(stores.source(alias), store)
    return store
