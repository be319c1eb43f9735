"""Every terminal method has an async twin that does the same."""

from __future__ import annotations

import inspect

import pytest

from prism_memory.exceptions import EmbeddingUnavailable, InvalidMessage
from prism_memory.memory import OwnerMemory
from prism_memory.models import Memory

TERMINAL = ["remember", "embed_pending", "recall", "forget", "forget_before", "count", "pending"]

pytestmark = pytest.mark.django_db(transaction=True)


def ana():
    return Memory.objects.for_owner("ana").synchronously()


def test_there_is_a_twin_of_every_terminal_method_and_of_no_other():
    public = {name for name in vars(OwnerMemory) if not name.startswith("_")}
    twins = {name for name in public if inspect.iscoroutinefunction(getattr(OwnerMemory, name))}
    assert twins == {"a" + name for name in TERMINAL}
    assert public - twins - {"collection", "records", "synchronously"} == set(TERMINAL)


@pytest.mark.parametrize("name", TERMINAL)
def test_a_twin_takes_what_its_method_takes(name):
    method = inspect.signature(getattr(OwnerMemory, name)).parameters
    twin = inspect.signature(getattr(OwnerMemory, "a" + name)).parameters
    assert list(twin) == list(method)
    for parameter in method:
        assert twin[parameter].kind == method[parameter].kind
        assert twin[parameter].default == method[parameter].default


def run(coroutine):
    from asgiref.sync import async_to_sync

    async def wait():
        return await coroutine

    return async_to_sync(wait)()


def test_the_twins_do_what_their_methods_do(embedder):
    async def converse():
        memory = ana()
        ids = await memory.aremember(
            ["I live in Graz.", "I work in Linz."], {"k": 1}, "2024-03-01T12:00:00Z"
        )
        assert await memory.acount() == 2
        assert await memory.apending() == 0
        found = await memory.arecall("Where do I live?", limit=1, filter={"k": 1})
        assert [memory.content for memory in found] == ["I live in Graz."]
        assert await memory.aforget(ids[:1]) == 1
        assert await memory.aforget_before("2025-01-01") == 1
        await memory.aremember("I live in Wien.")
        assert await memory.aforget() == 1
        assert await memory.aforget([]) == 0
        assert await memory.aembed_pending() == 0

    run(converse())


def test_errors_come_through(embedder):
    embedder.failure = ConnectionError("refused")
    with pytest.raises(EmbeddingUnavailable):
        run(ana().aremember("I live in Graz."))
    with pytest.raises(InvalidMessage):
        run(ana().aremember(5))
    assert run(ana().apending()) == 1
