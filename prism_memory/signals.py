"""Signals for metrics and audits: counts and keys, never content.

Receivers get ``collection``, its name, and:

* ``embedded``: ``count``, how many records got a vector.
* ``failed``: ``failures``, a map of record id to the kind of failure.
* ``recalled``: ``count``, how many memories were recalled; ``rows_ranked`` and ``vectors_scored``.
* ``forgotten``: ``count``, how many records were erased.

``sender`` is the class of the store; of ``forgotten``, the model ``Memory``. What a receiver raises
is logged by Django and goes no further. A receiver runs inside the transaction of the call; use
``transaction.on_commit`` for what must not happen when that is rolled back.
"""

from __future__ import annotations

from django.dispatch import Signal

__all__ = ["embedded", "failed", "forgotten", "recalled"]

embedded = Signal()
failed = Signal()
recalled = Signal()
forgotten = Signal()
