"""``segtail advise`` as people run it: what it advises, what it does not, and what is left out of a sample."""

import json
import os
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import list_segments
from streaming.kafka.formats.names import PARTITION_METADATA
from streaming.kafka.formats.rebatching import Expected, Sent, Setting, rebatch, settled
from streaming.simulator.batch_writer import Batch, Codec, Record, encode
from streaming.simulator.log import LogDir, PartitionLog
from streaming.simulator.metadata_writer import ConfigResource, config_record
from streaming.terminal.offline.advice import saving_of
from streaming.terminal.offline.record_samples import sample
from tests.builders import NOW, commit, log_dir, partition
from tests.commands import run_command
from tests.elections import MetadataCopy
from tests.legacy_messages import encode_message
from tests.worlds.topics import topic_of

WORDS = ("new", "paid", "sent", "returned", "web", "shop", "mobile", "express", "standard", "gift")


def orders(count: int, *, seed: int = 1, pace_ms: int = 4) -> Iterator[Record]:
    """Records as a shop sends them."""
    drawn, at = random.Random(seed), NOW
    for number in range(count):
        at += drawn.randint(0, pace_ms)
        value = {"id": number, "customer": drawn.randrange(10**6), "status": drawn.choice(WORDS), "price": drawn.randrange(10**5)}
        yield Record(b"k%d" % drawn.randrange(500), json.dumps({**value, "note": "secret " + drawn.choice(WORDS)}).encode(), at)


def batches(
    records: Iterable[Record], size: int = 2, *, codec: Codec = Codec.LZ4, producer: int = 7, sequence: int = 1, **more: Any
) -> list[Batch]:
    every = list(records)
    return [
        Batch(
            records=tuple(every[at : at + size]),
            codec=codec,
            producer_id=producer,
            producer_epoch=min(producer, 0),
            base_sequence=sequence if producer >= 0 else -1,
            **more,
        )
        for at in range(0, len(every), size)
    ]


class Disk(NamedTuple):
    """A log dir, and what its metadata log says."""

    dir: LogDir
    metadata: MetadataCopy


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    made = log_dir(tmp_path)
    return Disk(made, MetadataCopy(made.path))


def topic(disk: Disk, name: str, made: list[Batch], configs: Mapping[str, str] = MappingProxyType({}), **more: Any) -> PartitionLog:
    number = sum(name.encode())
    settings = (config_record(ConfigResource.TOPIC, name, *each) for each in {"compression.type": "producer", **configs}.items())
    disk.metadata.write((*topic_of(name, number, 1), *settings))
    log = partition(disk.dir, name, topic_id=number, **more)
    for at in range(0, len(made), 50):
        log.append(*made[at : at + 50])
    log.date_files(NOW + 10**9)
    disk.dir.write_high_watermarks()
    disk.dir.write_log_starts()
    return log


def advise(disk: Disk, *arguments: str) -> tuple[int, str]:
    done = run_command("advise", "--log-dirs", disk.dir.path, *arguments)
    return done.returncode, done.stdout + done.stderr


def row(disk: Disk, name: str, *arguments: str | Path) -> dict[str, Any]:
    done = run_command("advise", "--log-dirs", disk.dir.path, "--topic", name, "--json", *arguments)
    (found,) = json.loads(done.stdout)["rows"]
    return dict(found)


def saving(found: dict[str, Any], codec: str, batch_size: int | None = None, linger_ms: int | None = None) -> float:
    (setting,) = (
        each for each in found["settings"] if (each["codec"], each["batch_size"], each["linger_ms"]) == (codec, batch_size, linger_ms)
    )
    return float(setting["saving_percent"])


def test_it_advises_what_saves_and_nothing_where_nothing_does(disk: Disk) -> None:
    topic(disk, "orders", batches(orders(4000)))
    drawn = random.Random(2)
    topic(disk, "encrypted", batches(Record(None, drawn.randbytes(1500), NOW + at) for at in range(1000)))
    topic(disk, "small", batches((Record(None, drawn.randbytes(40), NOW + at) for at in range(1000)), 1))
    topic(disk, "deep", batches(orders(4000), 400, codec=Codec.ZSTD))
    topic(disk, "empty", [])
    status, out = advise(disk)
    assert status == 3
    lines = {line.split()[0]: line for line in out.splitlines() if line}
    assert "advised  compression.type=zstd batch.size=" in lines["orders"]
    assert "encrypted: values do not compress: they are encrypted or compressed already\n" in out
    assert "small: values do not compress: they are encrypted or compressed already; larger batches alone" in out
    assert "deep: no setting saves more than a few percent" in out
    assert "empty: no records are on the disk" in out
    assert "secret" not in out
    found = row(disk, "orders")
    assert (found["verdict"], found["codec"], found["batch_records"], found["notes"]) == ("advised", "lz4", 2.0, [])
    assert found["sampled_bytes"] == found["segment_bytes"]
    assert [each["saving_percent"] for each in found["advised"]] == [saving(found, "zstd", 16384, found["advised"][0]["linger_ms"])]
    assert abs(saving(found, "lz4")) < 0.01, "as it is"
    assert advise(disk, "--topic", "encrypted")[0] == 0
    assert advise(disk, "--topic", "empty")[0] == 4
    assert "4 smaller topics not looked at" in advise(disk, "--limit", "1")[1]
    assert "no partition of order lies in these log dirs; similar: orders" in advise(disk, "order")[1]


