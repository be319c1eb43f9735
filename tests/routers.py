"""Where models live, for tests that need more than one database."""

from __future__ import annotations


class MemoriesElsewhere:
    """Memories live in the database "other", everything else in the default one."""

    def db_for_read(self, model, **hints):
        return "other" if model._meta.app_label == "prism_memory" else None

    db_for_write = db_for_read


class ReadsFromDefault(MemoriesElsewhere):
    """As above, but memories are read from a replica that has not heard of any yet."""

    def db_for_read(self, model, **hints):
        return None

    def db_for_write(self, model, **hints):
        return super().db_for_read(model)
