"""Settings of the test project: SQLite and nothing else, unless variables name servers."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

BASE_DIR = Path(__file__).resolve().parent.parent

SECRET_KEY = "only-for-tests"
# Off, the databases store local time, and the app converts.
USE_TZ = os.environ.get("PRISM_TEST_USE_TZ", "1") != "0"
# Far from UTC, and by no whole hour, so that a time that is not converted shows.
TIME_ZONE = "Asia/Kathmandu"
ROOT_URLCONF = "tests.urls"
STATIC_URL = "static/"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "prism_memory",
    "tests",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
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

# Two runs at the same time on one server need two names.
NAME = os.environ.get("PRISM_TEST_DATABASE_NAME", "prism_memory")
SERVERS: dict[str, dict[str, Any]] = {
    "postgresql": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ.get("PRISM_TEST_POSTGRESQL_HOST", "127.0.0.1"),
        "PORT": os.environ.get("PRISM_TEST_POSTGRESQL_PORT", "5432"),
        "USER": os.environ.get("PRISM_TEST_POSTGRESQL_USER", "postgres"),
        "PASSWORD": os.environ.get("PRISM_TEST_POSTGRESQL_PASSWORD", ""),
        "NAME": NAME,
    },
    "mariadb": {
        "ENGINE": "django.db.backends.mysql",
        "HOST": os.environ.get("PRISM_TEST_MARIADB_HOST", "127.0.0.1"),
        "PORT": os.environ.get("PRISM_TEST_MARIADB_PORT", "3306"),
        "USER": os.environ.get("PRISM_TEST_MARIADB_USER", "root"),
        "PASSWORD": os.environ.get("PRISM_TEST_MARIADB_PASSWORD", ""),
        "NAME": NAME,
        "OPTIONS": {"charset": "utf8mb4"},
    },
    "sqlite": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
        # A file, because threads can't share a database in memory without sharing a connection.
        "TEST": {"NAME": str(Path(tempfile.gettempdir()) / f"prism_memory_{os.getpid()}.sqlite3")},
    },
}
# The same MariaDB, in the dialect of MySQL 8.
SERVERS["mysql8"] = {**SERVERS["mariadb"], "ENGINE": "tests.mysql8"}
DATABASES: dict[str, dict[str, Any]] = {
    "default": SERVERS[os.environ.get("PRISM_TEST_DATABASE", "sqlite")],
    # Only for tests that have memories live apart from their owners.
    "other": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
}

# A PostgreSQL with pgvector, as tools/pgvector_server.py starts one: HOST:PORT.
if "PRISM_TEST_PGVECTOR" in os.environ:
    DATABASES["default"] = SERVERS["postgresql"]
    host, port = os.environ["PRISM_TEST_PGVECTOR"].rsplit(":", 1)
    DATABASES["default"].update(HOST=host, PORT=port, PASSWORD="")
    # From Django 6.0 on, the fields of the first are refused without it.
    INSTALLED_APPS += ["django.contrib.postgres", "prism_memory.contrib.pgvector"]

PRISM_MEMORY = {"EMBEDDER": {"BACKEND": "prism_memory.testing.FakeEmbedder"}}
