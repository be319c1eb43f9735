"""Whom memories belong to: who is accepted, who is told apart, who is refused."""

from __future__ import annotations

import enum
import uuid

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import override_settings
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from prism_memory.exceptions import ConfigurationError, InvalidOwner
from prism_memory.models import Memory
from prism_memory.owners import Owner, address

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
from .models import Employee, Person, ProxyUser, Team, User

EVERY_MODEL = ["auth.User", "tests.Person", "tests.Team", "tests.Profile", "tests.Account"]
FACTORIES = [
    *(UserFactory, ProxyUserFactory, EmployeeFactory, AccountFactory),
    *(PersonFactory, TeamFactory, ProfileFactory),
]
#: Some database takes some of these for the same text.
LOOKALIKES = [
    *("a", "A", "ab", "aa", "a_", "a%", "á", "a\u0301", "ä", "a ", " a", "a\t", "a\n", "à"),
    *("😀", "🚀", "ß", "ss", "ﬀ", "ff", "İ", "i", "ı", "I", "𝒂", "a\u200b", "_", "%", "\\"),
    *("'", '"', "5", "05", "5.0", "auth.User", "auth.User:5", "None", "null", "['a']", "a|b"),
]


def listed(*labels):
    return override_settings(
        PRISM_MEMORY={
            "EMBEDDER": {"BACKEND": "prism_memory.testing.FakeEmbedder"},
            "OWNERS": list(labels or EVERY_MODEL),
        }
    )


def owner_of(owner) -> Owner:
    return address(owner).owner


def refusal(owner, scope=None) -> str:
    with pytest.raises(InvalidOwner) as caught:
        Memory.objects.for_owner(owner, scope=scope)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


@pytest.mark.django_db
@pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: factory.__name__)
def test_an_instance_of_every_kind_of_model_remembers_apart_from_others(factory, embedder):
    with listed():
        one, other = factory(), factory()
        ids = Memory.objects.for_owner(one).remember("I live in Graz.")
        Memory.objects.for_owner(other).remember("I live in Linz.")
        again = Memory.objects.for_owner(type(one).objects.get(pk=one.pk))
        assert [row.record_id for row in again.records()] == ids
        assert Memory.objects.for_owner(SimpleLazyObject(lambda: one)).count() == 1


@pytest.mark.django_db
def test_proxies_and_children_of_a_listed_model_are_its_rows():
    employee = EmployeeFactory()
    expected = owner_of(User.objects.get(pk=employee.pk))
    assert expected == Owner("auth.User", str(employee.pk))
    assert owner_of(employee) == expected
    assert owner_of(ProxyUser.objects.get(pk=employee.pk)) == expected
    with listed("tests.ProxyUser"):
        assert owner_of(User.objects.get(pk=employee.pk)) == expected


@pytest.mark.django_db
def test_a_listed_child_model_is_an_owner_of_its_own():
    with listed("tests.Employee"):
        employee = EmployeeFactory()
        assert owner_of(employee) == Owner("tests.Employee", str(employee.pk))
        assert "does not list" in refusal(User.objects.get(pk=employee.pk))


@pytest.mark.django_db
def test_a_key_is_normalised_by_its_field():
    with listed():
        key = uuid.uuid4()
        person = Person(id=key.hex)
        person.save()
        assert owner_of(person) == Owner("tests.Person", str(key))
        user = User(id="4711", username="text")
        user.save()
        assert owner_of(user) == Owner("auth.User", "4711")


@pytest.mark.django_db
def test_the_same_key_of_two_models_is_two_owners():
    with listed():
        user = UserFactory()
        profile = ProfileFactory(user=user)
        account = AccountFactory(id=user.pk)
        team = TeamFactory(slug=str(user.pk))
        owners = [user, profile, account, team, str(user.pk), f"auth.User{user.pk}", "auth.User"]
        assert len({address(owner).collection for owner in owners}) == len(owners)


@pytest.mark.django_db
def test_lookalike_owners_never_see_each_other(embedder):
    for owner in LOOKALIKES:
        Memory.objects.for_owner(owner).synchronously().remember(f"I am {owner}.")
    for owner in LOOKALIKES:
        handle = Memory.objects.for_owner(owner)
        assert [row.content for row in handle.records()] == [f"I am {owner}."]
        assert [found.content for found in handle.recall("I am")] == [f"I am {owner}."]
    assert Memory.objects.for_owner("a").forget() == 1
    assert Memory.objects.count() == len(LOOKALIKES) - 1


@pytest.mark.django_db
def test_lookalike_scopes_never_see_each_other(embedder):
    for scope in LOOKALIKES:
        Memory.objects.for_owner("ana", scope).synchronously().remember(f"This is {scope}.")
    for scope in LOOKALIKES:
        handle = Memory.objects.for_owner("ana", scope)
        assert [found.content for found in handle.recall("This is")] == [f"This is {scope}."]
    assert Memory.objects.for_owner("ana", "a%").forget() == 1
    assert Memory.objects.count() == len(LOOKALIKES) - 1


