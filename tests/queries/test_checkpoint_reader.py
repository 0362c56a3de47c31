"""Looks at checkpoints: how far the query has read, and what is said where nobody can know that."""

import re
import shutil
import tempfile
from pathlib import Path

import pytest

from streaming.errors import QueryCheckpointError
from streaming.queries import CheckpointReader, LocalCheckpoint, QueryLook, QueryPosition
from tests.queries.written import CHECKPOINTS, Written
from tests.tables import each_row


def play(written: Written, script: str) -> None:
    """Each word is a micro-batch, `p`lanned, `c`ommitted or both, with the offset of partition a-0 in each source, or a file to tear."""
    for word in script.split():
        if word.startswith("!"):
            written.tear(*word[1:].split(":")[:1], *map(int, word.split(":")[1:]))
            continue
        found = re.fullmatch(r"([pc]?)(\d+)(?:=([^@]*))?(?:@(\d+))?", word)
        assert found, word
        sources = [{"a": {0: int(each)}} if each.isdigit() else each for each in (found[3] or "").split("|")]
        if found[1] != "c":
            written.plan(int(found[2]), *sources, at=int(found[4] or 0))
        if found[1] != "p":
            written.commit(int(found[2]), at=int(found[4] or 0))


def reader(directory: Path) -> CheckpointReader:
    return CheckpointReader("c", LocalCheckpoint(directory))


def shown(look: QueryLook) -> tuple[int, int, int]:
    """The last micro-batch, the planned one, and the offset of the only partition."""
    return look.batch, look.planned_batch, max((each.offset for each in look.positions), default=-1)


UPTO_0 = "it has read at least up to where micro-batch 0 has ended, which is the last one before"


@each_row(
    ("script", "expected", "sentences"),
    [
        ("", (-1, -1, -1), ["no micro-batch is planned yet"]),
        ("p0=3", (-1, 0, -1), ["no micro-batch is committed yet"]),
        ("0=5|3|4", (0, -1, 3), []),  # of several sources that read a partition the lowest counts
        ("0=5|-", (0, -1, 5), []),
        ('0={"logOffset":2}|3', (0, -1, 3), ["its source 0 reads no Kafka, as its offset '{\"logOffset\":2}' shows, and is left out"]),
        ("0=3 1=5 !offsets/1", (0, -1, 3), ["offsets/1 cannot be read: ", UPTO_0]),
        ("0=3 1=5 !commits/1", (0, -1, 3), ["commits/1 cannot be read: ", UPTO_0]),
        ("0=3 c1", (0, -1, 3), ["commits/1 is there and offsets/1 is not: it was copied in part, or while its query ran", UPTO_0]),
        ("c1", (-1, -1, -1), ["no micro-batch that is committed has its offsets any more"]),
        ("p0=3 c1 p2=3", (-1, 2, -1), ["no micro-batch that is committed has its offsets any more"]),
        ("0=3 p1=5 !offsets/1:20", (0, 1, 3), ["the micro-batch that is planned next is not known: offsets/1 cannot be read"]),
        ("0=3 1=4 2=5 3=6 !offsets/1 !offsets/2 !offsets/3", (-1, -1, -1), [f"offsets/{each} cannot be read: " for each in (3, 2, 1)]),
    ],
)
def test_a_look(tmp_path: Path, script: str, expected: tuple[int, int, int], sentences: list[str]) -> None:
    written = Written(Path(tempfile.mkdtemp(dir=tmp_path)))
    play(written, script)
    looks = reader(written.directory)
    for _ in range(2):
        look = looks.look()
        found = (*look.doubts, *look.notes)
        assert (shown(look), len(found)) == (expected, len(sentences))
        assert [sentence for sentence, begin in zip(found, sentences, strict=True) if not sentence.startswith(begin)] == []


@each_row(
    ("before", "then", "expected", "sentences"),
    [
        ("0=3|4", "1=5", (0, -1, 3), "offsets/1 has 1 sources, and the query has 2: it is cut off"),
        ("4=5", "* 0=1", (0, -1, 1), "its micro-batches are numbered anew: the last one was 4, and is 0 now. What was known"),
        ("0=5@100", "p0=6@101", (0, -1, 6), ""),  # a file that was written again
    ],
)
def test_a_later_look(tmp_path: Path, before: str, then: str, expected: tuple[int, int, int], sentences: str) -> None:
    written = Written(Path(tempfile.mkdtemp(dir=tmp_path)))
    play(written, before)
    looks = reader(written.directory)
    assert looks.look().generation == 0
    if then.startswith("*"):
        shutil.rmtree(written.directory)
        written = Written(written.directory)
    play(written, then.strip("*"))
    look = looks.look()
    assert (shown(look), look.generation) == (expected, int(then.startswith("*")))
    assert (*look.doubts, *look.notes, "")[0].startswith(sentences)


def test_what_a_query_of_spark_has_written_and_when(tmp_path: Path) -> None:
    look = reader(CHECKPOINTS / "plain").look()
    assert look.query_id == "38d2c59b-2e0f-406a-8f79-0768f6002a2e"
    assert look.positions == (QueryPosition("orders", 0, 30), QueryPosition("orders", 1, 15))
    assert (look.batch, look.planned_batch, look.doubts, look.notes, len(look.commit_times)) == (2, 3, (), (), 3)
    written = Written(tmp_path)
    play(written, "7=5@100 8=9@110 p9=12@120")
    for name in (".1.crc", "1.tmp", ".2.abc.tmp", "_x", "\u0663"):
        (tmp_path / "offsets" / name).write_text("")
        (tmp_path / "commits" / name).write_text("")
    look = reader(tmp_path).look()
    assert (look.committed_ms, look.planned_ms, look.commit_times) == (110_000, 120_000, (100_000, 110_000))


def test_another_checkpoint_in_its_place_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    play(Written(tmp_path), "4=5")
    looks = reader(tmp_path)
    looks.look()
    play(Written(tmp_path, "q2"), "5=9")
    for _ in range(2):
        look = looks.look()
        assert (look.generation, shown(look)) == (1, (5, -1, 9))
        assert look.notes[0].startswith("another checkpoint is in its place, that of query q2; it was that of q1")
    assert [record.message for record in caplog.records] == ["the checkpoint of a streaming query is another one"]


def test_what_is_no_checkpoint_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(QueryCheckpointError, match="c is no checkpoint of a streaming query"):
        reader(tmp_path / "nowhere").look()
    written = Written(tmp_path)
    shutil.rmtree(tmp_path / "offsets")
    (tmp_path / "offsets").write_text("")
    with pytest.raises(QueryCheckpointError, match="c/offsets cannot be listed"):
        reader(tmp_path).look()
    written.tear("metadata", 3)
    with pytest.raises(QueryCheckpointError, match="c/metadata cannot be read"):
        reader(tmp_path).look()
