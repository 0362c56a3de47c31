"""Names of directories and files below a log dir."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.formats.names import (
    INTERNAL_TOPICS,
    METADATA_TOPIC,
    DirState,
    FileKind,
    FileStage,
    MetadataSnapshot,
    PartitionDir,
    SegmentFile,
    parse_metadata_snapshot,
    parse_partition_dir,
    parse_segment_file,
    segment_file_name,
)
from tests.tables import each_row

UNIQUE = "3bf740f563944215912768003b6b504e"
TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True).filter(lambda topic: topic not in (".", ".."))
PARTITIONS = st.integers(0, 2**31 - 1)
OFFSETS = st.integers(0, 2**63 - 1)


@each_row(
    ("name", "topic", "partition", "state"),
    [
        ("orders-0", "orders", 0, DirState.LIVE),
        ("weird-name-3-A-0-1", "weird-name-3-A-0", 1, DirState.LIVE),
        ("a.b_c-D-17", "a.b_c-D", 17, DirState.LIVE),
        ("a-delete-0", "a-delete", 0, DirState.LIVE),
        (f"a-delete-0.{UNIQUE}-delete", "a-delete", 0, DirState.DELETE),
        (f"a.b-future-3.{UNIQUE}-future", "a.b-future", 3, DirState.FUTURE),
        (f"meta-A-2-0.{UNIQUE}-stray", "meta-A-2", 0, DirState.STRAY),
        (f"{'t' * 217}-0.{UNIQUE}-delete", "t" * 217, 0, DirState.DELETE),
        ("--0", "-", 0, DirState.LIVE),
        ("...-0", "...", 0, DirState.LIVE),
        ("orders-2147483647", "orders", 2**31 - 1, DirState.LIVE),
        ("__cluster_metadata-0", METADATA_TOPIC, 0, DirState.LIVE),
        ("__transaction_state-49", "__transaction_state", 49, DirState.LIVE),
    ],
)
def test_a_partition_directory_is_split_at_its_last_dash(name: str, topic: str, partition: int, state: DirState) -> None:
    assert parse_partition_dir(name) == PartitionDir(topic, partition, state)


@each_row(
    "name",
    [
        "remote-log-index-cache",
        "lost+found",
        "meta.properties",
        ".lock",
        "",
        "-",
        "-0",
        "orders",
        "orders-",
        "orders-x",
        "orders-+1",
        "orders-01",
        "orders-1 ",
        "orders-\u0661",
        "orders-2147483648",
        "orders-99999999999",
        "a b-0",
        "caf\u00e9-0",
        ".-0",
        "..-0",
        "t" * 250 + "-0",
        "orders-0-delete",
        "orders-delete",
        f"orders.{UNIQUE}-delete",
        f"orders-0{UNIQUE}-delete",
        f"orders-0.{UNIQUE}.x-delete",
        f"orders-0.{UNIQUE}-deleted",
        "orders-0\n",
    ],
)
def test_what_kafka_would_not_have_named_is_no_partition_directory(name: str) -> None:
    assert parse_partition_dir(name) is None


@given(TOPICS, PARTITIONS, st.sampled_from(DirState))
def test_every_topic_and_partition_is_found_again_in_its_directory_name(topic: str, partition: int, state: DirState) -> None:
    mark = "" if state is DirState.LIVE else f".{UNIQUE}-{state}"
    assert parse_partition_dir(f"{topic}-{partition}{mark}") == PartitionDir(topic, partition, state)


@given(st.text())
def test_no_name_makes_the_parsers_raise(name: str) -> None:
    found = parse_partition_dir(name)
    assert found is None or name.startswith(f"{found.topic}-{found.partition}")
    for parse in (parse_segment_file, parse_metadata_snapshot):
        assert parse(name) is None or name[:20].isdecimal()


@each_row(
    ("name", "file"),
    [
        ("00000000000000000000.log", SegmentFile(0, FileKind.LOG, FileStage.LIVE)),
        ("00000000000000000042.index", SegmentFile(42, FileKind.INDEX, FileStage.LIVE)),
        ("00000000000000000042.timeindex.deleted", SegmentFile(42, FileKind.TIMEINDEX, FileStage.DELETED)),
        ("00000000000000000042.txnindex.swap", SegmentFile(42, FileKind.TXNINDEX, FileStage.SWAP)),
        ("00000000000000000042.log.cleaned", SegmentFile(42, FileKind.LOG, FileStage.CLEANED)),
        ("00000000000000000042.snapshot", SegmentFile(42, FileKind.SNAPSHOT, FileStage.LIVE)),
        ("09223372036854775807.log", SegmentFile(2**63 - 1, FileKind.LOG, FileStage.LIVE)),
    ],
)
def test_a_segments_files_are_reported_by_offset_kind_and_stage(name: str, file: SegmentFile) -> None:
    assert parse_segment_file(name) == file


@each_row(
    "name",
    [
        "0.log",
        "000000000000000000000.log",
        "09223372036854775808.log",
        "00000000000000000000.log.tmp",
        "00000000000000000000.log.deleted.deleted",
        "00000000000000000000.checkpoint",
        "00000000000000000000.log\n",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "quorum-state",
    ],
)
def test_other_files_are_no_segment_files(name: str) -> None:
    assert parse_segment_file(name) is None


@given(OFFSETS, st.sampled_from(FileKind))
def test_the_name_of_a_live_file_reads_back(base_offset: int, kind: FileKind) -> None:
    assert parse_segment_file(segment_file_name(base_offset, kind)) == SegmentFile(base_offset, kind, FileStage.LIVE)


@given(OFFSETS, st.integers(0, 2**31 - 1))
def test_the_name_of_a_metadata_snapshot_reads_back(end_offset: int, epoch: int) -> None:
    snapshot = MetadataSnapshot(end_offset, epoch)
    assert parse_metadata_snapshot(snapshot.name) == snapshot


@each_row(
    "name",
    [
        "bootstrap.checkpoint",
        "00000000000000000135-0000000002.checkpoint.part",
        "00000000000000000135-0000000002-8832410.checkpoint.part",
        "00000000000000000135-0000000002.checkpoint.deleted",
        "00000000000000000135-2.checkpoint",
    ],
)
def test_only_a_finished_metadata_snapshot_counts(name: str) -> None:
    assert parse_metadata_snapshot(name) is None


def test_metadata_snapshots_order_by_end_offset_first() -> None:
    assert max(MetadataSnapshot(9, 3), MetadataSnapshot(10, 1)) == MetadataSnapshot(10, 1)


def test_the_metadata_log_is_no_coordinators_topic() -> None:
    assert METADATA_TOPIC not in INTERNAL_TOPICS
    assert {"__transaction_state", "__consumer_offsets", "__share_group_state"} == INTERNAL_TOPICS
