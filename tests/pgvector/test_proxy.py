"""Behind a proxy that gives a connection to another client after every transaction."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from prism_memory.models import IndexState, Space
from prism_memory.stores.rebuilding import compare, rebuild

from ..searching import EXACT, query, random_vectors
from .bouncer import Bouncer
from .test_searching import fill, same

pytestmark = pytest.mark.django_db(transaction=True)

#: What a session would keep, and so hand on to a stranger.
LEFTOVERS = """
    SELECT current_setting('hnsw.ef_search', true), current_setting('hnsw.iterative_scan', true),
        (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_cursors),
        (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),
        (SELECT count(*) FROM pg_listening_channels()),
        (SELECT count(*) FROM pg_class WHERE relpersistence = 't')
"""


@pytest.fixture(params=[1, 2])
def proxied(request, tmp_path_factory, store, monkeypatch):
    """The store, whose database is reached through so many connections of a proxy."""
    folder = tmp_path_factory.mktemp("bouncer")
    for parent in [folder.parent, folder.parent.parent]:
        parent.chmod(0o755)
    bouncer = Bouncer(folder, connection.settings_dict, request.param)
    connection.close()
    with monkeypatch.context() as patched:
        patched.setitem(connection.settings_dict, "PORT", str(bouncer.port))
        patched.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
        yield store
        connection.close()
    bouncer.stop()


def leftovers():
    with connection.cursor() as cursor:
        cursor.execute("SELECT '[1]'::vector")  # loads the library, whose settings are asked for
        cursor.execute(LEFTOVERS)
        return cursor.fetchone()


def test_it_works_and_leaves_nothing_behind(proxied, graphs):
    fill(proxied, random_vectors(400))
    assert rebuild(proxied, Space.objects.get(), fresh=True).missing == 400
    assert len(graphs()) == 1
    for limit in (5, 300):
        asked = query(random_vectors(1, seed=1)[0], limit=limit)
        assert same(proxied.search(asked), EXACT.search(asked))
    proxied.forget("c", ["000000"])
    assert not compare(proxied, IndexState.objects.get())
    assert leftovers() == ("40", "off", 0, 0, 0, 0, 0)


def test_inside_a_transaction(proxied):
    with transaction.atomic():
        fill(proxied, random_vectors(20))
        assert same(proxied.search(query(limit=20)), EXACT.search(query(limit=20)))
    assert leftovers() == ("40", "off", 0, 0, 0, 0, 0)


def test_clients_that_take_turns(proxied):
    vectors = random_vectors(100)
    fill(proxied, vectors)
    expected = [list(EXACT.search(query(vector, limit=5))) for vector in vectors[:10]]
    failures = []

    def work(part):
        try:
            for row in range(10):
                assert list(proxied.search(query(vectors[row], limit=5))) == expected[row]
                fill(proxied, vectors[:3], f"of{part}")
                proxied.purge(f"of{part}")
        except BaseException as error:  # noqa: BLE001 - shown below
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=[part]) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert leftovers() == ("40", "off", 0, 0, 0, 0, 0)
