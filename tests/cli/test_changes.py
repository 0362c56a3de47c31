"""``segtail changes`` as people run it, on the metadata log of a real cluster, whole, cut, damaged, old, or not there."""

import json
import os
import shutil
from pathlib import Path

import pytest

from streaming.simulator.log import LogDir
from tests.builders import log_dir
from tests.commands import run_command
from tests.formats.real_clusters import SEGMENT, metadata_of
from tests.tables import each_row

EVERYTHING = "What admins did is known since the cluster began."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return metadata_of(log_dir(tmp_path / "a"), "with_snapshots")


def changes(*arguments: object) -> tuple[int, list[dict[str, object]], dict[str, object]]:
    done = run_command("changes", "--json", *map(str, arguments))
    page = json.loads(done.stdout)
    return done.returncode, page["rows"], page


def test_what_admins_did_is_told_the_newest_first_with_offset_and_time(folder: Path) -> None:
    done = run_command("changes", str(folder.parent))
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[0].split(), lines[-1]) == (3, ["when", "offset", "what"], EVERYTHING)
    assert lines[1] == "2026-11-20T03:34:34Z  106     segment.ms of meta-A-3 went from not set (Kafka's default is 7d) to 777777ms"
    for text in (
        "81      Topic meta-A-2 was deleted with 1 partition",
        "80      retention.ms of meta-A-1 went from 5474746ms to not set (Kafka's default is 7d)",
        "78      retention.ms of meta-A-0 went from 763573ms to 845191ms",
        "82      log.retention.ms of broker 1 went from not set to 955958051ms",
        "85      log.segment.bytes of all brokers went from not set to 7MiB",
        "12      Broker 1 is new in the cluster",
        "2       Feature metadata.version went from none to level 30",
    ):
        assert f"Z  {text}" in done.stdout
    assert len(lines) == 26 + 3


def test_a_topic_that_was_deleted_is_found_by_its_name(folder: Path) -> None:
    status, rows, _ = changes(folder.parent, "meta-A-2")
    assert (status, [row["kind"] for row in rows]) == (3, ["topic_deleted", "topic_created"])
    assert {row["topic_id"] for row in rows} == {rows[0]["topic_id"]}


def test_a_topic_that_never_was_is_refused(folder: Path) -> None:
    done = run_command("changes", str(folder.parent), "--topic", "nix")
    assert (done.returncode, "there is no topic nix, and nothing is known of one before" in done.stderr) == (2, True)


@each_row(
    ("options", "offsets"),
    [
        (("--since", "1795145674000"), [106, 105, 104]),
        (("--since", "2026-11-20T03:34:33Z", "--filter", "late"), [98]),
        (("--at", "2026-11-20T03:34:18Z", "--filter", "broker"), [8]),
        (("--since", "2026-11-21"), []),
        (("--since", "1m", "--at", "1795145734000"), [106, 105, 104]),
    ],
)
def test_times_and_texts_leave_out_the_others(folder: Path, options: tuple[str, ...], offsets: list[int]) -> None:
    status, rows, _ = changes(folder.parent, *options)
    assert (status, [row["offset"] for row in rows]) == (3 if offsets else 0, offsets)


def test_nothing_is_known_before_the_oldest_that_is_left(folder: Path) -> None:
    """The broker has deleted what its oldest snapshot covers."""
    data = (folder / SEGMENT).read_bytes()
    position = 0
    while int.from_bytes(data[position : position + 8], "big") < 35:
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    (folder / f"{35:020}.log").write_bytes(data[position:])
    (folder / SEGMENT).unlink()
    _, rows, page = changes(folder.parent)
    assert (min(int(str(row["offset"])) for row in rows), page["admin_since_offset"]) == (35, 35)
    assert "is known since 2026-11-20T03:34:21Z, offset 35 of the metadata log" in run_command("changes", str(folder.parent)).stdout


def test_of_several_copies_the_newest_counts(tmp_path: Path) -> None:
    new, old = metadata_of(log_dir(tmp_path / "a"), "with_snapshots"), metadata_of(log_dir(tmp_path / "b", broker=2), "with_snapshots")
    for each in old.glob("*.checkpoint"):
        each.unlink()
    data = (old / SEGMENT).read_bytes()
    (old / SEGMENT).write_bytes(data[:3000])
    both, alone = (changes(*some) for some in ((old.parent, new.parent), (old.parent,)))
    assert (both[1], len(both[1]), both[2]["doubts"]) == (changes(new.parent)[1], 26, [])
    assert 0 < len(alone[1]) < 26


def test_an_old_copy_says_up_to_when_it_is(folder: Path) -> None:
    for each in folder.glob("*.checkpoint"):
        each.unlink()
    os.utime(folder / SEGMENT, (1_795_145_700, 1_795_145_700))
    done = run_command("changes", str(folder.parent))
    assert (
        done.stdout.splitlines()[-1]
        == "The metadata log that was read was last written at 2026-11-20T03:35:00Z: nothing is known after that."
    )


def test_a_damaged_log_is_named_and_another_copy_answers(tmp_path: Path, folder: Path) -> None:
    data = bytearray((folder / SEGMENT).read_bytes())
    for each in folder.glob("*.checkpoint"):
        each.unlink()
    data[data.index(b"retention.ms")] ^= 1
    (folder / SEGMENT).write_bytes(data)
    alone = run_command("changes", str(folder.parent))
    assert (alone.returncode, "the metadata log of broker 1 cannot be read here" in alone.stdout) == (4, True)
    assert "CRC" in alone.stderr
    good = metadata_of(log_dir(tmp_path / "b", broker=2), "with_snapshots")
    status, rows, page = changes(folder.parent, good.parent)
    assert (status, len(rows), len(page["doubts"])) == (3, 26, 1)  # type: ignore[arg-type]


def test_a_log_that_cannot_be_read_before_its_newest_snapshot_says_from_when_on_it_is_known(folder: Path) -> None:
    data = (folder / SEGMENT).read_bytes()
    (folder / SEGMENT).write_bytes(data[:3000])
    done = run_command("changes", str(folder.parent))
    assert (done.returncode, "Z, offset 103 of the metadata log." in done.stdout) == (4, True)
    assert "- the metadata log of broker 1 cannot be read from before its newest snapshot, so less is known of admins: " in done.stdout


def test_log_dirs_without_a_metadata_log_say_so(tmp_path: Path) -> None:
    directory: LogDir = log_dir(tmp_path / "a")
    done = run_command("changes", str(directory.path))
    assert done.returncode == 4
    assert "What admins did is not known: no metadata log can be read." in done.stdout
    assert "name the log dir that has __cluster_metadata-0 too" in done.stdout


def test_a_copy_without_its_segment_is_no_metadata_log(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    assert run_command("changes", str(folder.parent)).returncode == 4
