"""Which format and encoding a client wants."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.common.web.messages import accepts_gzip, wants_openmetrics
from tests.tables import each_row

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
PROMETHEUS_3_TEXT_FIRST = "text/plain;version=0.0.4;q=0.5,application/openmetrics-text;version=1.0.0;q=0.4,*/*;q=0.1"


@each_row(
    ("accept", "expected"),
    [
        (PROMETHEUS_2, True),
        (PROMETHEUS_3, True),
        (PROMETHEUS_3_TEXT_FIRST, False),
        ("", False),
        ("*/*", False),
        ("text/html,application/xhtml+xml,*/*;q=0.8", False),
        ("application/openmetrics-text", True),
        ("Application/OpenMetrics-Text; version=1.0.0", True),
        ("application/openmetrics-text; version=0.0.1", False),
        ("application/openmetrics-text; version=1.0.0; q=0", False),
        ("application/openmetrics-text; version=1.0.0; q=many", False),
    ],
)
def test_openmetrics_goes_to_those_who_like_it_best(accept: str, expected: bool) -> None:
    assert wants_openmetrics(accept) == expected


@each_row(
    ("accept_encoding", "expected"),
    [
        ("gzip", True),
        ("gzip, deflate, br", True),
        ("br;q=1.0, GZIP;q=0.5", True),
        ("*", True),
        ("", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip;q=0, *", False),
        ("*;q=0", False),
    ],
)
def test_gzip_goes_to_those_who_accept_it(accept_encoding: str, expected: bool) -> None:
    assert accepts_gzip(accept_encoding) == expected


@given(st.text())
def test_no_header_is_an_error(header: str) -> None:
    assert wants_openmetrics(header) in (True, False)
    assert accepts_gzip(header) in (True, False)
