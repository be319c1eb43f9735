"""Writing records and vectors to the tables: idempotent, in one order, all or none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from django.db import connections

from ..digests import digest
from ..filters import AttributeTokens, attributes
from ..inserting import insert
from ..metadata import Scalar, encode, normalise_metadata
from ..models import Embedding, Memory, Space
from ..pages import add, remove
from ..signatures import signatures
from ..texts import embedded_text
from ..timestamps import from_database, spread, to_database
from ..transactions import id_batches, write_transaction
from ..vectors import Vector
from . import indexes
from .spaces import refuse_other_bits, refuse_other_width

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from .contract import VectorRecord

    #: By key: the records of that key, each with the time that it gets if it gives none.
    Given = Mapping[str, Sequence[tuple[VectorRecord, datetime]]]

__all__ = ["collection_key", "record_key", "write_records", "write_vectors"]

#: Rows of one statement: a few times the size of a long conversation.
BATCH = 500


class Embedded(NamedTuple):
    """What attaching a vector needs of a memory: a tenth of the cost of an instance."""

    pk: int
    collection_key: str
    collection: str
    record_id: str
    content: str
    failure: str
    metadata: dict[str, Scalar]
    role: str
    kind: str
    name: str

    @property
    def embedded_text(self) -> str:
        return embedded_text(self.name, self.content)


#: What a memory that is remembered anew after it expired starts afresh with.
RENEWED = (
    *("content", "role", "name", "kind", "metadata"),
    *("occurred_at", "expires_at", "created_at"),
)


def collection_key(collection: str) -> str:
    """The digest by which queries address a collection."""
    return digest("collection", collection)


def record_key(collection: str, record_id: str) -> str:
    """The digest that makes a record unique: of its collection and id, to the letter."""
    return digest("record", collection, record_id)


def space_key(space: str) -> str:
    return digest("space", space)


def write_records(using: str, records: Sequence[VectorRecord]) -> None:
    """Insert what is new and merge what is given into what is stored.

    Call it in a ``write_transaction``.
    """
    # What says nothing of its time happened now, one microsecond apart, in the order given.
    moments = spread(datetime.now(UTC), range(len(records)))
    given: dict[str, list[tuple[VectorRecord, datetime]]] = defaultdict(list)
    for record, moment in zip(records, moments, strict=True):
        given[record_key(record.collection, record.id)].append((record, moment))
    # In one order, so that two calls that write the same records wait and don't deadlock.
    collections = {name: collection_key(name) for name in {record.collection for record in records}}
    ordered = sorted(given, key=lambda key: (collections[given[key][0][0].collection], key))
    contested = [key for keys in _batches(ordered) for key in _insert_missing(using, keys, given)]
    # All rows are locked before the first page is: whoever erases does the same.
    changes = [
        (row, changed)
        for keys in _batches(contested)
        for row in _locked(using, keys)
        if (changed := {name for repeat in given[row.key] for name in _merge(row, *repeat)})
    ]
    _update(using, changes)


def _insert_missing(using: str, keys: list[str], given: Given) -> list[str]:
    """Insert those of the records that are new; return the keys whose rows may have to change."""
    stored = {row.key: row for row in Memory.objects.using(using).filter(key__in=keys)}
    missing = [key for key in keys if key not in stored]
    if missing:
        _insert(using, [_new(given[key]) for key in missing])
    # Somebody may have inserted the same record just before us: then ours is a repeat. Not where
    # the write lock of the whole database is ours.
    alone = connections[using].vendor == "sqlite"
    return [
        key
        for key in keys
        if (
            any(_merge(stored[key], *repeat) for repeat in given[key])
            if key in stored
            else not alone
        )
    ]


def _locked(using: str, keys: list[str]) -> QuerySet[Memory]:
    rows = Memory.objects.using(using).filter(key__in=keys)
    return rows.order_by("collection_key", "key").select_for_update()


def _insert(using: str, rows: list[Memory]) -> None:
    target = connections[using].features.supports_update_conflicts_with_target
    # An update that changes nothing, rather than ignoring conflicts: MariaDB's INSERT IGNORE would
    # also ignore, and cut, what it can't store.
    Memory.objects.using(using).bulk_create(
        rows,
        update_conflicts=True,
        update_fields=["key"],
        unique_fields=["key"] if target else None,
    )


def _new(given: Sequence[tuple[VectorRecord, datetime]]) -> Memory:
    record, moment = given[0]
    owner = record.owner
    moment = record.occurred_at or moment
    expires_at = record.expires_at
    if expires_at is None and record.retention is not None:
        expires_at = _after(moment, record.retention)
    row = Memory(
        collection=record.collection,
        record_id=record.id,
        owner_model=owner.owner.model if owner else "",
        owner=owner.owner.key if owner else "",
        scope=owner.scope if owner else "",
        kind=record.kind,
        role=record.role,
        name=record.name,
        content=record.content,
        metadata=normalise_metadata(record.metadata) or {},
        occurred_at=to_database(moment),
        expires_at=to_database(expires_at),
    )
    for repeat in given[1:]:
        _merge(row, *repeat)
    return row


def _merge(row: Memory, record: VectorRecord, moment: datetime) -> set[str]:
    """Change a row to what a record says of it; return the names of the fields that changed."""
    if _expired(row) and not _expired(renewed := _new([(record, moment)])):
        # To every reader it was gone, so it is new, whether or not it was pruned in between.
        return _change(row, {name: getattr(renewed, name) for name in RENEWED})
    wanted = {name: getattr(record, name) for name in ("content", "role", "name", "kind")}
    metadata = normalise_metadata(record.metadata)
    # As JSON, because {"k": 1} == {"k": True} in Python. The order of keys is no difference.
    if metadata is not None and _canonical(metadata) != _canonical(row.metadata):
        wanted["metadata"] = metadata
    occurred_at = from_database(row.occurred_at)
    expires_at = record.expires_at
    if record.occurred_at is not None and record.occurred_at > occurred_at:
        wanted["occurred_at"] = to_database(record.occurred_at)
        if expires_at is None and record.retention is not None:
            expires_at = _after(record.occurred_at, record.retention)
    if expires_at is not None:
        wanted["expires_at"] = to_database(expires_at)
    return _change(row, wanted)


def _change(row: Memory, wanted: Mapping[str, Any]) -> set[str]:
    changed = {name for name, value in wanted.items() if getattr(row, name) != value}
    if "metadata" in wanted:  # it is only asked for when it differs, and {"k": 1} == {"k": True}
        changed.add("metadata")
    for name in changed:
        setattr(row, name, wanted[name])
    return changed


def _expired(row: Memory) -> bool:
    return row.expires_at is not None and from_database(row.expires_at) <= datetime.now(UTC)


def _canonical(metadata: Mapping[str, Scalar]) -> str:
    return encode(dict(sorted(metadata.items())))


def _after(moment: datetime, retention: timedelta) -> datetime:
    try:
        return moment + retention
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _update(using: str, changes: Sequence[tuple[Memory, set[str]]]) -> None:
    reworded: dict[int, Memory] = {}
    retagged: dict[int, Memory] = {}
    alike: dict[tuple[str, ...], list[Memory]] = defaultdict(list)
    for row, changed in changes:
        if changed & {"content", "name"}:
            reworded[row.pk] = row
            row.attempts, row.failure, row.not_before = 0, "", None
            changed |= {"attempts", "failure", "not_before"}
        elif changed & {"metadata", "role", "kind"}:
            retagged[row.pk] = row
        alike[tuple(sorted(changed))].append(row)
    for fields, rows in alike.items():
        Memory.objects.using(using).bulk_update(rows, fields, batch_size=BATCH)
    # Inserted anew: what an index was told of a vector, its attributes included, never changes.
    kept = _vectors_of(using, retagged)
    _remove_vectors(using, {pk: row.collection_key for pk, row in {**reworded, **retagged}.items()})
    for (_, space), pairs in kept:
        _insert_vectors(using, space, pairs)


def _vectors_of(
    using: str, rows: Mapping[int, Memory]
) -> list[tuple[tuple[str, Space], list[tuple[Embedded, Vector]]]]:
    """The vectors of some memories by collection and space, in the order in which all write."""
    grouped: dict[tuple[str, Space], list[tuple[Embedded, Vector]]] = defaultdict(list)
    vectors = Embedding.objects.using(using).select_related("space")
    for ids in id_batches(using, list(rows)):
        for held in vectors.filter(memory_id__in=ids):
            row = rows[held.memory_id]
            embedded = Embedded(*(getattr(row, name) for name in Embedded._fields))
            vector = Vector.from_bytes(held.vector)
            grouped[row.collection_key, held.space].append((embedded, vector))
    return sorted(grouped.items(), key=lambda item: (item[0][0], item[0][1].pk))


def _remove_vectors(
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


def write_vectors(
    using: str,
    collection: str,
    vectors: Mapping[str, Vector],
    space_name: str,
    *,
    bits: int,
    texts: Mapping[str, str] | None,
) -> int:
    """Give existing rows their vectors and put them into pages; returns how many got one."""
    if not vectors:
        return 0
    with write_transaction(using):
        space = _space(using, space_name, len(next(iter(vectors.values()))), bits)
        refuse_other_bits(space, bits)
        for record_id, vector in vectors.items():
            refuse_other_width(space, f"the vector of {record_id!r:.80}", len(vector))
        keys = sorted(record_key(collection, record_id) for record_id in vectors)
        # Locked, so that no row is forgotten or rewritten between this look and our commit; and
        # all of them before the first page is.
        rows = [
            Embedded(*row)
            for batch in _batches(keys)
            for row in _locked(using, batch).values_list(*Embedded._fields)
        ]
        return _attach(using, space, [(row, vectors[row.record_id]) for row in rows], texts)


def _batches(keys: list[str]) -> Iterator[list[str]]:
    return (keys[start : start + BATCH] for start in range(0, len(keys), BATCH))


def _space(using: str, name: str, width: int, bits: int) -> Space:
    space, born = Space.objects.using(using).get_or_create(
        key=space_key(name), defaults={"name": name, "width": width, "bits": bits}
    )
    if born:
        indexes.begin(using, space)
    return space


def _attach(
    using: str,
    space: Space,
    pairs: Sequence[tuple[Embedded, Vector]],
    texts: Mapping[str, str] | None,
) -> int:
    embeddings = Embedding.objects.using(using).filter(space=space)
    # Only who replaces vectors has to know them.
    columns = ["memory_id"] if texts is not None else ["memory_id", "vector"]
    held = {
        pk: b"".join(map(bytes, vector))
        for ids in id_batches(using, [row.pk for row, _ in pairs])
        for pk, *vector in embeddings.filter(memory_id__in=ids).values_list(*columns)
    }
    fresh, replaced = [], []
    for row, vector in pairs:
        if texts is not None and texts[row.record_id] != row.embedded_text:
            continue
        if row.pk not in held:
            fresh.append((row, vector))
        elif texts is None and held[row.pk] != vector.to_bytes():
            replaced.append((row, vector))
    _remove_vectors(using, {row.pk: row.collection_key for row, _ in replaced}, space)
    _insert_vectors(using, space, fresh + replaced)
    recovered = [row.pk for row, _ in fresh if row.failure]
    for ids in id_batches(using, recovered):
        Memory.objects.using(using).filter(pk__in=ids).update(
            attempts=0, failure="", not_before=None
        )
    same = 0 if texts is not None else len(held) - len(replaced)
    return len(fresh) + len(replaced) + same


def _insert_vectors(using: str, space: Space, pairs: Sequence[tuple[Embedded, Vector]]) -> None:
    """Insert vectors of one collection, which no row holds yet."""
    if not pairs:
        return
    signs = signatures(np.stack([vector.values for _, vector in pairs]), space.bits)
    insert(
        using,
        Embedding,
        ["memory", "space", "vector", "signature"],
        [
            (row.pk, space.pk, vector.to_bytes(), sign.tobytes())
            for (row, vector), sign in zip(pairs, signs, strict=True)
        ],
    )
    collection, key = pairs[0][0].collection, pairs[0][0].collection_key
    made = AttributeTokens(collection)
    tokens = [made(attributes(row.metadata, row.role, row.kind, row.name)) for row, _ in pairs]
    entries = [
        (row.pk, sign.tobytes(), held)
        for (row, _), sign, held in zip(pairs, signs, tokens, strict=True)
    ]
    add(using, key, space.pk, entries)
    vectors = {
        row.pk: (vector.values, held) for (row, vector), held in zip(pairs, tokens, strict=True)
    }
    indexes.added(using, space, collection, key, vectors)
