"""QUEUE: "auto": a queue while a worker is there, and otherwise none."""

from __future__ import annotations

import time

from django.core.checks import CheckMessage

from .base import Decision
from .rq import HOLDS, RQQueue, in_words, redis_deadline

__all__ = ["AutoQueue"]

#: The queue that "auto" uses.
AUTO = "default"


class AutoQueue(RQQueue):
    """The queue "default" while Redis answers and a live worker listens; otherwise inline.

    A decision holds for some seconds, so that it costs a save no round trip. One call waits for
    Redis no longer than PATIENCE, for the decision and the job together.
    """

    def __init__(self) -> None:
        super().__init__(AUTO)
        self.decision = Decision(None, "")
        self.decided_until = 0.0

    def check(self, setting: str) -> list[CheckMessage]:
        return []  # without the queue, embedding runs inline

    def decide(self) -> Decision:
        return self._decided(redis_deadline())

    def enqueue(self, alias: str, collection: str) -> bool:
        deadline = redis_deadline()
        if self._decided(deadline).queue is None:
            return False
        if problem := self._put(alias, collection, deadline):
            self._hold(Decision(None, problem))
            return False
        return True

    def _decided(self, deadline: float) -> Decision:
        if time.monotonic() >= self.decided_until:
            self._hold(self._look(deadline))
        return self.decision

    def _hold(self, decision: Decision) -> None:
        self.decision, self.decided_until = decision, time.monotonic() + HOLDS

    def _look(self, deadline: float) -> Decision:
        if problem := self._misfit():
            return Decision(None, problem)
        try:
            alive, reason = self._ask(self._listening, deadline)
        except Exception as error:  # noqa: BLE001 - any failure means that there is no worker
            return Decision(None, in_words(error))
        return Decision(self.name if alive else None, reason)
