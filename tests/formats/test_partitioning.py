"""Which partition a coordinator's id belongs to."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.kafka.formats.names import coordinator_partition
from streaming.simulator.coordinators import partition_for
from tests.tables import each_row


@each_row(
    ("identity", "partition"),
    [
        ("tx1", 45),  # hash 115245
        ("", 0),
        ("polygenelubricants", 0),  # hash -2^31, whose absolute value Kafka takes for 0
        ("\U0001f600", 49),  # two UTF-16 units, hash 1772899
    ],
)
def test_as_java_works_it_out(identity: str, partition: int) -> None:
    assert coordinator_partition(identity, 50) == partition


@given(st.text(max_size=30), st.integers(1, 200))
def test_within_the_topic_and_where_the_simulator_writes_it(identity: str, partitions: int) -> None:
    assert 0 <= coordinator_partition(identity, partitions) < partitions
    assert coordinator_partition(identity, partitions) == partition_for(identity, partitions)
