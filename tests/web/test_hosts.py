"""Whom a request takes the server for."""

from streaming.common.web.gate import is_foreign
from tests.tables import each_row


@each_row(
    "host",
    ["", "localhost", "localhost:9000", "LocalHost.:9000", "127.0.0.1:9000", "127.1.2.3", "[::1]:9000", "[::1]", "demo.localhost:80"],
)
@each_row("listening", ["127.0.0.1", "::1", "localhost"])
def test_a_server_on_a_loopback_address_answers_to_its_own_names(host: str, listening: str) -> None:
    assert not is_foreign(host, listening)


@each_row(
    "host",
    [
        "evil.example",
        "evil.example:9000",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1:9000",
        "[fe80::1]:9000",
        "0.0.0.0",
        "x@localhost",
    ],
)
@each_row("listening", ["127.0.0.1", "::1", "localhost"])
def test_and_to_no_other(host: str, listening: str) -> None:
    assert is_foreign(host, listening)


@each_row("listening", ["0.0.0.0", "::", "10.0.0.1", "kafka-1"])
def test_a_server_that_others_reach_may_have_any_name(listening: str) -> None:
    assert not is_foreign("segtail.example:9000", listening)
