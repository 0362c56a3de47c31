"""What is not as Kafka writes it: the file, the place and what was expected are reported, and the rest of the work goes on."""

import json
import os
import struct
from pathlib import Path

import pytest

from streaming.broker.disk.opening import bytes_read
from streaming.terminal.dump.dumper import MOST_ALIKE
from streaming.terminal.dump.request import Payload
from tests.builders import NOW, abort, batch
from tests.commands import run_command
from tests.dump.running import LOGS, dumped, findings_at, rows
from tests.dump.writing import batch_positions, cut, damage, log_of, segment_name
from tests.tables import each_row
from tests.tools import nobody

SEGMENT = segment_name()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Sixty batches of two records."""
    return log_of(tmp_path, [batch(2, timestamp=NOW + n) for n in range(60)])


def test_a_sound_log_has_nothing_to_find(log: Path) -> None:
    assert len(rows(log, verify=True)) == 60


def test_a_pointer_of_git_lfs_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / SEGMENT
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n")
    (finding,) = dumped(path).findings
    assert "a pointer of Git LFS, not the file: `git lfs pull` fetches that" in finding.what


def test_a_batch_that_is_cut_off_is_reported_and_those_before_it_are_shown(log: Path) -> None:
    positions = batch_positions(log / SEGMENT)
    cut(log / SEGMENT, positions[-1] + 30)
    done = dumped(log, format="json")
    assert (len(done.rows), done.status, findings_at(done)) == (59, 1, [(SEGMENT, positions[-1])])
    assert "expected a whole batch of" in done.findings[0].what
    assert "found 30 up to the end" in done.findings[0].what


def test_a_beginning_of_a_header_is_reported(log: Path) -> None:
    positions = batch_positions(log / SEGMENT)
    cut(log / SEGMENT, positions[-1] + 5)
    assert findings_at(dumped(log)) == [(SEGMENT, positions[-1])]


def test_zeros_to_the_end_are_a_preallocated_tail_and_no_damage(log: Path) -> None:
    with (log / SEGMENT).open("ab") as file:
        file.write(bytes(3 << 20))
    assert len(rows(log)) == 60
    (summary,) = rows(log, summary=True)
    assert (summary["zero_tail_bytes"], summary["unreadable_bytes"]) == (3 << 20, 0)


@pytest.mark.parametrize("data", [False, True], ids=["to the end", "with bytes behind it"])
def test_a_hole_that_is_larger_than_any_disk_is_passed_over(data: bool, log: Path) -> None:
    size = (log / SEGMENT).stat().st_size
    os.truncate(log / SEGMENT, 1 << 40)
    if data:
        with (log / SEGMENT).open("r+b") as file:
            file.seek((1 << 39) + 5)
            file.write(b"x")
    before = bytes_read()
    done = dumped(log, verify=True, format="json")
    assert bytes_read() - before < 64 << 20
    assert len(done.rows) == 60
    assert [finding.what.partition(";")[0] for finding in done.findings if finding.position == size] == (
        [f"expected a batch or zeros to the end of the file, found zeros up to position {(1 << 39) + 5}"] if data else []
    )


def test_findings_that_differ_in_numbers_alone_are_summed_up(tmp_path: Path) -> None:
    count = 3 * MOST_ALIKE
    for number in range(count):
        (tmp_path / f"{number:020}.log").write_bytes(b"x" * (number % 5 + 2))
    found = [finding for finding in dumped(tmp_path, verify=True).findings if "not whole" in finding.what]
    assert len(found) == MOST_ALIKE + 1
    assert found[-1].path.name == f"{count - 1:020}.log"
    assert found[-1].what.endswith(f"; it is the last of {count - MOST_ALIKE} more that differ in numbers alone")


def test_behind_a_hole_of_zeros_the_dump_goes_on_where_the_index_leads(log: Path) -> None:
    positions = batch_positions(log / SEGMENT)
    damage(log / SEGMENT, positions[10], bytes(positions[12] - positions[10]))
    done = dumped(log, format="json")
    shown = [row["position"] for row in done.rows]
    assert findings_at(done)[0] == (SEGMENT, positions[10])
    assert "expected a batch or zeros to the end of the file" in done.findings[0].what
    assert shown[:10] == positions[:10]
    assert set(positions[14:]) <= set(shown)


@pytest.mark.parametrize("length", [-5, 0, 3, 2**31 - 1])
def test_a_wrong_length_costs_few_batches_where_there_is_an_index(log: Path, length: int) -> None:
    positions = batch_positions(log / SEGMENT)
    damage(log / SEGMENT, positions[20] + 8, struct.pack(">i", length))
    done = dumped(log, format="json")
    assert (findings_at(done)[0], done.status) == ((SEGMENT, positions[20]), 1)
    assert set(positions[:20]) | set(positions[23:]) <= {row["position"] for row in done.rows}


def test_a_magic_that_does_not_exist_is_reported(log: Path) -> None:
    positions = batch_positions(log / SEGMENT)
    damage(log / SEGMENT, positions[20] + 16, b"\x07")
    done = dumped(log)
    assert findings_at(done)[0] == (SEGMENT, positions[20])
    assert "found magic 7" in done.findings[0].what


def test_every_bit_under_the_crc_is_verified(log: Path) -> None:
    positions = batch_positions(log / SEGMENT)
    damage(log / SEGMENT, positions[30] + 70, b"\xff")
    done = dumped(log, format="json", verify=True)
    assert (findings_at(done), done.status) == ([(SEGMENT, positions[30])], 1)
    assert [row["position"] for row in done.rows if not row["valid"]] == [positions[30]]
    assert dumped(log).status == 0


def test_an_offset_that_goes_back_is_reported(log: Path) -> None:
    positions = batch_positions(log / SEGMENT)
    damage(log / SEGMENT, positions[30], struct.pack(">q", 3))
    done = dumped(log)
    assert findings_at(done)[0] == (SEGMENT, positions[30])
    assert "expected offset 60 or above" in done.findings[0].what


def test_missing_offsets_are_verified(log: Path) -> None:
    positions, data = batch_positions(log / SEGMENT), (log / SEGMENT).read_bytes()
    (log / SEGMENT).write_bytes(data[: positions[30]] + data[positions[31] :])
    for extension in (".index", ".timeindex"):
        (log / SEGMENT).with_suffix(extension).unlink()
    assert dumped(log).status == 0
    done = dumped(log, verify=True)
    assert findings_at(done) == [(SEGMENT, positions[30])]
    assert "expected offset 60, found 62" in done.findings[0].what


def test_a_missing_segment_is_verified(tmp_path: Path) -> None:
    log = log_of(tmp_path, [batch(4)], [batch(4)], [batch(4)])
    (log / segment_name(4)).unlink()
    assert findings_at(dumped(log, verify=True)) == [(segment_name(8), 0)]


def test_missing_offsets_of_a_compacted_log_are_right(log: Path) -> None:
    positions, data = batch_positions(log / SEGMENT), (log / SEGMENT).read_bytes()
    (log / SEGMENT).write_bytes(data[: positions[30]] + data[positions[31] :])
    for extension in (".index", ".timeindex"):
        (log / SEGMENT).with_suffix(extension).unlink()
    (log.parent / "cleaner-offset-checkpoint").write_text(f"0\n1\n{log.name.replace('-', ' ')} 100\n")
    assert dumped(log, verify=True).status == 0


@pytest.mark.parametrize("extension", ["index", "timeindex"])
def test_an_index_entry_that_the_log_does_not_prove_is_found(log: Path, extension: str) -> None:
    index = (log / SEGMENT).with_suffix(f".{extension}")
    entry = {"index": 8, "timeindex": 12}[extension]
    data = bytearray(index.read_bytes())
    data[5 * entry + 7] ^= 1  # the position, or the timestamp
    index.write_bytes(data)
    assert (index.name, 5 * entry) in findings_at(dumped(log, verify=True))


def test_an_aborted_transaction_without_a_marker_is_found(tmp_path: Path) -> None:
    log = log_of(tmp_path, [batch(2, producer=7, transactional=True), abort(7), batch(1)])
    assert dumped(log, verify=True).status == 0
    index = (log / SEGMENT).with_suffix(".txnindex")
    damage(index, 9, b"\x09")  # the last byte of the producer's id
    assert findings_at(dumped(log, verify=True)) == [(index.name, 0)]


@pytest.mark.parametrize("directory", sorted((LOGS / "truncation").iterdir()), ids=lambda path: path.name)
def test_stale_entries_behind_a_truncation_are_nothing_wrong(directory: Path) -> None:
    found = dumped(directory, verify=True).findings
    assert [finding for finding in found if finding.path.suffix.endswith("index")] == []


def test_a_producer_snapshot_with_a_wrong_crc_is_reported_and_the_next_file_is_shown(tmp_path: Path) -> None:
    good = LOGS / "truncation" / "tr-0" / f"{32:020}.snapshot"
    bad = tmp_path / good.name
    data = bytearray(good.read_bytes())
    data[-1] ^= 1
    bad.write_bytes(data)
    done = dumped(bad, good, format="json")
    assert (findings_at(done), done.status, len(done.rows)) == ([(bad.name, 2)], 1, 2)
    assert "wrong CRC" in done.findings[0].what


@pytest.mark.parametrize("size", [0, 1, 9, 30, 55])
def test_a_producer_snapshot_that_is_cut_off_is_reported(tmp_path: Path, size: int) -> None:
    path = tmp_path / f"{32:020}.snapshot"
    path.write_bytes((LOGS / "truncation" / "tr-0" / path.name).read_bytes()[:size])
    done = dumped(path)
    assert (findings_at(done), done.status) == ([(path.name, size)], 1)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("leader-epoch-checkpoint", b"0\n2\n0 0\n"),
        ("replication-offset-checkpoint", b"0\n1\ntopic zero 1\n"),
        ("recovery-point-offset-checkpoint", bytes(40)),
        ("partition.metadata", b"version: 0\n"),
        ("meta.properties", b"version=1\n"),
        ("quorum-state", b"{"),
        (".kafka_cleanshutdown", b"[]"),
        ("recovery-point-offset-checkpoint.tmp", b"0\n2\na 0 1\n"),
        (f"{0:020}.txnindex", bytes(35)),
        (f"{0:020}-{1:010}.checkpoint", b""),
    ],
)
def test_a_small_file_that_is_damaged_is_reported_by_name(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    done = dumped(tmp_path / name)
    assert ([finding.path.name for finding in done.findings], done.status) == ([name], 1)
    assert "expected" in done.findings[0].what


@each_row(
    ("name", "content", "row"),
    [
        (".lock", b"", {"kind": "lock", "size": 0}),
        (".kafka_cleanshutdown", b'{"version":0,"brokerEpoch":7}', {"kind": "clean_shutdown", "version": 0, "broker_epoch": 7}),
        (".kafka_cleanshutdown", b"", {"kind": "clean_shutdown", "version": None, "broker_epoch": None}),
        ("leader-epoch-checkpoint.tmp", b"0\n1\n3 40\n", {"kind": "leader_epoch", "epoch": 3, "start_offset": 40}),
        ("replication-offset-checkpoint.tmp", b"0\n1\na 0 5\n", {"kind": "offset_checkpoint", "topic": "a", "partition": 0, "offset": 5}),
    ],
)
def test_a_small_file_that_kafka_writes_is_known_by_its_name(name: str, content: bytes, row: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    done = run_command("dump", "--format", "json", path)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"file": str(path), **row})


def test_a_metadata_snapshot_that_this_user_may_not_read_holds_up_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # nobody may look for a file here, and need not pass the directories above
    tmp_path.chmod(0o755)
    source = max((LOGS.parent / "metadata" / "with_snapshots").glob("*.checkpoint"))
    directory = Path("__cluster_metadata-0")
    directory.mkdir()
    (directory / SEGMENT).write_bytes((source.parent / "log.bin").read_bytes())
    expected = rows(directory)
    (directory / source.name).write_bytes(source.read_bytes())
    (directory / source.name).chmod(0o400 if os.geteuid() == 0 else 0)
    with nobody():
        done = dumped(directory, format="json")
    assert (findings_at(done), done.status, done.rows) == ([(source.name, None)], 1, expected)
    assert "expected a file that this user may read" in done.findings[0].what


def test_a_metadata_snapshot_without_its_footer_is_reported(tmp_path: Path) -> None:
    source = max((LOGS.parent / "metadata" / "with_snapshots").glob("*.checkpoint"))
    path = tmp_path / source.name
    path.write_bytes(source.read_bytes()[: batch_positions(source)[-1]])
    done = dumped(path)
    assert findings_at(done) == [(path.name, path.stat().st_size)]


def test_a_batch_whose_records_are_damaged_is_reported_and_the_next_one_is_shown(log: Path) -> None:
    positions = batch_positions(log / SEGMENT)
    damage(log / SEGMENT, positions[1] + 61, b"\x7f")  # the length of its first record
    done = dumped(log, format="json", records=True)
    assert findings_at(done) == [(SEGMENT, positions[1])]
    assert [row["offset"] for row in done.rows] == [0, 1, *range(4, 120)]


def test_a_batch_larger_than_the_buffer_is_shown_and_verified(tmp_path: Path) -> None:
    log = log_of(tmp_path, [batch(1), batch(1, value_bytes=9 << 20), batch(1)])
    assert [row["size"] > 9 << 20 for row in rows(log, verify=True)] == [False, True, False]
    assert [row["value_size"] for row in rows(log, records=True, payload=Payload.NONE)] == [100, 9 << 20, 100]
    damage(log / SEGMENT, 5 << 20, b"\0")
    assert len(dumped(log, verify=True).findings) == 1


def test_a_path_at_which_there_is_nothing_of_kafkas_holds_up_no_other(log: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "versions" / "release-2").mkdir(parents=True)
    os.mkfifo(tmp_path / SEGMENT)
    paths = [tmp_path / name for name in ("absent", "empty", "notes.txt", "versions", SEGMENT)]
    done = dumped(*paths, log, format="json")
    assert [finding.path for finding in done.findings] == paths
    assert (len(done.rows), done.status) == (60, 2)
