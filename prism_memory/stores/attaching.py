"""Writing vectors to the tables: only to rows that exist, under lock, with the pages in step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from django.db import connections

from ..filters import AttributeTokens, attributes
from ..inserting import insert
from ..metadata import decode, encode
from ..models import Embedding, Memory, Space
from ..pages import add, remove
from ..selecting import columns, fetch, places, table
from ..signatures import signatures
from ..texts import embedded_text
from ..transactions import id_batches, write_transaction
from ..vectors import Vector
from . import indexes
from .keys import collection_key, find_space, in_batches, read, space_key
from .spaces import refuse_other_bits, refuse_other_width

if TYPE_CHECKING:
    from .waiting import WaitingRow

__all__ = ["Given", "insert_vectors", "remove_vectors", "vectors_of", "write_vectors"]


class Given(NamedTuple):
    """What a vector is given to: a record's id, and the embedded text that the vector is of.

    With a text, a compare-and-set: a record is left alone whose text is another by now, or that has
    a vector in this space already. With None, the vector replaces what is there.
    """

    id: str
    embedded_text: str | None = None


#: By the records' keys. A WaitingRow is as good as a Given.
Offers = Mapping[str, tuple["Given | WaitingRow", Vector]]


class Embedded(NamedTuple):
    """What attaching a vector needs of a memory: a tenth of the cost of an instance."""

    pk: int
    key: str
    name: str
    content: str
    role: str
    kind: str
    #: As JSON: many memories share what filters see of them, and texts tell True from 1.
    metadata: str
    failure: str

    @property
    def embedded_text(self) -> str:
        return embedded_text(self.name, self.content)


def write_vectors(
    using: str,
    collection: str,
    offers: Offers,
    space_name: str,
    *,
    bits: int,
    rows: Sequence[int] | None = None,
) -> int:
    """Give existing rows their vectors and put them into pages; returns how many got one.

    ``rows``: the primary keys of the records, where known.
    """
    if not offers:
        return 0
    with write_transaction(using):
        space = _space(using, space_name, len(next(iter(offers.values()))[1]), bits)
        refuse_other_bits(space, bits)
        for given, vector in offers.values():
            if len(vector) != space.width:
                refuse_other_width(space, f"the vector of {given.id!r:.80}", len(vector))
        # Locked, so that no row is forgotten or rewritten between this look and our commit; and
        # all of them before the first page is. Where rows have no locks, they are found twice as
        # fast by primary key.
        locks = connections[using].features.has_select_for_update
        by_key = locks or rows is None
        keys: Sequence[Any] = sorted(offers) if by_key else sorted(rows or ())
        by = "key" if by_key else "pk"
        found = [
            row
            for batch in in_batches(keys)
            for row in map(
                Embedded._make,
                read(using, Embedded._fields, batch, by=by, lock=True, raw=["metadata"]),
            )
        ]
        return _attach(using, collection, space, found, offers)


def _space(using: str, name: str, width: int, bits: int) -> Space:
    if (space := find_space(using, name)) is not None:
        return space
    space, born = Space.objects.using(using).get_or_create(
        key=space_key(name), defaults={"name": name, "width": width, "bits": bits}
    )
    if born:
        indexes.begin(using, space)
    return space


def _attach(
    using: str, collection: str, space: Space, rows: Sequence[Embedded], offers: Offers
) -> int:
    # Only who replaces vectors has to know them.
    replaces = any(given.embedded_text is None for given, _ in offers.values())
    held = {
        pk: b"".join(map(bytes, vector))
        for ids in in_batches([row.pk for row in rows])
        for pk, *vector in _held(using, space, ids, vectors=replaces)
    }
    fresh, replaced, same = [], [], 0
    for row in rows:
        if row.key not in offers:
            continue  # another record, with the number of one that is gone
        given, vector = offers[row.key]
        text = given.embedded_text
        if text is not None and text != row.embedded_text:
            continue
        if row.pk not in held:
            fresh.append((row, vector))
        elif text is None and held[row.pk] != vector.to_bytes():
            replaced.append((row, vector))
        elif text is None:
            same += 1
    key = collection_key(collection)
    remove_vectors(using, {row.pk: key for row, _ in replaced}, space)
    insert_vectors(using, collection, space, fresh + replaced)
    recovered = [row.pk for row, _ in fresh if row.failure]
    for ids in id_batches(using, recovered):
        Memory.objects.using(using).filter(pk__in=ids).update(
            attempts=0, failure="", not_before=None
        )
    return len(fresh) + len(replaced) + same


def _held(using: str, space: Space, ids: Sequence[int], *, vectors: bool) -> list[tuple[Any, ...]]:
    """Which of these memories have a vector in a space, and which one if asked for."""
    names = ["memory", "vector"] if vectors else ["memory"]
    sql = (
        f"SELECT {columns(using, Embedding, names)} "  # noqa: S608 - names
        f"FROM {table(using, Embedding)} WHERE {columns(using, Embedding, ['space'])} = %s "
        f"AND {columns(using, Embedding, ['memory'])} IN ({places(ids)})"
    )
    return fetch(using, Embedding, names, sql, [space.pk, *ids])


def vectors_of(
    using: str, rows: Mapping[int, Memory]
) -> list[tuple[str, Space, list[tuple[Embedded, Vector]]]]:
    """The vectors of some memories by collection and space, in the order in which all write."""
    grouped: dict[tuple[str, str, Space], list[tuple[Embedded, Vector]]] = defaultdict(list)
    vectors = Embedding.objects.using(using).select_related("space")
    for ids in id_batches(using, list(rows)):
        for held in vectors.filter(memory_id__in=ids):
            row = rows[held.memory_id]
            embedded = Embedded(
                row.pk, row.key, row.name, row.content, row.role, row.kind,
                encode(row.metadata), row.failure,
            )  # fmt: skip
            group = grouped[row.collection_key, row.collection, held.space]
            group.append((embedded, Vector.from_bytes(held.vector)))
    ordered = sorted(grouped.items(), key=lambda item: (item[0][0], item[0][2].pk))
    return [(collection, space, pairs) for (_, collection, space), pairs in ordered]


def remove_vectors(
    using: str, collection_keys: Mapping[int, str], space: Space | None = None
) -> None:
    """Delete the vectors of memories, given with their collection's key, in one space or in all."""
    if not collection_keys:
        return
    indexes.removing(using, collection_keys, space)
    remove(using, collection_keys, None if space is None else space.pk)
    vectors = Embedding.objects.using(using)
    if space is not None:
        vectors = vectors.filter(space=space)
    for ids in id_batches(using, list(collection_keys)):
        vectors.filter(memory_id__in=ids).delete()


