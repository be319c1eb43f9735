"""What the app shows of itself, and what it costs to start."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys

import pytest

import prism_memory
from prism_memory import embedders, exceptions, stores, tokens

HEAVY = [
    "numpy",
    "litellm",
    "tiktoken",
    "model2vec",
    "rq",
    "django_rq",
    "redis",
    "openai",
    "pymilvus",
]

FACES = {
    prism_memory: ["CONVERSATION", "Provenance", "Weighting", "__version__"],
    embedders: ["TEXT_FORMAT", "Embedder", "LiteLLMEmbedder", "LocalEmbedder"],
    stores: [
        *("DatabaseStore", "Durability", "Entry", "IndexedStore", "Matches"),
        *(
            "MilvusStore",
            "Neighbours",
            "Nominations",
            "OutboxStore",
            "Search",
            "TableStore",
            "VectorMatch",
            "VectorQuery",
        ),
        *("VectorRecord", "VectorStore", "default_store", "remove_space", "stores"),
    ],
    tokens: ["HeuristicCounter", "TiktokenCounter", "TokenCounter"],
}


@pytest.mark.parametrize("module", FACES, ids=lambda module: module.__name__)
def test_a_package_shows_what_is_promised(module):
    assert sorted(module.__all__) == sorted(FACES[module])
    for name in module.__all__:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("module", FACES, ids=lambda module: module.__name__)
def test_what_is_not_there_is_missed_as_usual(module):
    with pytest.raises(AttributeError, match="nonsense"):
        module.nonsense  # noqa: B018


def test_all_exceptions_are_shown_and_have_one_base():
    found = {
        name
        for name, value in vars(exceptions).items()
        if inspect.isclass(value) and value.__module__ == exceptions.__name__
    }
    assert found == set(exceptions.__all__)
    for name in found:
        error = getattr(exceptions, name)
        assert issubclass(error, exceptions.PrismMemoryError)
        assert error.__doc__


def test_a_missing_store_is_a_key_error_with_its_words_unquoted():
    with pytest.raises(KeyError) as caught:
        stores.stores["nope"]
    assert str(caught.value).startswith("There is no store 'nope'")


def imported(code: str) -> list[str]:
    """The heavy packages that a new process has imported after some code."""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    code += f"\nimport json, sys; print(json.dumps([n for n in {HEAVY} if n in sys.modules]))"
    shown = subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, env=environment
    )
    return json.loads(shown.stdout)


STARTED = "import django; django.setup(); "


def test_the_app_can_be_named_without_importing_anything_heavy():
    assert imported("import prism_memory.apps") == []


@pytest.mark.parametrize(
    "use",
    [
        "pass",
        "from prism_memory.models import Memory; Memory.objects.for_owner('ana').collection",
        "from prism_memory.stores import stores, VectorRecord",
        "from prism_memory.embedders import LiteLLMEmbedder; LiteLLMEmbedder(model='m').space",
        "from prism_memory.embedders import LocalEmbedder; LocalEmbedder().space",
        "from prism_memory.tokens import HeuristicCounter; HeuristicCounter().count('four')",
        "from django.contrib import admin; admin.autodiscover()",
        "from django.urls import get_resolver; get_resolver().check()",
    ],
)
def test_starting_up_imports_nothing_heavy(use):
    assert imported(STARTED + use) == []
