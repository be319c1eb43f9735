"""What MySQL 8 does not run though MariaDB does."""

from __future__ import annotations

import re

__all__ = ["refused"]

#: RETURNING, VALUE() of a new row, and conditional changes of a table's parts.
ONLY_MARIADB = re.compile(r"\bRETURNING\b|\bVALUE\(|\b(?:COLUMN|KEY|INDEX) IF (?:NOT )?EXISTS\b")
CHANGES = re.compile(r"\s*(?:UPDATE|DELETE FROM) (`\w+`)(.*)", re.DOTALL)


def refused(sql: str) -> str:
    """Say why MySQL 8 would not run a statement that MariaDB runs; nothing if it would."""
    if found := ONLY_MARIADB.search(sql):
        return f"only MariaDB knows {found[0]}"
    if changed := CHANGES.fullmatch(sql):
        table, rest = changed.groups()
        # Read through a derived table it may be; so Django words it.
        if re.search(rf"\b(?:FROM|JOIN) {table}", rest) and "FROM (SELECT" not in rest:
            return f"a subquery reads {table}, which the statement changes (error 1093)"
    return ""
