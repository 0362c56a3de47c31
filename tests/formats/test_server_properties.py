import pytest

from streaming.errors import FormatError
from streaming.kafka.formats.properties import ServerProperties, parse_server_properties
from tests.tables import each_row


def test_whose_it_is_and_what_may_be_read():
    data = b"node.id=3\nlog.retention.hours = 24\nssl.keystore.password=secret\nlisteners=PLAINTEXT://:9092\n"
    assert parse_server_properties(data) == ServerProperties(3, (("log.retention.hours", "24"),))


def test_the_node_of_older_releases():
    assert parse_server_properties(b"broker.id=7\n").node_id == 7


def test_the_last_value_of_a_name_counts():
    assert parse_server_properties(b"node.id=1\nlog.roll.ms=5\nlog.roll.ms=6\n").configs == (("log.roll.ms", "6"),)


@each_row("data", [b"", b"log.roll.ms=5\n", b"node.id=\n", b"node.id=-1\n", b"node.id=99999999999\n", b"node.id=1\\u00zz\n"])
def test_a_file_that_does_not_say_whose_it_is_is_refused(data):
    with pytest.raises(FormatError):
        parse_server_properties(data)
