"""What is assigned to the members of a group, in its compact form."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.groups.assignments import MOST_RANGES, assigned, by_id, by_name, classic_assignment, packed, unpacked
from streaming.kafka.groups.offset_ranges import pairs
from tests.tables import each_row

TOPICS = st.text(max_size=5).map(by_name) | st.text(max_size=5).map(by_id)


@given(st.lists(st.tuples(TOPICS, st.lists(st.integers(0, 40), max_size=8)), max_size=6))
def test_what_is_packed_comes_out_again_whatever_the_names_hold(parts: list[tuple[str, list[int]]]) -> None:
    found = {
        (topic, partition)
        for topic, ranges in map(unpacked, packed(assigned(*each) for each in parts))
        for first, last in pairs(ranges)
        for partition in range(first, last + 1)
    }
    assert found == {(topic, partition) for topic, partitions in parts for partition in partitions}


def test_what_all_members_have_of_a_topic_is_one_entry_however_many_partitions_it_has() -> None:
    members = [assigned(by_name("orders"), range(number, 100_000, 3)) for number in range(3)]
    assert packed(members) == ("0-99999:orders",)
    scattered = [assigned(by_name("orders"), range(0, 100_000, 2))]
    assert len(unpacked(packed(scattered)[0])[1]) == 2 * MOST_RANGES, "no more than are sent"


@each_row("entry", ["", "orders", "0-5orders", "5-0:orders", "-1:orders", "0-9999999999:orders", "1,:orders"])
def test_what_is_no_entry_has_no_partitions(entry: str) -> None:
    assert unpacked(entry)[1] == ()


def test_the_assignment_of_a_classic_consumer() -> None:
    of_two = bytes.fromhex("0003 00000002 0001 61 00000002 00000000 00000001 0001 62 00000001 00000007 ffffffff")
    assert classic_assignment(of_two) == ((":a", (0, 1)), (":b", (7, 7)))
    assert classic_assignment(b"") == classic_assignment(of_two[:20]) == classic_assignment(b"\0\0\x7f\xff\xff\xff") == ()
