"""The settings: what is shipped, what merges, what replaces, and what is refused."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.test import override_settings

from prism_memory import backends, conf
from prism_memory.exceptions import ConfigurationError
from prism_memory.models import Memory
from prism_memory.stores import stores

FAKE = {"BACKEND": "prism_memory.testing.FakeEmbedder"}

#: What the documentation promises.
SHIPPED = {
    "OWNERS": ("auth.User",),
    "DEFAULT_SCOPE": "default",
    "EMBEDDER": {
        "BACKEND": "prism_memory.embedders.LiteLLMEmbedder",
        "OPTIONS": {"model": "text-embedding-3-small", "batch_size": 96},
    },
    "TOKEN_COUNTER": {
        "BACKEND": "prism_memory.tokens.TiktokenCounter",
        "OPTIONS": {"encoding": "o200k_base"},
    },
    "RECALL": {
        "limit": 8,
        "overfetch": 8,
        "min_score": None,
        "relevance": 1.0,
        "recency": 0.0,
        "wording": 0.0,
        "surroundings": 0.0,
        "half_life": 604800,
        "language": "english",
        "first_share": 0.25,
        "query_cache": 300,
    },
    "RETENTION": None,
    "QUEUE": "auto",
    "INLINE_DEADLINE": 10.0,
    "REQUIRE_DURABLE": True,
    "STORE": "default",
    "STORES": {
        "default": {
            "BACKEND": "prism_memory.stores.DatabaseStore",
            "OPTIONS": {"strategy": "signature", "bits": 256, "candidates": 256},
        }
    },
}


def given(**changed):
    return override_settings(PRISM_MEMORY={"EMBEDDER": FAKE, **changed})


def plain(entry) -> dict[str, object]:
    return {"BACKEND": entry.backend, "OPTIONS": dict(entry.options)}


class TestShipped:
    @pytest.mark.parametrize("empty", [True, False])
    def test_defaults_are_the_documented_ones(self, empty):
        with override_settings(PRISM_MEMORY={}):
            if not empty:
                del django_settings.PRISM_MEMORY
            found = conf.settings()
            assert {
                "OWNERS": found.owners,
                "DEFAULT_SCOPE": found.default_scope,
                "EMBEDDER": plain(found.embedder),
                "TOKEN_COUNTER": plain(found.token_counter),
                "RECALL": dict(found.recall),
                "RETENTION": found.retention,
                "QUEUE": found.queue,
                "INLINE_DEADLINE": found.inline_deadline,
                "REQUIRE_DURABLE": found.require_durable,
                "STORE": found.store,
                "STORES": {alias: plain(entry) for alias, entry in found.stores.items()},
            } == SHIPPED

    def test_every_key_has_a_default(self):
        assert list(conf.DEFAULTS) == list(SHIPPED)
        assert list(conf.RECALL_RULES) == list(SHIPPED["RECALL"])

    def test_defaults_build_what_they_name(self):
        with override_settings(PRISM_MEMORY={}):
            assert backends.embedder().model == "text-embedding-3-small"
            assert backends.embedder().batch_size == 96
            assert backends.token_counter().encoding == "o200k_base"
            store = stores["default"]
            assert (store.strategy, store.bits, store.candidates) == ("signature", 256, 256)

    def test_defaults_can_not_be_changed_by_what_reads_them(self):
        with override_settings(PRISM_MEMORY={}):
            conf.settings().embedder.options["model"] = "other"
            conf.settings().recall["limit"] = 99
        with override_settings(PRISM_MEMORY={}):
            assert conf.settings().embedder.options["model"] == "text-embedding-3-small"
            assert conf.settings().recall["limit"] == 8


class TestMerging:
    def test_recall_merges(self):
        with given(RECALL={"limit": 3}):
            assert conf.settings().recall == {**SHIPPED["RECALL"], "limit": 3}

    def test_backends_replace_the_default_whole(self):
        entry = {"BACKEND": "prism_memory.embedders.LiteLLMEmbedder", "OPTIONS": {"model": "m"}}
        with given(EMBEDDER=entry, TOKEN_COUNTER={"BACKEND": "tests.backends.NoOptions"}):
            assert conf.settings().embedder.options == {"model": "m"}
            assert conf.settings().token_counter.options == {}
            assert backends.token_counter().count("four") == 4

    def test_stores_replace_the_default_whole(self):
        entry = {"BACKEND": "prism_memory.stores.DatabaseStore", "OPTIONS": {"candidates": 9}}
        with given(STORES={"mine": entry}, STORE="mine"):
            assert list(conf.settings().stores) == list(stores) == ["mine"]
            assert conf.settings().stores["mine"].options == {"candidates": 9}


class TestRefusals:
    WRONG = [
        *(("OWNERS", value) for value in ("auth.User", [5], ["User"], {"a.B": 1})),
        *(("DEFAULT_SCOPE", value) for value in ("", None, 5, "a\0", "a" * 256, "\ud800")),
        *(("RETENTION", value) for value in (0, -1, "1", True, float("nan"), float("inf"), 1e15)),
        ("RETENTION", timedelta(days=1)),
        *(("QUEUE", value) for value in ("", None, True, 5)),
        *(("INLINE_DEADLINE", value) for value in (0, -1, None, "10", True, float("inf"), 1e10)),
        *(("REQUIRE_DURABLE", value) for value in (None, 1, "yes")),
        *(("STORE", value) for value in (None, 5, ["default"])),
        *(("STORES", value) for value in (None, {}, [], {5: FAKE, "default": FAKE})),
        *(("RECALL", value) for value in (None, [], 8)),
    ]
    WRONG_RECALL = [
        *(("limit", value) for value in (0, -1, 1.5, "8", None, True)),
        *(("overfetch", value) for value in (0, 1.5, None, True)),
        *(("min_score", value) for value in (-1.1, 2, "0", True, float("nan"))),
        *(("relevance", value) for value in (-1, "1", None, True, float("inf"), float("nan"))),
        *(("recency", value) for value in (-1, "1", None, float("inf"), 10**400)),
        *(("wording", value) for value in (-1, "1", None, True, float("inf"))),
        *(("surroundings", value) for value in (-1, "1", None, True, float("nan"))),
        *(("language", value) for value in ("klingon", "", "English", 3, True, ["english"])),
        *(("first_share", value) for value in (0, -0.5, 1.5, None, True, "0.5", float("nan"))),
        *(("half_life", value) for value in (0, -1, None, "1", float("inf"), 10**400)),
        *(("query_cache", value) for value in (-1, 1.5, None, True)),
    ]

    @pytest.mark.parametrize(("key", "value"), WRONG, ids=str)
    def test_of_a_wrong_value_name_setting_value_and_fix(self, key, value):
        with given(**{key: value}):
            [problem] = conf.problems()
            assert problem.id == "prism_memory.E002"
            assert problem.message == f'PRISM_MEMORY["{key}"] is {value!r:.80}.'
            assert problem.hint.startswith("It must be ")

    @pytest.mark.parametrize(("key", "value"), WRONG_RECALL, ids=lambda value: f"{value!r:.12}")
    def test_of_a_wrong_option_of_recall(self, key, value):
        with given(RECALL={key: value}):
            problem = conf.problems()[0]
            assert problem.id == "prism_memory.E002"
            assert problem.message == f'PRISM_MEMORY["RECALL"]["{key}"] is {value!r:.80}.'

    def test_of_a_recall_without_any_weight(self):
        with given(RECALL={"relevance": 0}):
            assert "no weight" in str(conf.problems()[0])

    def test_are_told_all_at_once(self):
        with given(QUEUE=5, STORE=5, RECALL={"limit": 0}, COLOUR="red"):
            assert len(conf.problems()) == 4

    @pytest.mark.django_db
    def test_are_the_same_on_first_use(self):
        with given(QUEUE=5):
            words = str(conf.problems()[0])
            for use in (
                lambda: Memory.objects.for_owner("ana"),
                lambda: stores["default"],
                backends.embedder,
                backends.token_counter,
            ):
                with pytest.raises(ConfigurationError) as caught:
                    use()
                assert str(caught.value) == words

    def test_do_not_show_what_options_may_hold(self):
        entry = {"BACKENDS": "typo", "OPTIONS": {"api_key": "sk-KEY-4711"}}
        with given(EMBEDDER=entry, STORES={"default": entry}):
            for problem in conf.problems():
                assert "sk-KEY" not in str(problem)


@pytest.mark.parametrize(
    "accepted",
    [
        *({"RETENTION": 86400}, {"RETENTION": 0.5}, {"RETENTION": 9_000_000_000}, {"OWNERS": []}),
        *({"OWNERS": ("auth.User",)}, {"QUEUE": "inline"}, {"QUEUE": "mail"}),
        *({"RECALL": {}}, {"RECALL": {"relevance": 0, "recency": 2}}, {"INLINE_DEADLINE": 1}),
        *({"RECALL": {"min_score": -1}}, {"RECALL": {"query_cache": 0}}, {"OWNERS": None}),
    ],
    ids=str,
)
@pytest.mark.django_db
def test_accepted_values_work(accepted):
    with given(**accepted):
        assert conf.problems() == []
        memory = Memory.objects.for_owner("ana").synchronously()
        memory.remember("I live in Graz.")
        assert len(memory.recall("Where do I live?")) == 1


class TestChanges:
    def test_reach_everything(self):
        before = (conf.settings(), backends.embedder(), backends.token_counter(), stores["default"])
        option = {"OPTIONS": {"dimensions": 8}}
        with given(EMBEDDER={**FAKE, **option}, DEFAULT_SCOPE="other"):
            assert backends.embedder().dimensions == 8
            assert conf.settings().default_scope == "other"
            assert stores["default"] is not before[-1]
        assert backends.embedder().dimensions == 64
        assert conf.settings().default_scope == "default"

    def test_of_other_settings_rebuild_nothing(self):
        before = (conf.settings(), backends.embedder(), stores["default"])
        with override_settings(TIME_ZONE="Europe/Vienna", DEBUG=True):
            assert before == (conf.settings(), backends.embedder(), stores["default"])

    def test_backends_are_one_for_all_threads(self):
        found = []
        threads = [
            threading.Thread(target=lambda: found.append((backends.embedder(), stores["default"])))
            for _ in range(8)
        ]
        with given():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len(found) == 8
        assert len(set(found)) == 1
