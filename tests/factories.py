"""Owners for tests."""

from __future__ import annotations

import factory
from django.conf import settings

from .models import Account, Employee, Person, Profile, ProxyUser, Stranger, Team


class UserFactory(factory.django.DjangoModelFactory):
    username = factory.Sequence("user{}".format)

    class Meta:
        model = settings.AUTH_USER_MODEL


class ProxyUserFactory(UserFactory):
    class Meta:
        model = ProxyUser


class EmployeeFactory(UserFactory):
    badge = "4711"

    class Meta:
        model = Employee


class AccountFactory(factory.django.DjangoModelFactory):
    email = factory.Sequence("account{}@example.org".format)

    class Meta:
        model = Account


class PersonFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = Person


class TeamFactory(factory.django.DjangoModelFactory):
    slug = factory.Sequence("team{}".format)

    class Meta:
        model = Team


class ProfileFactory(factory.django.DjangoModelFactory):
    user = factory.SubFactory(UserFactory)

    class Meta:
        model = Profile


class StrangerFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = Stranger
