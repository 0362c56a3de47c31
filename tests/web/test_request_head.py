"""Heads of requests, whole and not."""

import re
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.common.web.client_limits import HEAD_BYTES
from streaming.common.web.request_head import RequestError, head_length, parse_head
from tests.tables import each_row

_HEADERS = (b"Host: localhost:1", b"Authorization: Basic eA==", b"User-Agent: p", b"Accept-Encoding: gzip")
HEAD = b"\r\n".join([b"GET /api/v1/groups?limit=5 HTTP/1.1", *_HEADERS, b"", b""])


def test_a_head_is_parsed() -> None:
    found = parse_head(HEAD, "10.0.0.1")
    assert (found.method, found.authorization) == ("GET", "Basic eA==")
    request = found.request
    assert (request.path, request.query, request.client, request.user_agent) == ("/api/v1/groups", "limit=5", "10.0.0.1", "p")
    assert (request.host, request.gzip, request.accept) == ("localhost:1", True, "")


@given(st.integers(1, len(HEAD)), st.binary(max_size=20))
def test_a_head_is_found_wherever_it_is_cut(step: int, rest: bytes) -> None:
    received, before, length = b"", 0, None
    for begin in range(0, len(HEAD + rest), step):
        before, received = len(received), received + (HEAD + rest)[begin : begin + step]
        length = head_length(received, before)
        if length is not None:
            break
    assert length == len(HEAD)


@each_row(
    ("data", "status"),
    [
        (b"GET /" + b"x" * HEAD_BYTES, HTTPStatus.REQUEST_URI_TOO_LONG),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * HEAD_BYTES, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n", HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    ],
)
def test_a_head_that_is_too_long_is_refused_before_its_end(data: bytes, status: HTTPStatus) -> None:
    with pytest.raises(RequestError) as error:
        head_length(data)
    assert error.value.status == status


STATUSES = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)


@given(st.one_of(st.binary(max_size=300), st.from_regex(rb"[A-Z]{1,4} [^ ]{0,20} HTTP/[0-9.]{1,4}\r\n([^\r\n]{0,30}\r\n){0,4}")))
def test_whatever_comes_is_a_request_or_an_error_that_repeats_nothing_of_it(data: bytes) -> None:
    refused: RequestError | None = None
    try:
        parse_head(data + b"\r\n\r\n", "c")
    except RequestError as error:
        refused = error
    assert refused is None or (refused.status in STATUSES and re.fullmatch(r"[a-zA-Z0-9,/:. ]+", str(refused)))


def test_a_long_name_is_cut() -> None:
    head = b"GET / HTTP/1.1\r\nUser-Agent: " + b"x" * 5000 + b"\r\n\r\n"
    assert parse_head(head, "c").request.user_agent == "x" * 200