def sent_at(records: list[Record]) -> Sent:
    """They come as they are timed."""
    times = [each.timestamp for each in records]
    bodies = [b"\x08" + (each.key or b"") + b"\x80\x02" + (each.value or b"") + b"\x00" for each in records]
    return Sent(stamps=times, sent=times, bodies=bodies, windows=[0] * len(records))


def sent_with(records: list[Record], made: Setting, *, fresh: bool = False, **more: Any) -> list[Batch]:
    """The batches of a producer."""
    sent = sent_at(records)
    ends = [(each.begin, each.end) for each in rebatch(sent, made, Expected() if fresh else settled(sent, made))]
    return [
        batch
        for begin, end in ends
        for batch in batches(records[begin:end], end - begin, codec=Codec(made.codec), sequence=begin + 1 - fresh, **more)
    ]


def size_of(made: list[Batch]) -> int:
    return sum(len(encode(each, 0)) for each in made)


@pytest.mark.parametrize(
    ("codec", "size", "linger", "fresh"),
    [("zstd", 16_384, 20, False), ("lz4", 65_536, 100, False), ("none", 16_384, 100, False), ("lz4", 16_384, 100, True)],
)
def test_the_setting_that_a_topic_has_saves_nothing(disk: Disk, codec: str, size: int, linger: int, *, fresh: bool) -> None:
    setting = Setting(codec=int(Codec[codec.upper()]), batch_size=size, linger_ms=linger)
    topic(disk, "orders", sent_with(list(orders(20_000)), setting, fresh=fresh))
    found = row(disk, "orders")
    assert abs(saving(found, codec, size, linger)) < 1.5
    assert abs(saving(found, codec)) < 0.01


def test_a_producer_that_has_just_begun_learns_of_another_codec(disk: Disk) -> None:
    records, (gzip, lz4) = list(orders(6000, pace_ms=1)), (Setting(codec=codec, batch_size=16_384, linger_ms=100) for codec in (1, 3))
    topic(disk, "orders", made := sent_with(records, replace(gzip, linger_ms=20), fresh=True))
    found = saving(row(disk, "orders"), "lz4", 16_384, 100)
    assert abs(found - 100 * (1 - size_of(sent_with(records, lz4, fresh=True)) / size_of(made))) < 0.1


def test_a_transaction_is_no_new_producer(disk: Disk) -> None:
    """With each the epoch rises (KIP-890), and the sequence begins at 0."""
    made = [replace(each, base_sequence=0) for each in batches(orders(20), 20)]
    logs = topic(disk, "first", made), topic(disk, "later", [replace(each, producer_epoch=3) for each in made])
    found = [sample([list_segments(log.directory)], 1 << 20, window(), lambda _: None) for log in logs]
    assert [each.born for one in found for each in one.producers.values()] == [7, -1]


@pytest.mark.parametrize(("codec", "size", "linger"), [("none", 1024, 20), ("none", 4096, 100), ("gzip", 2048, 1000)])
def test_a_codec_alone_makes_longer_batches_where_their_size_ends_them(disk: Disk, codec: str, size: int, linger: int) -> None:
    records, now = list(orders(8000)), Setting(codec=int(Codec[codec.upper()]), batch_size=size, linger_ms=linger)
    topic(disk, "orders", made := sent_with(records, now))
    found = row(disk, "orders")
    for other in ("none", "zstd", "snappy"):
        (told,) = (each for each in found["settings"] if (each["codec"], each["batch_size"]) == (other, None))
        real = 100 * (1 - size_of(sent_with(records, replace(now, codec=int(Codec[other.upper()])))) / size_of(made))
        assert abs(told["saving_percent"] - real) <= told["error_percent"] + 1, other
        assert told["error_percent"] < 12


