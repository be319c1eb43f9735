"""Deleting an owner forgets its memories, in the same transaction."""

from __future__ import annotations

import logging

import pytest
from django.db import DatabaseError, InterfaceError, transaction
from django.db.models.signals import post_delete
from django.test import override_settings

from prism_memory.managers import MemoryQuerySet
from prism_memory.models import Embedding, Memory, SignaturePage, Space

from .factories import (
    AccountFactory,
    EmployeeFactory,
    PersonFactory,
    ProfileFactory,
    ProxyUserFactory,
    StrangerFactory,
    TeamFactory,
    UserFactory,
)
from .models import Employee, Profile, ProxyUser, Stranger, Team, User

EMBEDDER = {"BACKEND": "prism_memory.testing.FakeEmbedder"}
OWNERS = ["auth.User", "tests.Person", "tests.Team", "tests.Profile", "tests.Account"]
FACTORIES = [
    *(UserFactory, ProxyUserFactory, EmployeeFactory, AccountFactory),
    *(PersonFactory, TeamFactory, ProfileFactory),
]


@pytest.fixture
def every_owner(db):
    with override_settings(PRISM_MEMORY={"EMBEDDER": EMBEDDER, "OWNERS": OWNERS}):
        yield


def remember(owner, *scopes):
    for scope in scopes or ["default", "support"]:
        Memory.objects.for_owner(owner, scope).synchronously().remember(["one", "two"])


def nothing_is_left() -> bool:
    return not any(model.objects.exists() for model in (Memory, Embedding, SignaturePage))


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: factory.__name__)
def test_every_kind_of_owner_takes_its_memories_along(every_owner, factory):
    owner, other = factory(), factory()
    remember(owner)
    remember(other)
    owner.delete()
    assert Memory.objects.count() == Embedding.objects.count() == 4
    assert Memory.objects.for_owner(other, "support").count() == 2
    other.delete()
    assert nothing_is_left()


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: factory.__name__)
def test_so_does_a_queryset_of_owners(every_owner, factory):
    owners = [factory(), factory()]
    kept = factory()
    for owner in [*owners, kept]:
        remember(owner)
    type(kept).objects.filter(pk__in=[owner.pk for owner in owners]).delete()
    assert Memory.objects.count() == 4
    assert Memory.objects.for_owner(kept).count() == 2


class TestTheSameRowByAnotherModel:
    @pytest.fixture
    def employee(self, every_owner):
        employee = EmployeeFactory()
        remember(employee)
        return employee

    @pytest.mark.parametrize("model", [User, ProxyUser, Employee])
    def test_deleted_as_an_instance(self, employee, model):
        model.objects.get(pk=employee.pk).delete()
        assert nothing_is_left()

    @pytest.mark.parametrize("model", [User, ProxyUser, Employee])
    def test_deleted_by_a_queryset(self, employee, model):
        model.objects.all().delete()
        assert nothing_is_left()

    def test_a_child_alone_takes_nothing_along(self, employee):
        employee.delete(keep_parents=True)
        assert Memory.objects.count() == 4

    def test_listed_as_a_proxy(self, db):
        with override_settings(PRISM_MEMORY={"EMBEDDER": EMBEDDER, "OWNERS": ["tests.ProxyUser"]}):
            users = [UserFactory(), ProxyUserFactory()]
            for user in users:
                remember(user)
            users[1].delete()
            User.objects.all().delete()
            assert nothing_is_left()

    def test_listed_as_a_child(self, db):
        with override_settings(PRISM_MEMORY={"EMBEDDER": EMBEDDER, "OWNERS": ["tests.Employee"]}):
            employee = EmployeeFactory()
            remember(employee)
            UserFactory().delete()
            assert Memory.objects.count() == 4
            User.objects.get(pk=employee.pk).delete()
            assert nothing_is_left()


def test_a_cascade_from_another_model_takes_memories_along(every_owner):
    profile = ProfileFactory()
    remember(profile)
    remember(profile.user)
    profile.user.delete()
    assert not Profile.objects.exists()
    assert nothing_is_left()


