"""Owners of every kind of primary key."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import User
from django.db import models


class Person(models.Model):
    """An owner with a UUID for its key."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)


class Team(models.Model):
    """An owner with a string for its key."""

    slug = models.CharField(max_length=64, primary_key=True)


class Profile(models.Model):
    """An owner whose key is another's."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True)


class Stranger(models.Model):
    """Not listed in ``OWNERS``."""


class ProxyUser(User):
    class Meta:
        proxy = True


class Employee(User):
    """A child of the user model, with a table of its own."""

    badge = models.CharField(max_length=16)


class Account(AbstractBaseUser):
    """A user model of a project's own."""

    email = models.CharField(max_length=64, unique=True)

    objects = BaseUserManager()

    USERNAME_FIELD = "email"
