"""What a developer adds to give an assistant a memory: recall, hand over, remember."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prism_memory import CONVERSATION
from prism_memory.models import Memory
from prism_memory.recollection import Recollection

MODEL = "gpt-4o-mini"
INSTRUCTIONS = (
    "You are a helpful assistant. Where two recalled statements contradict each other, the later "
    "one holds."
)


def messages_for(question: str, relevant: Recollection) -> list[dict[str, str]]:
    """What the model gets: first what never changes, for the sake of prompt caches."""
    return [
        {"role": "system", "content": INSTRUCTIONS},
        *relevant.as_messages(),
        {"role": "user", "content": question},
    ]


def answer(owner: Any, question: str, complete: Callable[..., Any] | None = None) -> str:
    """Answer with the help of what this owner said before, and remember the exchange.

    ``complete`` is called like ``litellm.completion``, which is the default.
    """
    if complete is None:
        import litellm  # takes seconds, so not before it is needed

        complete = litellm.completion

    memory = Memory.objects.for_owner(owner, scope="assistant")
    relevant = memory.recall(question, budget=1500, weighting=CONVERSATION)
    completion = complete(model=MODEL, messages=messages_for(question, relevant))
    memory.remember([{"role": "user", "content": question}, completion])
    return completion.choices[0].message.content or ""
