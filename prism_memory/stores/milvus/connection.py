"""The connection to Milvus: made when it is needed, one a process, and with a deadline."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from ...exceptions import ConfigurationError

__all__ = [
    "Connection",
    "NotAnswered",
    "NotFound",
    "NotLoaded",
    "imported",
    "is_file",
    "missing",
]

#: Error codes: of pymilvus when it can't connect, and of a server for a collection that is not
#: there, or not in memory.
NO_CONNECTION, NOT_FOUND, NOT_LOADED = 2, 100, 101
#: Seconds for which a server that let a call run out of time is not asked again.
REST = 5.0
#: gRPC waits up to two minutes before it looks whether a server is back.
GRPC_OPTIONS = {
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.min_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1_000,
}
LOGGERS = ("pymilvus", "pymilvus.milvus_client", "pymilvus.bulk_writer")


class NotAnswered(Exception):
    """A call failed; the message names the kind of failure and quotes nothing."""


class NotFound(NotAnswered):
    """The server has no such collection."""


class NotLoaded(NotAnswered):
    """The server has the collection, but not in memory."""


class Connection:
    """A client of pymilvus, thread-safe, and made anew in a process that was forked.

    ``timeout``: seconds that a call may take, connecting included.
    """

    def __init__(self, uri: str, token: str, db_name: str, timeout: float) -> None:
        self.timeout = timeout
        self._address = {"uri": uri, "token": token, "db_name": db_name}
        self._inherited: list[Any] = []
        self._begin()

    def __repr__(self) -> str:
        return f"<Connection to {self._address['uri']}>"

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._client: Any = None
        self._silent_until = 0.0
        #: Collections that were found in the memory of the server.
        self.loaded: set[str] = set()

    def call(self, method: str, *args: Any, timeout: float | None = None, **kwargs: Any) -> Any:
        """Call a method of MilvusClient. Raises NotAnswered and its kin."""
        if self._pid != os.getpid():
            # The sockets are the parent's: they are left alone, and so not even closed.
            self._inherited.append(self._client)
            self._begin()
        timeout = self.timeout if timeout is None else timeout
        with self._failures(timeout):
            return getattr(self._connected(), method)(*args, timeout=timeout, **kwargs)

    def _connected(self) -> Any:
        if self._client is None:
            with self._lock:
                if self._client is None:
                    self._refuse_silent()
                    self._client = self._connect()
        self._refuse_silent()
        return self._client

    def _connect(self) -> Any:
        if error := missing(self._address["uri"]):
            raise error
        client = imported().MilvusClient(
            **self._address, timeout=self.timeout, dedicated=True, grpc_options=GRPC_OPTIONS
        )
        close = weakref.finalize(self, _close, client, os.getpid())
        close.atexit = False
        return client

    def _refuse_silent(self) -> None:
        if time.monotonic() < self._silent_until:
            raise NotAnswered("it let a call run out of time a moment ago")

    @contextmanager
    def _failures(self, timeout: float) -> Iterator[None]:
        imported()
        import grpc
        from pymilvus.exceptions import MilvusException

        began = time.monotonic()
        try:
            yield
        except MilvusException as error:
            kinds = {NOT_FOUND: NotFound, NOT_LOADED: NotLoaded}
            reason = f"{type(error).__qualname__} {error.code}"
            if error.code == NO_CONNECTION:
                reason += " (no connection)"
            raise self._told(kinds.get(error.code, NotAnswered), reason, began, timeout) from None
        except (grpc.RpcError, grpc.FutureTimeoutError, OSError) as error:
            code = error.code().name if isinstance(error, grpc.Call) else ""
            reason = f"{type(error).__qualname__} {code}".rstrip()
            raise self._told(NotAnswered, reason, began, timeout) from None

    def _told(
        self, kind: type[NotAnswered], reason: str, began: float, timeout: float
    ) -> NotAnswered:
        elapsed = time.monotonic() - began
        if kind is NotAnswered and elapsed >= min(timeout, self.timeout):
            self._silent_until = time.monotonic() + REST
            reason += f" after {elapsed:.1f} s"
        return kind(reason)


def missing(uri: str) -> ConfigurationError | None:
    """Return the error that says which package a uri needs and is not there; import nothing."""
    wanted = {"pymilvus": "milvus", **({"milvus_lite": "milvus-lite"} if is_file(uri) else {})}
    for module, extra in wanted.items():
        if find_spec(module) is None:
            return ConfigurationError(
                f"MilvusStore needs the package {module}, which is not installed.",
                hint=f"pip install 'prism-memory-django[{extra}]'.",
                id="prism_memory.E011",
            )
    return None


def is_file(uri: str) -> bool:
    """Whether a uri is the path of a Milvus Lite file."""
    return uri.endswith(".db")


def imported() -> Any:
    """Return pymilvus, imported when it is needed, and leave logging as the project has it.

    Its import gives its loggers handlers and levels, over what the project has set up. Failures
    are told by exceptions; so without a level of the project's own, it does not tell them again.
    """
    if "pymilvus" in sys.modules:
        return sys.modules["pymilvus"]
    if error := missing(""):
        raise error
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(logger.level, logger.handlers[:], logger.propagate) for logger in loggers]
    import pymilvus

    for logger, (level, handlers, propagate) in zip(loggers, before, strict=True):
        logger.setLevel(level or logging.CRITICAL)
        logger.handlers[:] = handlers
        logger.propagate = propagate
    return pymilvus


def _close(client: Any, pid: int) -> None:
    if pid == os.getpid():
        client.close()