def insert_vectors(
    using: str, collection: str, space: Space, pairs: Sequence[tuple[Embedded, Vector]]
) -> None:
    """Insert vectors of one collection, which no row holds yet."""
    if not pairs:
        return
    ids = [row.pk for row, _ in pairs]
    matrix = np.stack([vector.values for _, vector in pairs])
    signs = signatures(matrix, space.bits)
    given: dict[str, Sequence[Any]] = {
        "memory": ids,
        "vector": [vector.to_bytes() for _, vector in pairs],
        "signature": [sign.tobytes() for sign in signs],
    }
    insert(using, Embedding, given, {"space": space.pk})
    tokens = _tokens(collection, [row for row, _ in pairs])
    key = collection_key(collection)
    add(using, key, space.pk, ids, signs, tokens)
    indexes.added(using, space, collection, key, zip(ids, matrix, tokens, strict=True))


def _tokens(collection: str, rows: Sequence[Embedded]) -> list[Sequence[int]]:
    """The tokens of what filters see of each row."""
    token = AttributeTokens(collection)
    made: dict[tuple[str, str, str, str], Sequence[int]] = {}
    tokens = []
    for row in rows:
        seen = row.metadata, row.role, row.kind, row.name
        if seen not in made:
            made[seen] = token(attributes(decode(row.metadata), row.role, row.kind, row.name))
        tokens.append(made[seen])
    return tokens
