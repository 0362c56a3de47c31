"""Where agents are, as people write it."""

import pytest

from streaming.common.targets import Target, is_loopback
from tests.tables import each_row


@each_row(
    "written",
    ["http://127.0.0.1:8815", "https://broker-1:8815", "https://10.0.0.1:8815/agents.svc", "dns:///agents:8815", "http://[::1]:1"],
)
def test_what_is_shown_is_what_was_written(written: str) -> None:
    assert str(Target.parse(written)) == written


def test_without_a_scheme_there_is_no_tls() -> None:
    assert Target.parse("a:1") == Target.parse("http://a:1")


@each_row(
    "written",
    [
        "",
        "a",
        "a:0",
        "a:65536",
        "grpc://a:1",
        "grpc+tls://a:1",
        "ftp://a:1",
        "http:/a:1",
        "http:///a:1",
        "dns://a:1",
        "dns:////a:1",
        "http://a:1/b",
        "https://a:1/b/c",
        "a b:1",
    ],
)
def test_another_form_is_none(written: str) -> None:
    with pytest.raises(ValueError, match="https://HOST:PORT"):
        Target.parse(written)


@each_row(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.3.2.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("localhost.evil", False),
    ],
)
def test_loopback_is_what_no_other_machine_reaches(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
