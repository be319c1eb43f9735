"""The app of the workers that tests start: what was claimed by a killed one is free again soon."""

from __future__ import annotations

import os

from django.apps import AppConfig


class ImpatientWorkers(AppConfig):
    name = "tests.redis"
    label = "impatient_workers"

    def ready(self) -> None:
        from prism_memory import embedding

        embedding.CLAIM = int(os.environ.get("PRISM_WORKER_CLAIM", embedding.CLAIM))
