"""A recall serves what its own snapshot of the database holds, and never anything else.

There is no cache between the pages and a recall; these tests would find one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.core import serializers
from django.core.management import call_command
from django.db import connection, connections, transaction

from prism_memory.models import Embedding, Memory, SignaturePage, Space

pytestmark = pytest.mark.django_db(transaction=True)

TABLES = (Space, Memory, Embedding, SignaturePage)
SERVERS = {"postgresql", "mysql"}


def handle() -> Any:
    return Memory.objects.for_owner("ada").synchronously()


def recalled(words: str = "cats and dogs and birds") -> set[str]:
    return {memory.content for memory in handle().recall(words)}


def elsewhere(call: Callable[[], Any]) -> None:
    """Run a call on a connection of its own."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    for failure in failures:
        raise failure


def test_writes_and_forgets_of_another_connection() -> None:
    [id] = handle().remember("cats")
    assert recalled() == {"cats"}
    elsewhere(lambda: handle().remember("dogs"))
    assert recalled() == {"cats", "dogs"}
    elsewhere(lambda: handle().forget([id]))
    assert recalled() == {"dogs"}


PROGRAM = """
import json, sys
from django.conf import settings
database = json.loads(sys.argv[1])
settings.configure(
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "prism_memory"],
    DATABASES={"default": database}, USE_TZ=True,
    PRISM_MEMORY={"EMBEDDER": {"BACKEND": "prism_memory.testing.FakeEmbedder"}},
)
import django
django.setup()
from prism_memory.models import Memory
memory = Memory.objects.for_owner("ada").synchronously()
memory.forget()
memory.remember("dogs")
"""


def test_writes_and_forgets_of_another_process() -> None:
    handle().remember("cats")
    assert recalled() == {"cats"}
    kept = ("ENGINE", "HOST", "PORT", "USER", "PASSWORD", "NAME", "OPTIONS")
    database = {key: connection.settings_dict[key] for key in kept}
    database["NAME"] = str(database["NAME"])
    subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(database)],
        check=True,
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert recalled() == {"dogs"}


def test_nothing_of_a_rolled_back_transaction() -> None:
    handle().remember("cats")
    with suppress(ZeroDivisionError), transaction.atomic():
        handle().remember("dogs")
        handle().forget(Memory.objects.filter(content="cats").values_list("record_id", flat=True))
        assert recalled() == {"dogs"}
        raise ZeroDivisionError
    assert recalled() == {"cats"}


def test_nothing_of_a_rolled_back_savepoint() -> None:
    with transaction.atomic():
        handle().remember("cats")
        with suppress(ZeroDivisionError), transaction.atomic():
            handle().remember("dogs")
            assert recalled() == {"cats", "dogs"}
            raise ZeroDivisionError
        assert recalled() == {"cats"}
    assert recalled() == {"cats"}


def test_a_snapshot_stays_as_it_was() -> None:
    if connection.vendor not in SERVERS:
        pytest.skip("SQLite's readers keep writers out, unless in WAL mode")
    [id] = handle().remember("cats")
    with transaction.atomic():
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            else:  # Django sets READ COMMITTED; the next transaction's level can't be set in it
                cursor.execute("COMMIT")
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        assert recalled() == {"cats"}
        elsewhere(lambda: handle().remember("dogs"))
        elsewhere(lambda: handle().forget([id]))
        assert recalled() == {"cats"}
    assert recalled() == {"dogs"}


def dumped() -> str:
    return serializers.serialize("json", [row for model in TABLES for row in model.objects.all()])


def loaded(dump: str, path: Path, database: str = "default") -> None:
    path.write_text(dump)
    for model in reversed(TABLES):
        model._base_manager.using(database)._raw_delete(database)
    call_command("loaddata", str(path), database=database, verbosity=0)


def test_fixtures_that_are_loaded(tmp_path: Path) -> None:
    handle().remember(["cats", "birds"])
    before = dumped()
    handle().forget()
    handle().remember("dogs")
    assert recalled() == {"dogs"}
    loaded(before, tmp_path / "memories.json")
    assert recalled() == {"cats", "birds"}


class ReadsTheReplica:
    def db_for_read(self, model: Any, **hints: Any) -> str:
        return "other"

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "default"

    def allow_relation(self, *given: Any, **hints: Any) -> bool:
        return True


@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_a_replica_that_lags(tmp_path: Path, settings: Any) -> None:
    handle().remember("cats")
    first = dumped()
    handle().forget()
    handle().remember("dogs")
    second = dumped()
    settings.DATABASE_ROUTERS = ["tests.test_freshness.ReadsTheReplica"]
    assert recalled() == set()
    # As far as the replica has come, and as a whole: never rows of one state, pages of another.
    for dump, held in ((first, "cats"), (second, "dogs")):
        loaded(dump, tmp_path / "memories.json", "other")
        assert recalled() == {held}


def test_a_file_that_is_replaced_by_its_backup(tmp_path: Path) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite's database is a file")
    file, backup = Path(connection.settings_dict["NAME"]), tmp_path / "backup.sqlite3"
    handle().remember("cats")
    connection.close()
    shutil.copy(file, backup)
    handle().forget()
    handle().remember("dogs")
    assert recalled() == {"dogs"}
    connection.close()
    os.replace(backup, file)
    assert recalled() == {"cats"}