@pytest.mark.django_db
def test_lookalike_string_keys_never_see_each_other(embedder):
    with listed():
        teams = {slug: Team(slug=slug) for slug in LOOKALIKES}
        for slug, team in teams.items():
            team._state.adding = False  # what the database makes of the key is not the point
            Memory.objects.for_owner(team).remember(f"We are {slug}.")
        for slug, team in teams.items():
            [row] = Memory.objects.for_owner(team).records()
            assert row.content == f"We are {slug}."


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@given(one=st.tuples(TEXTS, TEXTS), other=st.tuples(TEXTS, TEXTS))
def test_an_address_tells_any_two_owners_and_scopes_apart(one, other):
    assert (address(*one).collection == address(*other).collection) == (one == other)


def test_the_scope_defaults_to_the_setting():
    assert address("ana") == address("ana", "default")
    with override_settings(PRISM_MEMORY={"DEFAULT_SCOPE": "support"}):
        assert address("ana") == address("ana", "support")


def test_strings_of_other_types_are_the_plain_string():
    class Name(str, enum.Enum):  # noqa: UP042 - str() of its members is not their value
        ANA = "ana"

    plain = address("ana", "ana")
    for text in (Name.ANA, mark_safe("ana"), SimpleLazyObject(lambda: "ana")):
        assert address(text, text) == plain


def test_a_handle_costs_no_query(django_assert_num_queries, user):
    with django_assert_num_queries(0):
        repr(Memory.objects.for_owner(user))


class TestRefusals:
    @pytest.mark.parametrize(
        "owner",
        [
            *(5, 0, True, 5.0, b"ana", ["ana"], ("ana",), {"id": 5}, object(), uuid.uuid4(), User),
            gettext_lazy("ana"),
        ],
        ids=lambda owner: type(owner).__name__,
    )
    def test_of_what_is_neither_an_instance_nor_a_string(self, owner):
        message = refusal(owner)
        assert type(owner).__name__ in message
        assert "auth.User" in message
        assert "non-empty string" in message

    def test_of_none(self):
        assert "Pass a saved instance" in refusal(None)

    @pytest.mark.parametrize("wrapped", [False, True])
    def test_of_the_anonymous_user(self, wrapped):
        anonymous = SimpleLazyObject(AnonymousUser) if wrapped else AnonymousUser()
        assert "session key" in refusal(anonymous)

    @pytest.mark.parametrize("argument", ["owner", "scope"])
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "Pass a non-empty one."),
            ("a" * 256, "At most 255"),
            ("a\0", "NUL"),
            ("\ud800", "surrogate"),
        ],
        ids=["empty", "long", "NUL", "surrogate"],
    )
    def test_of_a_text_that_is_no_address(self, argument, text, words):
        message = refusal(**{"owner": "ana", argument: text})
        assert message.startswith(argument)
        assert words in message

    @pytest.mark.parametrize("scope", [5, b"a", ["a"], object()])
    def test_of_a_scope_that_is_no_string(self, scope):
        assert "non-empty string, or None" in refusal("ana", scope)

    def test_of_an_unsaved_instance(self):
        assert "Save it" in refusal(User(username="new"))
        assert "Save it" in refusal(User(pk=5, username="new"))
        with listed():
            assert "Save it" in refusal(Person())  # its key exists before it is saved

    @pytest.mark.django_db
    @pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: factory.__name__)
    def test_of_a_deleted_instance(self, factory):
        with listed():
            owner = factory()
            owner.delete()
            assert "Save it" in refusal(owner)

    @pytest.mark.django_db
    def test_of_an_instance_of_a_model_that_is_not_listed(self):
        message = refusal(StrangerFactory())
        assert "tests.Stranger" in message
        assert "PRISM_MEMORY['OWNERS'] (auth.User)" in message

    @pytest.mark.django_db
    def test_of_every_instance_when_no_model_is_listed(self, user):
        with override_settings(PRISM_MEMORY={"OWNERS": []}):
            assert "no model" in refusal(user)
            assert address("ana").owner == Owner("", "ana")

    @pytest.mark.django_db
    def test_of_an_empty_key(self):
        with listed():
            assert "empty" in refusal(Team.objects.create(slug=""))

    @pytest.mark.django_db
    def test_a_wrong_list_is_the_same_error_as_the_check(self, user):
        with listed("auth.Nobody"), pytest.raises(ConfigurationError) as caught:
            Memory.objects.for_owner(user)
        assert caught.value.id == "prism_memory.E007"
        assert "auth.Nobody" in str(caught.value)


@pytest.mark.django_db
def test_the_user_model_is_the_default_owner():
    with override_settings(AUTH_USER_MODEL="tests.Account"):
        account = AccountFactory()
        assert owner_of(account) == Owner("tests.Account", str(account.pk))
        assert "auth.User" not in refusal(None)


@pytest.mark.django_db
def test_a_parents_row_stays_an_owner_when_its_child_is_gone():
    employee = EmployeeFactory()
    employee.delete(keep_parents=True)
    assert not Employee.objects.exists()
    assert owner_of(User.objects.get(username=employee.username)).model == "auth.User"