def test_strings_and_other_owners_with_that_key_keep_theirs(every_owner):
    user = UserFactory()
    namesakes = [str(user.pk), f"auth.User{user.pk}", AccountFactory(pk=user.pk)]
    namesakes += [TeamFactory(slug=str(user.pk)), UserFactory()]
    for owner in [user, *namesakes]:
        remember(owner, "default")
    user.delete()
    for owner in namesakes:
        assert Memory.objects.for_owner(owner).count() == 2


def test_spaces_outlive_their_last_memory(user):
    remember(user)
    user.delete()
    assert Space.objects.count() == 1


def test_a_rolled_back_deletion_forgets_nothing(user):
    remember(user)
    pk = user.pk
    with transaction.atomic():
        user.delete()
        assert nothing_is_left()
        transaction.set_rollback(True)
    assert Memory.objects.for_owner(User.objects.get(pk=pk)).count() == 2
    assert Memory.objects.for_owner(User.objects.get(pk=pk)).recall("one")


def test_when_forgetting_fails_the_owner_stays(user, monkeypatch):
    remember(user)

    def fail(self):
        raise DatabaseError("no")

    monkeypatch.setattr(MemoryQuerySet, "delete", fail)
    with pytest.raises(DatabaseError), transaction.atomic():
        user.delete()
    assert User.objects.exists()


class TestOthersStayFast:
    def test_no_receiver_listens_to_every_model(self):
        assert post_delete.has_listeners(User)
        for model in (Stranger, Team, Memory, Embedding):
            assert not post_delete.has_listeners(model)

    @pytest.mark.django_db
    def test_their_rows_are_deleted_by_one_statement(self, django_assert_num_queries):
        StrangerFactory.create_batch(3)
        with django_assert_num_queries(1):
            Stranger.objects.all().delete()

    def test_what_is_no_longer_listed_is_no_longer_listened_to(self):
        with override_settings(PRISM_MEMORY={"OWNERS": ["tests.Team"]}):
            assert post_delete.has_listeners(Team)
            assert not post_delete.has_listeners(User)
        assert post_delete.has_listeners(User)
        assert not post_delete.has_listeners(Team)

    def test_a_wrong_list_is_left_to_the_check(self):
        with override_settings(PRISM_MEMORY={"OWNERS": ["tests.Nobody"]}):
            assert not post_delete.has_listeners(User)
        assert post_delete.has_listeners(User)


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
class TestMemoriesInAnotherDatabase:
    @pytest.fixture(autouse=True)
    def _elsewhere(self, transactional_db):
        with override_settings(DATABASE_ROUTERS=["tests.routers.MemoriesElsewhere"]):
            yield

    def failing(self, monkeypatch, error, times):
        """Have the deletion of memories fail so many times; return what counts the attempts."""
        attempts = []
        delete = MemoryQuerySet.delete

        def fail_first(queryset):
            attempts.append(queryset)
            if len(attempts) <= times:
                raise error
            return delete(queryset)

        monkeypatch.setattr(MemoryQuerySet, "delete", fail_first)
        return attempts

    def test_are_forgotten_when_the_deletion_commits(self):
        user = UserFactory()
        remember(user)
        with transaction.atomic():
            user.delete()
            assert Memory.objects.count() == 4
        assert nothing_is_left()

    def test_stay_when_it_is_rolled_back(self):
        user = UserFactory()
        remember(user)
        with transaction.atomic():
            user.delete()
            transaction.set_rollback(True)
        assert Memory.objects.count() == 4

    @pytest.mark.parametrize("error", [DatabaseError("SECRET"), InterfaceError("SECRET")])
    def test_are_forgotten_although_the_first_attempts_fail(self, monkeypatch, caplog, error):
        user = UserFactory()
        remember(user)
        attempts = self.failing(monkeypatch, error, 2)
        user.delete()
        assert len(attempts) == 3
        assert nothing_is_left()
        assert "SECRET" not in caplog.text

    def test_are_named_in_the_log_when_all_attempts_fail(self, monkeypatch, caplog):
        user = UserFactory()
        remember(user)
        self.failing(monkeypatch, DatabaseError("SECRET"), 99)
        user.delete()  # and the caller goes on
        assert not User.objects.exists()
        assert Memory.objects.count() == 4
        record = caplog.records[-1]
        assert record.levelno == logging.ERROR
        assert "memory_orphans" in record.getMessage()
        assert "SECRET" not in caplog.text
