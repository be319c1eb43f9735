"""Django's own tasks (Django 6.0 and newer): any backend of the setting ``TASKS``."""

from __future__ import annotations

import logging
from functools import cached_property
from typing import Any

import django
from django.core.checks import CheckMessage, Error

from ..exceptions import ConfigurationError
from .base import Decision, Queue

__all__ = ["TasksQueue"]

logger = logging.getLogger("prism_memory.queue")


class TasksQueue(Queue):
    """Enqueues the job as a task. ``backend``: an alias in ``TASKS``; ``queue_name``: its queue."""

    def __init__(self, *, backend: str = "default", queue_name: str = "default") -> None:
        if django.VERSION < (6, 0):
            raise ConfigurationError(
                f"django.tasks needs Django 6.0 or newer; this is {django.get_version()}"
            )
        self.backend = backend
        self.queue_name = queue_name

    def check(self, setting: str) -> list[CheckMessage]:
        try:
            _ = self._task
        except Exception as error:  # noqa: BLE001 - TASKS may name anything
            return [
                Error(
                    f"{setting}: TASKS has no such place for a task ({error}).",
                    hint="Correct backend and queue_name in OPTIONS, or the setting TASKS.",
                    id="prism_memory.E010",
                )
            ]
        return []

    def decide(self) -> Decision:
        return Decision(self.queue_name, f"django.tasks, backend {self.backend!r}")

    def enqueue(self, alias: str, collection: str) -> bool:
        try:
            self._task.enqueue(alias, collection)
        except Exception as error:  # noqa: BLE001 - the caller's rows are committed
            logger.warning(
                "django.tasks took no job for %s (%s).",
                collection, type(error).__name__, extra={"collection": collection},
            )  # fmt: skip
        return True

    @cached_property
    def _task(self) -> Any:
        from .task import embed_collection

        return embed_collection.using(backend=self.backend, queue_name=self.queue_name)
