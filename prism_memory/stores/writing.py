"""Writing records and vectors to the tables: idempotent, in key order, all or none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from django.db import connections

from ..digests import digest
from ..filters import attribute_tokens
from ..metadata import encode, normalise_metadata
from ..models import Embedding, Memory, Space
from ..pages import add, remove
from ..signatures import signatures
from ..timestamps import from_database, spread, to_database
from ..transactions import id_batches, write_transaction
from .spaces import refuse_other_bits, refuse_other_width

if TYPE_CHECKING:
    from ..vectors import Vector
    from .contract import VectorRecord

__all__ = ["collection_key", "record_key", "write_records", "write_vectors"]

#: Rows of one INSERT: a few times the size of a long conversation.
INSERT_BATCH = 500


def collection_key(collection: str) -> str:
    """The digest by which queries address a collection."""
    return digest("collection", collection)


def record_key(collection: str, record_id: str) -> str:
    """The digest that makes a record unique: of its collection and id, to the letter."""
    return digest("record", collection, record_id)


def space_key(space: str) -> str:
    return digest("space", space)


def write_records(using: str, records: Sequence[VectorRecord]) -> None:
    """Insert what is new and merge what is given into what is stored, all or none."""
    # What says nothing of its time happened now, one microsecond apart, in the order given.
    moments = spread(datetime.now(UTC), range(len(records)))
    given: dict[str, list[tuple[VectorRecord, datetime]]] = defaultdict(list)
    for record, moment in zip(records, moments, strict=True):
        given[record_key(record.collection, record.id)].append((record, moment))
    # In key order, so that two calls that write the same records can't deadlock.
    keys = sorted(given)
    with write_transaction(using):
        for start in range(0, len(keys), INSERT_BATCH):
            _write_batch(using, {key: given[key] for key in keys[start : start + INSERT_BATCH]})


def _write_batch(using: str, given: Mapping[str, list[tuple[VectorRecord, datetime]]]) -> None:
    memories = Memory.objects.using(using).order_by("key")
    stored = {row.key: row for row in memories.filter(key__in=given)}
    missing = [key for key in given if key not in stored]
    if missing:
        _insert(using, [_new(given[key]) for key in missing])
    # Somebody may have inserted the same record just before us: then ours is a repeat.
    contested = [
        key
        for key in given
        if key not in stored or any(_merge(stored[key], record) for record, _ in given[key])
    ]
    changes: dict[str, list[Memory]] = defaultdict(list)
    for row in memories.filter(key__in=contested).select_for_update() if contested else ():
        changed = {name for record, _ in given[row.key] for name in _merge(row, record)}
        if changed:
            changes[row.collection_key].append(row)
            _update(using, row, changed)


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
    for repeat, _ in given[1:]:
        _merge(row, repeat)
    return row


def _merge(row: Memory, record: VectorRecord) -> set[str]:
    """Change a row to what a record says of it; return the names of the fields that changed."""
    wanted = {name: getattr(record, name) for name in ("content", "role", "name", "kind")}
    metadata = normalise_metadata(record.metadata)
    # As JSON, because {"k": 1} == {"k": True} in Python.
    if metadata is not None and encode(metadata) != encode(row.metadata):
        wanted["metadata"] = metadata
    occurred_at = from_database(row.occurred_at)
    expires_at = record.expires_at
    if record.occurred_at is not None and record.occurred_at > occurred_at:
        wanted["occurred_at"] = to_database(record.occurred_at)
        if expires_at is None and record.retention is not None:
            expires_at = _after(record.occurred_at, record.retention)
    if expires_at is not None:
        wanted["expires_at"] = to_database(expires_at)
    changed = {name for name, value in wanted.items() if getattr(row, name) != value}
    if "metadata" in wanted:
        changed.add("metadata")
    for name in changed:
        setattr(row, name, wanted[name])
    return changed


def _after(moment: datetime, retention: timedelta) -> datetime:
    try:
        return moment + retention
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _update(using: str, row: Memory, changed: set[str]) -> None:
    row.save(using=using, update_fields=sorted(changed))
    embeddings = Embedding.objects.using(using).filter(memory=row)
    if changed & {"content", "name"}:
        remove(using, {row.pk: row.collection_key})
        embeddings.delete()
    elif changed & {"metadata", "role", "kind"}:
        remove(using, {row.pk: row.collection_key})
        tokens = attribute_tokens(row.collection, row.attributes)
        for space_id, bits in embeddings.values_list("space_id", "signature"):
            add(using, row.collection_key, space_id, [(row.pk, bytes(bits), tokens)])


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
        by_key = {record_key(collection, record_id): record_id for record_id in vectors}
        return sum(
            _attach(using, space, [(key, vectors[by_key[key]]) for key in keys], bits, texts)
            for keys in _batches(sorted(by_key))
        )


def _batches(keys: list[str]) -> Iterable[list[str]]:
    return (keys[start : start + INSERT_BATCH] for start in range(0, len(keys), INSERT_BATCH))


def _space(using: str, name: str, width: int, bits: int) -> Space:
    space, _ = Space.objects.using(using).get_or_create(
        key=space_key(name), defaults={"name": name, "width": width, "bits": bits}
    )
    return space


def _attach(
    using: str,
    space: Space,
    vectors: Sequence[tuple[str, Vector]],
    bits: int,
    texts: Mapping[str, str] | None,
) -> int:
    # Locked, so that a row can't be forgotten or rewritten between this look and our commit.
    memories = Memory.objects.using(using).order_by("key").select_for_update()
    rows = {row.key: row for row in memories.filter(key__in=[key for key, _ in vectors])}
    embeddings = Embedding.objects.using(using).filter(space=space)
    held = {
        pk: bytes(vector)
        for ids in id_batches(using, [row.pk for row in rows.values()])
        for pk, vector in embeddings.filter(memory_id__in=ids).values_list("memory_id", "vector")
    }
    fresh, replaced = [], []
    for key, vector in vectors:
        row = rows.get(key)
        if row is None or (texts is not None and texts[row.record_id] != row.embedded_text):
            continue
        if row.pk not in held:
            fresh.append((row, vector))
        elif texts is None and held[row.pk] != vector.to_bytes():
            replaced.append((row, vector))
    if replaced:
        remove(using, {row.pk: row.collection_key for row, _ in replaced}, space.pk)
        embeddings.filter(memory_id__in=[row.pk for row, _ in replaced]).delete()
    _insert_vectors(using, space, fresh + replaced, bits)
    same = 0 if texts is not None else len(held) - len(replaced)
    return len(fresh) + len(replaced) + same


def _insert_vectors(
    using: str, space: Space, pairs: Sequence[tuple[Memory, Vector]], bits: int
) -> None:
    if not pairs:
        return
    signs = signatures(np.stack([vector.values for _, vector in pairs]), bits)
    Embedding.objects.using(using).bulk_create(
        Embedding(memory=row, space=space, vector=vector.to_bytes(), signature=sign.tobytes())
        for (row, vector), sign in zip(pairs, signs, strict=True)
    )
    entries = [
        (row.pk, sign.tobytes(), attribute_tokens(row.collection, row.attributes))
        for (row, _), sign in zip(pairs, signs, strict=True)
    ]
    add(using, pairs[0][0].collection_key, space.pk, entries)