@pytest.mark.parametrize(("linger", "together"), [(40, 1), (0, 5)])
def test_a_codec_alone_leaves_batches_as_they_are_where_time_ends_them(disk: Disk, linger: int, together: int) -> None:
    records = [
        replace(each, timestamp=each.timestamp if together == 1 else NOW + at // together * 7) for at, each in enumerate(orders(8000))
    ]
    topic(disk, "orders", sent_with(records, Setting(codec=3, batch_size=1 << 20, linger_ms=linger)))
    found = row(disk, "orders")
    assert {each["batch_records"] for each in found["settings"] if each["batch_size"] is None} == {found["batch_records"]}


def test_a_sample_says_what_the_whole_does_within_its_error_however_it_is_cut(disk: Disk, tmp_path: Path) -> None:
    made = batches(orders(8000))
    topic(disk, "orders", made, segment_bytes=64 << 20)
    topic(disk, "cut", made, segment_bytes=300 << 10)
    whole, part, cut = (
        row(disk, "orders", "--sample", "64MiB"),
        row(disk, "orders", "--sample", "256KiB"),
        row(disk, "cut", "--sample", "64MiB"),
    )
    assert 200 << 10 < part["sampled_bytes"] < 300 << 10 < whole["sampled_bytes"]
    for one, other, exact in zip(whole["settings"], part["settings"], cut["settings"], strict=True):
        assert one["saving_percent"] == exact["saving_percent"]
        assert abs(one["saving_percent"] - other["saving_percent"]) < 2


def test_what_cannot_be_used_is_left_out_counted_and_named(disk: Disk) -> None:
    made = batches(orders(4000))
    log = topic(disk, "orders", made)
    whole = row(disk, "orders")
    path = log.active.path("log")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    done = run_command("advise", "--log-dirs", disk.dir.path, "--topic", "orders")
    assert "Left out, damaged or too large: 1" in done.stdout
    assert f"{path}" in done.stderr
    assert "position" in done.stderr
    assert abs(row(disk, "orders")["batch_bytes"] - whole["batch_bytes"]) < 10
    path.write_bytes(bytes(data[: len(data) // 2]) + b"\xff" * 100 + bytes(data[len(data) // 2 :]))
    assert any(each.startswith("left out, damaged") for each in row(disk, "orders")["notes"])
    bomb = topic(disk, "bomb", [*made[:100], *batches([Record(None, b"\0" * (9 << 20), NOW)], codec=Codec.ZSTD)])
    assert row(disk, "bomb")["notes"] == ["left out, damaged or too large: 1"]
    assert str(bomb.directory) in advise(disk, "--topic", "bomb")[1]
    topic(disk, "large", batches(orders(40_000, pace_ms=0), 10_000, codec=Codec.NONE), segment_bytes=16 << 20)
    assert (row(disk, "large")["batch_records"], row(disk, "large")["notes"]) == (10_000.0, [])
    assert "--sample 1.0 KiB is too little" in advise(disk, "--sample", "1KiB")[1]
    old = topic(disk, "old", [])
    old.active.path("log").write_bytes(b"".join(encode_message(1, at, Record(None, b"old", NOW)) for at in range(3)))
    assert row(disk, "old")["why"] == "nothing could be used of what was read: batches are of an old format"


def test_any_time_of_a_record_is_a_time(disk: Disk) -> None:
    log = topic(disk, "far", batches([Record(None, b"far", at) for at in (0, 2**62, -(2**62), 2**63 - 1, -(2**63), 7) * 20], 1))
    (sent,) = sample([list_segments(log.directory)], 1 << 20, window(), lambda _: None).producers.values()
    assert sent.sent == sorted(sent.sent)
    made = list(rebatch(sent, Setting(codec=4, batch_size=16_384, linger_ms=5), Expected()))
    assert made[-1].end == 120


def test_what_a_prediction_depends_on_is_said(disk: Disk) -> None:
    topic(disk, "nobody", batches(orders(500), producer=-1))
    assert "no producer id" in row(disk, "nobody")["notes"][0]
    topic(disk, "broker", batches(orders(500), log_append_time=NOW))
    found = row(disk, "broker")
    assert (found["linger_known"], {each["linger_ms"] for each in found["settings"]}) == (False, {None})
    assert "LogAppendTime" in found["notes"][0]
    topic(disk, "events", batches(sorted(orders(500), key=lambda each: each.value or b"")))
    assert "do not have the times of sending" in row(disk, "events")["notes"][0]
    apart = [Record(b"k", b"events", NOW + 2000 * number) for number in range(500)]
    topic(disk, "apart", batches(apart))
    assert "250 of 250 batches hold records from more than 1 s" in row(disk, "apart")["notes"][0]
    late = topic(disk, "late", batches([replace(each, timestamp=each.timestamp + 10**12) for each in orders(500)]))
    early = topic(disk, "early", batches(orders(500)))
    os.utime(early.directory / PARTITION_METADATA, (NOW / 1000 + 700, NOW / 1000 + 700))
    cut = topic(disk, "cut", batches(orders(4000)), segment_bytes=1 << 17)
    assert row(disk, "cut")["notes"] == []
    for each in cut.segments:
        os.utime(each.path("log"), (NOW / 1000 + 700, NOW / 1000 + 700))
    for log in (late, early, cut):
        assert "not from when their file was written" in row(disk, log.directory.name.partition("-")[0])["notes"][0]


def test_a_broker_that_compresses_anew_is_advised_with_its_topic(disk: Disk, tmp_path: Path) -> None:
    made = batches(orders(1500), codec=Codec.GZIP)
    topic(disk, "own", made, {"compression.type": "gzip"})
    found = row(disk, "own")
    assert (found["compression"], found["notes"][0].partition(":")[0]) == ("gzip", "brokers compress anew (compression.type=gzip)")
    assert found["setting"].startswith("compression.type=gzip (topic and producers) batch.size=16384")
    topic(disk, "plain", batches(orders(1500), 400, codec=Codec.NONE), {"compression.type": "uncompressed"})
    assert row(disk, "plain")["setting"] == "compression.type=zstd (topic)"
    topic(disk, "any", made, {"compression.type": ""})
    assert "whether brokers compress anew is not known" in row(disk, "any")["notes"][0]
    properties = tmp_path / "server.properties"
    for given, then in (("", None), ("compression.type=zstd\n", "zstd"), ("compression.type=producer\n", None)):
        properties.write_text(f"node.id=1\n{given}")
        found = row(disk, "any", "--server-properties", properties)
        assert (found["compression"], len(found["notes"])) == (then, 1 if then else 0)


def test_of_a_compacted_topic_the_active_segment_alone_is_read(disk: Disk) -> None:
    log = topic(disk, "kept", batches(orders(2000)), {"cleanup.policy": "compact"})
    log.roll()
    (last,) = batches(orders(400), 400)
    log.append(last)
    found = row(disk, "kept")
    assert (found["batch_records"], found["notes"][0].partition(":")[0]) == (400.0, "it is compacted")
    assert (found["verdict"], found["why"], len(found["settings"])) == ("unknown", "too little is on the disk to say anything", 50)


def test_transactions_are_not_joined(disk: Disk) -> None:
    data = batches(orders(2000), 10, transactional=True)
    topic(disk, "joined", data)
    topic(disk, "apart", [each for one in data for each in (one, commit(7, epoch=0))])
    of_size = {
        name: {each["batch_records"] for each in row(disk, name)["settings"] if each["batch_size"] == 262144 and each["linger_ms"] == 100}
        for name in ("joined", "apart")
    }
    assert of_size["apart"] == {10.0}
    assert min(of_size["joined"]) > 10


def test_producers_of_a_partition_are_told_apart(disk: Disk) -> None:
    one, other = (batches(orders(1000, seed=seed, pace_ms=40), producer=seed) for seed in (1, 2))
    topic(disk, "both", [each for pair in zip(one, other, strict=True) for each in pair])
    topic(disk, "alone", one)
    deep = [saving(row(disk, name), "zstd", 65536, 100) for name in ("both", "alone")]
    assert abs(deep[0] - deep[1]) < 2


def test_the_error_is_that_of_a_ratio_by_its_windows() -> None:
    assert saving_of(np.array([10.0, 10.0]), np.array([5.0, 5.0])) == (50.0, 0.0)
    assert saving_of(np.array([10.0, 0.0]), np.array([5.0, 0.0])) == (50.0, -1.0)
    drawn, hits = np.random.default_rng(3), 0
    for _ in range(400):
        now = drawn.uniform(90, 110, 8)
        found, error = saving_of(now, now * drawn.normal(0.4, 0.05, 8))
        hits += abs(found - 60) <= error
    assert 360 <= hits <= 400


def test_the_list_of_topics_has_the_advice_of_those_that_it_lists(disk: Disk) -> None:
    topic(disk, "orders", batches(orders(1500)))
    topic(disk, "few", batches(orders(10)))
    done = run_command("topics", disk.dir.path, "--advise", "--json")
    found = {each["topic"]: each["advised"] for each in json.loads(done.stdout)["rows"]}
    of_orders = row(disk, "orders")
    assert found == {"orders": f"{of_orders['setting']}: {of_orders['saving']}", "few": None}
    assert "Advised" not in run_command("topics", disk.dir.path).stdout
    refused = run_command("topics", disk.dir.path, "--advise", "--by-prefix", ".")
    assert (refused.returncode, "--advise is about topics of log dirs: leave out --by-prefix" in refused.stderr) == (2, True)
