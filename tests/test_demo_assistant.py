"""The example's assistant: the lines that a developer adds, with a model that is none."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from example_project.demo.assistant import INSTRUCTIONS, answer
from prism_memory.models import Memory

pytestmark = pytest.mark.django_db


class Model:
    """Called like ``litellm.completion``; keeps what it was asked."""

    def __call__(self, *, model, messages):
        self.messages = messages
        message = SimpleNamespace(role="assistant", content="Quay Lane 12.")
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])


@pytest.fixture
def own(user, embedder):
    return Memory.objects.for_owner(user, scope="assistant").synchronously()


def test_the_model_gets_instructions_memories_and_question(user, own):
    own.remember([{"role": "user", "content": "My address is Quay Lane 12."}])
    model = Model()
    assert answer(user, "What is my address?", complete=model) == "Quay Lane 12."
    instructions, relevant, question = model.messages
    assert instructions == {"role": "system", "content": INSTRUCTIONS}
    assert relevant["role"] == "system"
    assert relevant["content"].endswith(" user: My address is Quay Lane 12.")
    assert question == {"role": "user", "content": "What is my address?"}


def test_the_exchange_is_remembered(user, own, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        answer(user, "What is my address?", complete=Model())
    assert [(each.role, each.content) for each in own.recall("address")] == [
        ("user", "What is my address?"),
        ("assistant", "Quay Lane 12."),
    ]
    assert own.pending() == 0


def test_without_memories_there_is_no_message_about_them(user, embedder):
    model = Model()
    answer(user, "Hello?", complete=model)
    assert [message["role"] for message in model.messages] == ["system", "user"]
