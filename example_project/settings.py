"""Settings of the example project: SQLite, the local embedder, no key, no network."""

from __future__ import annotations

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent

# An example's key, known to everybody who reads this. A site of yours needs one of its own.
SECRET_KEY = "example-only-not-a-secret"
DEBUG = True
USE_TZ = True
ROOT_URLCONF = "example_project.urls"
STATIC_URL = "static/"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "prism_memory",
    "example_project.demo",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("EXAMPLE_DATABASE", BASE_DIR / "db.sqlite3"),
        # Some builds of SQLite leave the bytes of deleted rows in the file. Forgotten is gone.
        "OPTIONS": {"init_command": "PRAGMA secure_delete = ON"},
    }
}

# All that Prism Memory needs here. Without it, texts would be embedded by OpenAI, with a key of
# yours; the local embedder turns them into vectors on this machine.
PRISM_MEMORY = {"EMBEDDER": {"BACKEND": "prism_memory.embedders.LocalEmbedder"}}
