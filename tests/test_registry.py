"""``stores[alias]``: one of each a process, whoever asks first, and told apart when volatile."""

from __future__ import annotations

import threading

import pytest
from django.test import override_settings

from prism_memory.checks import check_settings
from prism_memory.exceptions import ConfigurationError, UnknownStore, VolatileStore
from prism_memory.models import Memory
from prism_memory.stores import DatabaseStore, Durability, default_store, stores

from .backends import AskingStore, DurableStore, SlowStore
from .backends import VolatileStore as Volatile

DEFAULT = {"BACKEND": "prism_memory.stores.DatabaseStore"}


def configured(**options):
    given = {"EMBEDDER": {"BACKEND": "prism_memory.testing.FakeEmbedder"}, **options}
    return override_settings(PRISM_MEMORY=given)


def named(backend: str) -> dict[str, dict[str, str]]:
    return {"default": DEFAULT, "other": {"BACKEND": f"tests.backends.{backend}"}}


@pytest.fixture
def asking(monkeypatch):
    monkeypatch.setattr(AskingStore, "asked", 0)
    return lambda answer: monkeypatch.setattr(AskingStore, "answer", answer)


class TestOneAProcess:
    def test_also_when_many_threads_ask_at_once(self, monkeypatch):
        monkeypatch.setattr(SlowStore, "built", 0)
        start, found = threading.Barrier(8), []

        def ask():
            start.wait()
            found.append(stores["other"])

        threads = [threading.Thread(target=ask) for _ in range(8)]
        with configured(STORES=named("SlowStore")):
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert (len(found), len(set(found)), SlowStore.built) == (8, 1, 1)

    def test_until_settings_change(self):
        with configured():
            first = stores["default"]
            assert stores["default"] is first
        with configured():
            assert stores["default"] is not first

    def test_with_its_alias(self):
        with configured(STORES=named("DurableStore"), STORE="other"):
            assert default_store() is stores["other"]
            assert isinstance(stores["other"], DurableStore)
            assert [stores[alias].alias for alias in stores] == ["default", "other"]


class TestAStoreThatDoesNotAnswer:
    """Is no concern of those who use another."""

    def test_holds_up_no_other(self, asking, monkeypatch):
        asked, answer, in_vain = threading.Event(), threading.Event(), threading.Event()

        def durability(self):
            asked.set()
            if not answer.wait(10):
                in_vain.set()
            return Durability.DURABLE

        monkeypatch.setattr(AskingStore, "durability", property(durability))
        with configured(STORES=named("AskingStore")):
            thread = threading.Thread(target=lambda: stores["other"], daemon=True)
            thread.start()
            assert asked.wait(60)
            # Now the other thread is in the middle of asking, and stays there.
            assert isinstance(stores["default"], DatabaseStore)
            assert not in_vain.is_set()
            answer.set()
            thread.join(60)

    @pytest.mark.django_db
    def test_is_not_asked_by_writes_to_the_tables(self, asking, user):
        asking(OSError("refused"))
        with configured(STORES=named("AskingStore")):
            memory = Memory.objects.for_owner(user).synchronously()
            memory.remember("a cat")
            assert len(memory.recall("cat")) == 1
            assert memory.forget() == 1
        assert AskingStore.asked == 0


class TestUnknown:
    def test_lists_the_known_ones(self):
        with (
            configured(STORES=named("DurableStore")),
            pytest.raises(UnknownStore, match=r"'nope'.*Known: 'default', 'other'"),
        ):
            stores["nope"]
        assert "nope" not in stores

    def test_a_path_of_nothing(self):
        with (
            configured(STORES={"default": {"BACKEND": "no.such.Store"}}),
            pytest.raises(ConfigurationError, match=r"STORES.*'default'.*no\.such\.Store"),
        ):
            stores["default"]


class TestRegister:
    def test_adds_and_replaces_and_survives_settings(self):
        added, instead = DurableStore(), DatabaseStore()
        stores.register("added", added)
        stores.register("default", instead)
        try:
            with configured():
                assert stores["added"] is added
                assert stores["default"] is instead
                assert set(stores) == {"default", "added"}
        finally:
            stores.unregister("added")
            stores.unregister("default")
        assert stores["default"] is not instead
        assert "added" not in stores

    def test_leaves_the_others_as_they_are(self, monkeypatch):
        monkeypatch.setattr(SlowStore, "built", 0)
        with configured(STORES=named("SlowStore")):
            before = stores["other"]
            stores.register("added", DurableStore())
            stores.unregister("added")
            assert stores["other"] is before
        assert SlowStore.built == 1

    def test_a_volatile_one_is_refused_as_well(self):
        stores.register("lossy", Volatile())
        try:
            with configured(), pytest.raises(VolatileStore, match=r"the registered store 'lossy'"):
                stores["lossy"]
            with configured(REQUIRE_DURABLE=False):
                assert isinstance(stores["lossy"], Volatile)
        finally:
            stores.unregister("lossy")


class TestDurability:
    def test_a_volatile_store_says_what_would_be_lost(self):
        with (
            configured(STORES=named("VolatileStore")),
            pytest.raises(VolatileStore, match=r"what people said.*REQUIRE_DURABLE"),
        ):
            stores["other"]

    def test_one_that_asks_is_refused_by_what_its_server_says(self, asking):
        asking(Durability.VOLATILE)
        with configured(STORES=named("AskingStore")), pytest.raises(VolatileStore):
            stores["other"]
        asking(Durability.DURABLE)
        with configured(STORES=named("AskingStore")):
            assert stores["other"] is stores["other"]
        assert AskingStore.asked == 2

    def test_it_is_not_asked_where_it_does_not_matter(self, asking):
        asking(OSError("refused"))
        with configured(STORES=named("AskingStore"), REQUIRE_DURABLE=False):
            assert isinstance(stores["other"], AskingStore)
        assert AskingStore.asked == 0

    def test_a_server_that_can_t_be_asked_is_asked_again(self, asking):
        with configured(STORES=named("AskingStore")):
            asking(OSError("refused"))
            with pytest.raises(OSError, match="refused"):
                stores["other"]
            asking(Durability.DURABLE)
            assert isinstance(stores["other"], AskingStore)

    def test_checks_ask_nobody(self, asking):
        asking(OSError("refused"))
        with configured(STORES=named("AskingStore")):
            assert check_settings(None) == []
        assert AskingStore.asked == 0
