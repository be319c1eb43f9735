"""Settings of the workers that tests and the soak start: on their database, and their Redis."""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES, INSTALLED_APPS, SERVERS

INSTALLED_APPS = [*INSTALLED_APPS, "django_rq", "tests.redis.apps.ImpatientWorkers"]

if "PRISM_WORKER_DATABASE" in os.environ:
    DATABASES["default"] = {
        **SERVERS[os.environ.get("PRISM_TEST_DATABASE", "sqlite")],
        "NAME": os.environ["PRISM_WORKER_DATABASE"],
    }
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # Several processes write to one file.
    DATABASES["default"]["OPTIONS"] = {"timeout": 60}

RQ_QUEUES = {
    "default": {
        "URL": os.environ["PRISM_TEST_REDIS"],
        "SERIALIZER": os.environ.get("PRISM_WORKER_SERIALIZER", "rq.serializers.DefaultSerializer"),
    }
}
PRISM_MEMORY = {
    "EMBEDDER": {
        "BACKEND": "tests.redis.embedders.RemoteEmbedder",
        "OPTIONS": {
            "folder": os.environ["PRISM_WORKER_FOLDER"],
            "seconds": float(os.environ.get("PRISM_WORKER_SECONDS", "0")),
            "batch_size": int(os.environ.get("PRISM_WORKER_BATCH", "20")),
        },
    },
    "QUEUE": "default",
}
if "PRISM_WORKER_INDEX" in os.environ:
    PRISM_MEMORY["STORES"] = {
        "default": {"BACKEND": "prism_memory.stores.DatabaseStore"},
        "index": {
            "BACKEND": "tests.redis.file_index.FileIndex",
            "OPTIONS": {
                "path": os.environ["PRISM_WORKER_INDEX"],
                "seconds": float(os.environ.get("PRISM_WORKER_SECONDS", "0")) / 4,
            },
        },
    }
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"prism_memory": {"handlers": ["console"], "level": "INFO"}},
}
