"""What ``manage.py check`` says, by the ids of its messages."""

# ruff: noqa: N802 - ids are written as they are shown

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from prism_memory import backends
from prism_memory.checks import check_settings
from prism_memory.exceptions import ConfigurationError
from prism_memory.stores import stores

from .backends import VolatileStore

FAKE = {"BACKEND": "prism_memory.testing.FakeEmbedder"}


def messages(**given):
    with override_settings(PRISM_MEMORY={"EMBEDDER": FAKE, **given}):
        found = [m for m in run_checks() if m.id.startswith(("prism_memory", "tests."))]
        assert [m for m in found if m.id.startswith("prism_memory")] == [
            m for m in check_settings(None) if m.id.startswith("prism_memory")
        ]
    return found


def the_message(id, **given):
    """The only message; it has the id, names a setting, and says what to do."""
    [message] = messages(**given)
    assert message.id == f"prism_memory.{id}"
    assert message.msg.startswith("PRISM_MEMORY")
    assert message.hint
    return message


def same_words_on_use(message, use, **given):
    with override_settings(PRISM_MEMORY={"EMBEDDER": FAKE, **given}):
        with pytest.raises(ConfigurationError) as caught:
            use()
        assert str(caught.value) == f"{message.msg} {message.hint}"
        assert caught.value.id == message.id


def test_nothing_is_wrong_with_the_tests_settings():
    assert messages() == []


@pytest.mark.parametrize("given", [None, [], "x", 5])
def test_E001_settings_are_no_dict(given):
    with override_settings(PRISM_MEMORY=given):
        [message] = check_settings(None)
        assert message.id == "prism_memory.E001"
        assert type(given).__name__ in message.msg


def test_E001_unknown_keys():
    message = the_message("E001", EMBEDER=FAKE)
    assert "'EMBEDER'" in message.msg
    assert "EMBEDDER" in message.hint
    assert "'limits'" in the_message("E001", RECALL={"limits": 8}).msg
    message = the_message("E001", STORES={"default": {"BACKEND": "x.Y", "OPTION": {}}})
    assert message.msg == """PRISM_MEMORY["STORES"]['default'] has the unknown key 'OPTION'."""
    assert "5" in the_message("E001", RECALL={5: 8}).msg


def test_E002_wrong_types():
    message = the_message("E002", QUEUE=5)
    assert message.msg == 'PRISM_MEMORY["QUEUE"] is 5.'
    same_words_on_use(message, backends.embedder, QUEUE=5)


@pytest.mark.parametrize(
    "entry", [None, "tests.backends.NoOptions", {}, {"BACKEND": None}, {"OPTIONS": {}}, 5]
)
@pytest.mark.parametrize("key", ["EMBEDDER", "TOKEN_COUNTER", "STORES"])
def test_E003_an_entry_without_a_backend(key, entry):
    given = {key: {"default": entry} if key == "STORES" else entry}
    assert the_message("E003", **given).msg.startswith(f'PRISM_MEMORY["{key}"]')


@pytest.mark.parametrize("options", [None, [], "x", {5: 1}])
def test_E003_options_that_are_no_dict_of_names(options):
    the_message("E003", EMBEDDER={**FAKE, "OPTIONS": options})


def test_E004_a_store_that_is_not_defined():
    message = the_message("E004", STORE="mine")
    assert "'mine'" in message.msg
    assert "'default'" in message.hint
    same_words_on_use(message, lambda: stores["default"], STORE="mine")


@pytest.mark.parametrize(
    "path",
    [
        *("", ".", "..", "..x", "nowhere", "nowhere.Embedder", "tests.backends.Nobody", " "),
        *("tests.backends.Nothing", "tests.backends.NOT_A_CLASS", "tests.backends.NoOptions"),
        *("tests.broken.Embedder", "prism_memory.embedders", "tests.backends.FakeEmbedder.embed"),
    ],
)
def test_E005_a_backend_that_is_none(path, monkeypatch):
    message = the_message("E005", EMBEDDER={"BACKEND": path})
    assert repr(path) in message.msg
    same_words_on_use(message, backends.embedder, EMBEDDER={"BACKEND": path})


def test_E005_a_module_that_raises(monkeypatch):
    class Finder:
        def find_spec(self, name, *args):
            if name == "tests_that_raise":
                raise RuntimeError("no")

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    the_message("E005", TOKEN_COUNTER={"BACKEND": "tests_that_raise.Counter"})


def test_E005_of_other_kinds():
    the_message("E005", TOKEN_COUNTER={"BACKEND": "tests.backends.AnyOptions"})
    the_message("E005", STORES={"default": {"BACKEND": "tests.backends.NoOptions"}})


