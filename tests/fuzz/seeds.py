"""Every parser of Kafka's formats, with bytes that it understands, to be damaged."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streaming.kafka.formats.checkpoint_files import (
    parse_clean_shutdown,
    parse_leader_epochs,
    parse_offset_checkpoint,
    parse_partition_metadata,
    parse_quorum_state,
)
from streaming.kafka.formats.cluster_image import ClusterImage
from streaming.kafka.formats.consumer_offsets import read_offset_commit, read_offsets_key, read_offsets_value
from streaming.kafka.formats.control import read_control
from streaming.kafka.formats.coordinator_states import read_share_key, read_share_value, read_transaction_key, read_transaction_value
from streaming.kafka.formats.entries import inner_messages, read_entry_records, read_entry_times, read_message
from streaming.kafka.formats.layout import read_entry_head
from streaming.kafka.formats.metadata_records import read_metadata_frame, read_metadata_record
from streaming.kafka.formats.names import parse_metadata_snapshot, parse_partition_dir, parse_segment_file
from streaming.kafka.formats.producer_snapshot import read_producer_snapshot
from streaming.kafka.formats.properties import parse_meta_properties, parse_properties, parse_server_properties
from streaming.kafka.formats.records import Record, read_batch, read_begun_batch, read_record_heads, read_records
from streaming.kafka.formats.segment_indexes import read_aborted_columns, read_aborted_transactions, read_offset_entries, read_time_entries
from streaming.kafka.formats.stored_groups import ConsumerGroupKey, KeyType, read_group_metadata
from streaming.kafka.scan.pieces import Piece, scan
from tests.formats import vectors
from tests.record_batches import image_of_snapshot, read_batches

DATA = Path(__file__).parents[1] / "data"
_LARGEST_SEED = 8192
_LIMIT = 1 << 20  # bytes that damaged records may be opened to


@dataclass(frozen=True)
class Parser:
    """A parser, and what it understands."""

    name: str
    parse: Callable[[bytes], object]
    seeds: tuple[bytes, ...]

    def __str__(self) -> str:
        return self.name


def _logs(pattern: str = "*/*/*.log", folder: str = "logs") -> tuple[bytes, ...]:
    return tuple(path.read_bytes()[:_LARGEST_SEED] for path in sorted((DATA / folder).glob(pattern)))


def _files(suffix: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes()[:_LARGEST_SEED] for path in sorted((DATA / "logs").glob(f"*/*/*{suffix}")))


def _records(pattern: str, folder: str = "logs") -> list[Record]:
    return [record for data in _logs(pattern, folder) for batch in read_batches(memoryview(data))[0] for record in read_records(batch)]


def _batch_records(data: bytes) -> object:
    batch = read_batch(memoryview(data), check_crc=False)
    return None if batch is None else list(read_records(batch, _LIMIT))


def _bodies(data: bytes) -> object:
    batch = read_batch(memoryview(data), check_crc=False)
    return None if batch is None else list(read_record_heads(batch, _LIMIT, 1 << 16, bodies=True))


def _inner(data: bytes) -> object:
    message = read_message(data)
    return None if message is None else list(inner_messages(message, _LIMIT))


def _scan(data: bytes) -> object:
    return scan(np.frombuffer(data, np.uint8), [Piece(0, len(data), 0)])


def _control(data: bytes) -> object:
    return read_control(Record(0, 0, -1, data[:4], data[4:], ()))


def _offsets(data: bytes) -> object:
    return read_offsets_value(read_offsets_key(data[:64]), data[64:])


def _newer_group(data: bytes) -> object:
    """The first byte is the type of the key."""
    if not data or data[0] not in set(KeyType) - {KeyType.LEGACY_OFFSET_COMMIT, KeyType.OFFSET_COMMIT, KeyType.GROUP_METADATA}:
        return None
    return read_offsets_value(ConsumerGroupKey(KeyType(data[0]), "g"), data[1:])


def _share_state(data: bytes) -> object:
    key = read_share_key(data[:_SHARE_KEY_BYTES])
    return None if key is None else read_share_value(key, data[_SHARE_KEY_BYTES:])


_BATCHES = (vectors.DATA_BATCH, vectors.COMMIT_MARKER, vectors.ABORT_MARKER, vectors.EMPTY_BATCH, *_logs("codecs/*/*.log"))
_TRANSACTIONS = _records("transactions*/__transaction_state-*/*.log")
_OFFSETS = _records("transactions/__consumer_offsets-*/*.log")
_SHARE_STATE = _records("__share_group_state-*/*.log", "groups")
_SHARE_KEY_BYTES = 31
_METADATA = (DATA / "metadata" / "with_snapshots" / "log.bin").read_bytes()[:_LARGEST_SEED]

PARSERS = (
    Parser("batch", lambda data: read_batch(memoryview(data)), _BATCHES),
    Parser("begun batch", lambda data: read_begun_batch(memoryview(data)), _BATCHES),
    Parser("records", _batch_records, _BATCHES),
    Parser("bodies of records", _bodies, _BATCHES),
    Parser("times of an entry", lambda data: list(read_entry_times(memoryview(data), limit=_LIMIT)), _logs()),
    Parser("entry", lambda data: list(read_entry_records(memoryview(data), limit=_LIMIT) or ()), _logs()),
    Parser("head of an entry", read_entry_head, _logs()),
    Parser("message", _inner, _logs("old_formats/*/*.log")),
    Parser("scan", _scan, _logs()),
    Parser(
        "control record", _control, tuple(bytes((0, 0, 0, kind)) + value for kind in range(7) for value in vectors.CONTROL_VALUES.values())
    ),
    Parser("offset index", read_offset_entries, _files(".index")),
    Parser("time index", read_time_entries, _files(".timeindex")),
    Parser("aborted transactions", read_aborted_transactions, _files(".txnindex")),
    Parser("aborted transactions as columns", read_aborted_columns, _files(".txnindex")),
    Parser("producer snapshot", read_producer_snapshot, _files(".snapshot")),
    Parser("leader epochs", parse_leader_epochs, (b"0\n2\n0 0\n1 32\n",)),
    Parser("offset checkpoint", parse_offset_checkpoint, (b"0\n2\na 0 1\nb-c 10 92233720368\n",)),
    Parser("topic id", parse_partition_metadata, (b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw",)),
    Parser("clean shutdown", parse_clean_shutdown, (b'{"version":0,"brokerEpoch":12}', b"")),
    Parser("log dir", parse_meta_properties, (b"#comment\nversion=1\ncluster.id=AAECAwQFBgcICQoLDA0ODw\nnode.id=3\ndirectory.id=x\n",)),
    Parser("properties", parse_properties, (b"a\\u0041 = b\\\n  c\n!x\nk:v",)),
    Parser("server.properties", parse_server_properties, (b"node.id=1\nlog.retention.ms = 60000\n", b"broker.id : 7")),
    Parser(
        "quorum state",
        parse_quorum_state,
        (
            b'{"leaderId":1,"leaderEpoch":5,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
            b'{"clusterId":"x","leaderId":1,"leaderEpoch":5,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}',
        ),
    ),
    Parser("transactional id", read_transaction_key, tuple(record.key or b"" for record in _TRANSACTIONS)),
    Parser(
        "transaction", read_transaction_value, (*vectors.TRANSACTION_VALUES.values(), *(record.value or b"" for record in _TRANSACTIONS))
    ),
    Parser("offsets key", read_offsets_key, tuple(record.key or b"" for record in _OFFSETS)),
    Parser("offsets value", _offsets, tuple((record.key or b"").ljust(64, b"\0") + (record.value or b"") for record in _OFFSETS)),
    Parser(
        "group of the newer protocol",
        _newer_group,
        tuple(bytes((kind,)) + bytes.fromhex(value) for kind, value, _ in vectors.CONSUMER_GROUP_RECORDS + vectors.STREAMS_GROUP_RECORDS),
    ),
    Parser("share group's state", _share_state, tuple((record.key or b"") + (record.value or b"") for record in _SHARE_STATE)),
    Parser("offset commit", read_offset_commit, vectors.OFFSET_COMMITS),
    Parser("group", read_group_metadata, tuple(value for pair in vectors.GROUPS for value in pair)),
    Parser("metadata record", read_metadata_record, tuple(vectors.METADATA_RECORDS.values())),
    Parser("metadata frame", read_metadata_frame, tuple(vectors.METADATA_RECORDS.values())),
    Parser("directory name", lambda data: parse_partition_dir(data.decode("latin-1")), (b"a-b-0", b"t-1.0123456789abcdef-delete")),
    Parser("segment file name", lambda data: parse_segment_file(data.decode("latin-1")), (b"00000000000000000042.timeindex.deleted",)),
    Parser("snapshot name", lambda data: parse_metadata_snapshot(data.decode("latin-1")), (b"00000000000000000042-0000000007.checkpoint",)),
    Parser("metadata log", lambda data: ClusterImage().apply(memoryview(data)), (_METADATA,)),
    Parser("metadata snapshot", lambda data: image_of_snapshot(memoryview(data), 1), (_METADATA,)),
)

_MODULE = re.compile(r"^def ((?:read|parse)_\w+)\(", re.MULTILINE)


def parsers_of(package: Path) -> set[str]:
    """The names of all functions of a package that read or parse."""
    return {name for path in package.glob("*.py") for name in _MODULE.findall(path.read_text(encoding="utf-8"))}
