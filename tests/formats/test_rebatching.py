"""The batches of a producer with another setting: every record once, in order, within linger, size and transaction; and the same bytes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.formats.layout import HEADER_BYTES
from streaming.kafka.formats.rebatching import Expected, Sent, Setting, add_to_windows, rebatch, settled
from streaming.kafka.formats.records import read_batch, read_record_heads
from streaming.simulator.batch_writer import Batch, Codec, Record, encode


def sent(batches: list[list[tuple[int, int]]], ends: list[int]) -> Sent:
    """Of batches of (milliseconds since the record before, bytes of the value)."""
    found, at = Sent(), 0
    for number, records in enumerate(batches):
        found.begins.append(len(found.bodies))
        for later, size in records:
            at += later
            found.stamps.append(at)
            found.sent.append(at)
            found.bodies.append(b"\x01" + bytes((size % 251,)) * size + b"\x00")
            found.windows.append(number % 3 if number < 3 else 2)
    found.ends = sorted(end for end in ends if end <= len(found.bodies))
    return found


RECORD = st.tuples(st.integers(0, 40), st.integers(0, 3000))
SENT = st.builds(
    sent, st.lists(st.lists(RECORD, min_size=1, max_size=20), min_size=1, max_size=20), st.lists(st.integers(1, 200), unique=True)
)
SETTING = st.builds(Setting, codec=st.integers(0, 4), batch_size=st.integers(1, 40_000), linger_ms=st.integers(-1, 100))


@given(SENT, SETTING)
def test_every_record_is_in_one_batch_and_each_batch_ends_where_it_has_to(records: Sent, setting: Setting) -> None:
    made = list(rebatch(records, setting, settled(records, setting)))
    assert [each.begin for each in made] == [0, *(each.end for each in made[:-1])]
    assert made[-1].end == len(records.bodies)
    for each in made:
        assert each.begin < each.end
        assert not any(each.begin < end < each.end for end in records.ends)
        assert setting.linger_ms < 0 or records.sent[each.end - 1] - records.sent[each.begin] <= setting.linger_ms
        if setting.codec == 0 and each.end - each.begin > 1:
            assert each.size <= setting.batch_size + 4 * (each.end - each.begin)


@given(SENT, SETTING)
def test_a_batch_that_is_not_full_ends_because_the_next_record_may_not_be_in_it(records: Sent, setting: Setting) -> None:
    if setting.codec:  # what is expected of it is not seen from outside
        return
    for each in list(rebatch(records, setting, Expected()))[:-1]:
        late = 0 <= setting.linger_ms < records.sent[each.end] - records.sent[each.begin]
        full = each.size + len(records.bodies[each.end]) + 21 > setting.batch_size
        assert late or full or each.end in records.ends


@given(SENT, st.integers(0, 4))
def test_batches_as_they_are_have_the_bytes_that_a_producer_wrote(records: Sent, codec: int) -> None:
    ends = [*records.begins[1:], len(records.bodies)]
    written = [
        Batch(
            records=tuple(Record(None, records.bodies[at][1:-1], records.stamps[at]) for at in range(begin, end)),
            codec=Codec(codec),
            producer_id=1,
            producer_epoch=0,
            base_sequence=0,
        )
        for begin, end in zip(records.begins, ends, strict=True)
    ]
    read, sizes = Sent(), []
    for batch in written:
        data = encode(batch, 0)
        sizes.append(len(data))
        found = read_batch(memoryview(data))
        assert found is not None
        read.begins.append(len(read.bodies))
        for _, stamp, body in read_record_heads(found, 1 << 20, 1000, bodies=True):
            read.stamps.append(stamp)
            read.sent.append(stamp)
            read.bodies.append(body)
            read.windows.append(0)
    assert [each.size for each in rebatch(read, Setting(codec=codec), Expected())] == sizes
    (total,) = totals_of(read, Setting(codec=codec), 1)
    assert total == sum(sizes)


def totals_of(records: Sent, setting: Setting, windows: int) -> list[float]:
    totals = np.zeros(windows)
    for each in rebatch(records, setting, Expected()):
        add_to_windows(records, each, totals)
    return [round(float(each), 6) for each in totals]


@given(SENT, SETTING)
def test_the_windows_have_all_bytes_together(records: Sent, setting: Setting) -> None:
    whole = sum(each.size for each in rebatch(records, setting, Expected()))
    assert abs(sum(totals_of(records, setting, 3)) - whole) < 1e-3


def test_what_is_expected_follows_as_kafka_does_it() -> None:
    expected = Expected()
    for part, then in ((0.2, 0.995), (0.2, 0.99), (0.991, 1.04), (1.2, 1.2)):
        expected.learn(part)
        assert round(expected.part, 6) == then


def test_a_producer_whose_values_compress_fills_more_into_a_batch() -> None:
    alike = sent([[(0, 100)] * 2000], [])
    plain, packed = (Setting(codec=codec, batch_size=16_384) for codec in (0, 3))
    most = [next(iter(rebatch(alike, each, settled(alike, each)))).end for each in (plain, packed)]
    assert HEADER_BYTES < most[0] < most[1] / 5


def test_a_first_batch_that_is_small_changes_nothing_of_what_is_expected() -> None:
    busy = [[(0, 100)] * 2000]
    setting = Setting(codec=3, batch_size=16_384, linger_ms=5)
    alike, late = sent(busy, []), sent([[(0, 0)], [(1000, 100)], *busy], [])
    assert abs(settled(alike, setting).part - settled(late, setting).part) < 0.01
