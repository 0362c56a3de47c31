"""Handles one HTTP request: GET and HEAD; every other method is refused.

The standard library parses it. `wsgiref` and `prometheus_client.make_wsgi_app` are a layer more on the same class, and spare none of this.
"""

import logging
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

from streaming.web.gate import Gate
from streaming.web.negotiation import accepts_gzip

log = logging.getLogger(__name__)

_MAX_BODY_BYTES = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A client's request.

    ``query``: what comes after "?"; ``client``: its host; ``gzip`` if it accepts a compressed answer; ``host``: the header of that name,
    which says whom it takes the server for, "" without one.
    """

    path: str
    query: str = ""
    client: str
    user_agent: str
    accept: str
    gzip: bool
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a request; ``gzip`` if the body is compressed; ``headers`` besides those that all answers have."""

    status: HTTPStatus
    content_type: str = "text/plain; charset=utf-8"
    body: bytes
    gzip: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


class Handler(BaseHTTPRequestHandler):
    """Calls ``gate``, then ``answer``; the rest of the arguments are the base class's."""

    def __init__(self, answer: Callable[[Request], Answer], gate: Gate, *args: Any) -> None:
        self._answer = answer
        self._gate = gate
        super().__init__(*args)  # this serves the request

    def setup(self) -> None:
        """Begin the connection, with the TLS handshake if there is one."""
        self._gate.shake(self.request)
        super().setup()

    def do_GET(self) -> None:
        """Answer, with status 500 if that fails."""
        request = self._request()
        if not self._gate.admits(request.path, self.headers.get("Authorization", "")):
            self._send(Answer(status=HTTPStatus.UNAUTHORIZED, body=b"a name and a password, please\n"))
            return
        try:
            answer = self._answer(request)
        except Exception:
            log.exception("no answer to %s", self.path)
            answer = Answer(status=HTTPStatus.INTERNAL_SERVER_ERROR, body=b"an error; the log of the job has it\n")
        self._send(answer)

    def do_HEAD(self) -> None:
        """Answer without the body."""
        self.do_GET()

    def __getattr__(self, name: str) -> Callable[[], None]:
        # The base class looks for do_METHOD, and answers 501 if it does not exist.
        if name.startswith("do_"):
            return self._refuse
        raise AttributeError(name)

    def _request(self) -> Request:
        return Request(
            path=urlsplit(self.path).path,
            query=urlsplit(self.path).query,
            client=str(self.client_address[0]),
            user_agent=self.headers.get("User-Agent", ""),
            accept=self.headers.get("Accept", ""),
            gzip=accepts_gzip(self.headers.get("Accept-Encoding", "")),
            host=self.headers.get("Host", ""),
        )

    def _refuse(self) -> None:
        self._send(Answer(status=HTTPStatus.METHOD_NOT_ALLOWED, body=b"only GET and HEAD\n"))
        # If a connection is closed with unread bytes, it is reset, and the client might never get the answer.
        self.connection.shutdown(socket.SHUT_WR)
        self.rfile.read(_MAX_BODY_BYTES)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        if answer.status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", 'Basic realm="segtail", charset="UTF-8"')
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Vary", "Accept, Accept-Encoding")
        if answer.gzip:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def version_string(self) -> str:
        """The ``Server`` header: without versions, because anybody may read it."""
        return "segtail"

    def log_message(self, format: str, *args: object) -> None:
        """Do not log requests."""
        log.debug(format, *args)