class TestE006Options:
    def test_unknown(self):
        entry = {**FAKE, "OPTIONS": {"dimension": 8, "colour": "red"}}
        message = the_message("E006", EMBEDDER=entry)
        assert "'dimension', 'colour'" in message.msg
        assert "dimensions" in message.hint
        same_words_on_use(message, backends.embedder, EMBEDDER=entry)
        entry = {"BACKEND": "tests.backends.NoOptions", "OPTIONS": {"encoding": "x"}}
        assert "no options" in the_message("E006", TOKEN_COUNTER=entry).hint

    def test_unknown_to_a_backend_that_takes_any_are_its_own_affair(self):
        entry = {"BACKEND": "tests.backends.AnyOptions", "OPTIONS": {"colour": "red"}}
        assert messages(EMBEDDER=entry) == []

    def test_missing(self):
        entry = {"BACKEND": "prism_memory.embedders.LiteLLMEmbedder"}
        assert "'model'" in the_message("E006", EMBEDDER=entry).msg

    @pytest.mark.parametrize(
        "error", [ValueError, TypeError, KeyError, RuntimeError, OSError, AssertionError]
    )
    def test_refused(self, error):
        entry = {"BACKEND": "tests.backends.Particular", "OPTIONS": {"error": error}}
        message = the_message("E006", EMBEDDER=entry)
        assert "The colour is wrong." in message.msg
        same_words_on_use(message, backends.embedder, EMBEDDER=entry)

    @pytest.mark.parametrize(
        "options",
        [{"strategy": "fast"}, {"bits": 100}, {"bits": 0}, {"candidates": 0}, {"bits": "256"}],
    )
    def test_of_the_default_store(self, options):
        entry = {"BACKEND": "prism_memory.stores.DatabaseStore", "OPTIONS": options}
        message = the_message("E006", STORES={"default": entry})
        assert str(next(iter(options))) in message.msg
        same_words_on_use(message, lambda: stores["default"], STORES={"default": entry})

    @pytest.mark.parametrize(
        "options", [{}, {"space": ""}, {"space": 5}, {"space": "x", "batch_size": 0}]
    )
    def test_that_leave_an_embedder_without_what_the_app_needs(self, options):
        entry = {"BACKEND": "tests.backends.Nameless", "OPTIONS": options}
        message = the_message("E006", EMBEDDER=entry)
        same_words_on_use(message, backends.embedder, EMBEDDER=entry)

    def test_a_check_that_crashes(self):
        message = the_message("E006", EMBEDDER={"BACKEND": "tests.backends.Uncheckable"})
        assert "RuntimeError" in message.msg


def test_E007_an_owner_that_is_no_model():
    for label in ("tests.Nobody", "nowhere.User", "a.b.c", ".", "auth."):
        assert label in the_message("E007", OWNERS=["auth.User", label]).msg


def test_E008_a_volatile_store():
    entry = {"default": {"BACKEND": "tests.backends.VolatileStore"}}
    message = the_message("E008", STORES=entry)
    assert "REQUIRE_DURABLE" in message.hint
    same_words_on_use(message, lambda: stores["default"], STORES=entry)
    assert messages(STORES=entry, REQUIRE_DURABLE=False) == []
    assert messages(STORES={"default": {"BACKEND": "tests.backends.DurableStore"}}) == []


def test_E008_a_volatile_store_that_code_registered():
    stores.register("lossy", VolatileStore())
    try:
        [message] = messages()
        assert message.id == "prism_memory.E008"
        assert message.msg.startswith("the registered store 'lossy': VolatileStore")
        same_words_on_use(message, lambda: stores["lossy"])
        assert messages(REQUIRE_DURABLE=False) == []
    finally:
        stores.unregister("lossy")


def test_W001_texts_would_go_to_openai():
    with override_settings(PRISM_MEMORY={}):
        [message] = [m for m in check_settings(None) if m.id == "prism_memory.W001"]
    assert "OpenAI" in message.msg
    assert "LocalEmbedder" in message.hint
    entry = {"BACKEND": "prism_memory.embedders.LiteLLMEmbedder", "OPTIONS": {"model": "m"}}
    assert messages(EMBEDDER=entry) == []


def test_a_backends_own_messages_are_passed_on():
    [message] = messages(EMBEDDER={"BACKEND": "tests.backends.Warned"})
    assert message.id == "tests.W001"
    assert message.msg == 'PRISM_MEMORY["EMBEDDER"] is odd.'


def test_checks_of_the_defaults_do_no_io_and_import_nothing_heavy():
    """In a new process, in which sockets and databases are out of reach."""
    code = """
import json, socket, sys
def refuse(*args, **kwargs):
    raise AssertionError("a check opened a connection")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "prism_memory"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "nowhere"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.db.backends.base.base import BaseDatabaseWrapper
BaseDatabaseWrapper.connect = BaseDatabaseWrapper.cursor = refuse
from prism_memory.checks import check_settings
ids = [message.id for message in check_settings(None)]
heavy = ["litellm", "tiktoken", "model2vec", "rq", "openai", "django_rq"]
print(json.dumps([ids, [name for name in heavy if name in sys.modules]]))
"""
    shown = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
    assert json.loads(shown.stdout) == [["prism_memory.W001"], []]
