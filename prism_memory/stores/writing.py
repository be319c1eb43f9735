"""Writing records to the tables: idempotent, in one order, all or none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import connections
from django.utils import timezone

from ..exceptions import InvalidTimestamp
from ..inserting import insert
from ..metadata import Scalar, encode, normalise_metadata
from ..models import Memory
from ..selecting import columns
from ..timestamps import from_database, spread, to_database
from .attaching import insert_vectors, remove_vectors, vectors_of
from .keys import BATCH, collection_key, in_batches, read, record_key

if TYPE_CHECKING:
    from .contract import VectorRecord

    #: By key: the records of that key, each with the time that it gets if it gives none.
    Given = Mapping[str, Sequence[tuple[VectorRecord, datetime]]]

__all__ = ["write_records"]

#: What a memory that is remembered anew after it expired starts afresh with.
RENEWED = (
    *("content", "role", "name", "kind", "metadata"),
    *("occurred_at", "expires_at", "created_at"),
)


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
    contested = [key for keys in in_batches(ordered) for key in _insert_missing(using, keys, given)]
    # All rows are locked before the first page is: whoever erases does the same.
    changes = [
        (row, changed)
        for keys in in_batches(contested)
        for row in _memories(using, keys, lock=True)
        if (changed := {name for repeat in given[row.key] for name in _merge(row, *repeat)})
    ]
    _update(using, changes)


def _insert_missing(using: str, keys: Sequence[str], given: Given) -> list[str]:
    """Insert those of the records that are new; return the keys whose rows may have to change."""
    stored = {row.key: row for row in _memories(using, keys, lock=False)}
    missing = [key for key in keys if key not in stored]
    _insert(using, [{**_new(given[key]), "key": key} for key in missing])
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


def _memories(using: str, keys: Sequence[str], *, lock: bool) -> list[Memory]:
    names = [field.attname for field in Memory._meta.concrete_fields]
    return [Memory.from_db(using, names, row) for row in read(using, names, keys, lock=lock)]


def _insert(using: str, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        return
    # An update that changes nothing, rather than ignoring conflicts: MariaDB's INSERT IGNORE would
    # also ignore, and cut, what it can't store.
    key = columns(using, Memory, ["key"])
    suffix = f"ON CONFLICT ({key}) DO UPDATE SET {key} = EXCLUDED.{key}"
    if connections[using].vendor == "mysql":
        # Not in Django's words for MySQL 8, "AS new ON …", which mysqlclient doesn't take for the
        # end of an INSERT: it would then send row by row.
        suffix = f"ON DUPLICATE KEY UPDATE {key} = {key}"
    insert(using, Memory, {name: [row[name] for row in rows] for name in rows[0]}, suffix=suffix)


def _new(given: Sequence[tuple[VectorRecord, datetime]]) -> dict[str, Any]:
    """The values of a record's row, but for its key."""
    record, moment = given[0]
    owner = record.owner
    moment = record.occurred_at or moment
    expires_at = record.expires_at
    if expires_at is None and record.retention is not None:
        expires_at = _after(moment, record.retention)
    values = {
        "collection_key": collection_key(record.collection),
        "owner_key": owner.owner.digest if owner and owner.owner.key else "",
        "collection": record.collection,
        "record_id": record.id,
        "owner_model": owner.owner.model if owner else "",
        "owner": owner.owner.key if owner else "",
        "scope": owner.scope if owner else "",
        "kind": record.kind,
        "role": record.role,
        "name": record.name,
        "content": record.content,
        "metadata": normalise_metadata(record.metadata) or {},
        "occurred_at": to_database(moment),
        "expires_at": to_database(expires_at),
        "created_at": timezone.now(),
        "attempts": 0,
        "failure": "",
        "not_before": None,
    }
    if len(given) > 1:
        row = Memory(**values)
        for repeat in given[1:]:
            _merge(row, *repeat)
        values = {name: getattr(row, name) for name in values}
    return values


def _merge(row: Memory, record: VectorRecord, moment: datetime) -> set[str]:
    """Change a row to what a record says of it; return the names of the fields that changed."""
    if _expired(row.expires_at):
        renewed = _new([(record, moment)])
        if not _expired(renewed["expires_at"]):
            # To every reader it was gone, so it is new, whether or not it was pruned in between.
            return _change(row, {name: renewed[name] for name in RENEWED})
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


def _expired(expires_at: datetime | None) -> bool:
    return expires_at is not None and from_database(expires_at) <= datetime.now(UTC)


def _canonical(metadata: Mapping[str, Scalar]) -> str:
    return encode(dict(sorted(metadata.items())))


def _after(moment: datetime, retention: timedelta) -> datetime | None:
    """When what happened at a moment expires; None where the calendar ends before."""
    try:
        expires_at = moment + retention
        to_database(expires_at)
    except (OverflowError, InvalidTimestamp):
        return None
    return expires_at


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
    for names, rows in alike.items():
        Memory.objects.using(using).bulk_update(rows, names, batch_size=BATCH)
    # Inserted anew: what an index was told of a vector, its attributes included, never changes.
    kept = vectors_of(using, retagged)
    remove_vectors(using, {pk: row.collection_key for pk, row in {**reworded, **retagged}.items()})
    for collection, space, pairs in kept:
        insert_vectors(using, collection, space, pairs)
