"""TLS and passwords of what is served over HTTP, over real connections."""

import base64
import http.client
import logging
import socket
import ssl
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from pathlib import Path
from threading import Thread
from time import monotonic

import bcrypt
import pytest
import yaml

from streaming.errors import UsageError
from streaming.web.connections import BoundedServer
from streaming.web.gate import Gate
from streaming.web.handler import Answer, Handler, Request
from streaming.web.web_config import read_web_config
from tests.certificates import Authority, Files
from tests.limits import SECONDS

PASSWORD = "ein Passwort"


def hashed(password: str = PASSWORD) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()


def config(path: Path, **content: object) -> Path:
    temporary = path.with_suffix(".new")
    temporary.write_text(yaml.safe_dump(content))
    temporary.replace(path)
    return path


def tls(files: Files, **more: object) -> dict[str, object]:
    return {"cert_file": str(files.cert), "key_file": str(files.key), **more}


class Server:
    def __init__(self, path: Path | None) -> None:
        self.gate = Gate(path)
        self._server = BoundedServer("127.0.0.1", 0, partial(Handler, self._answer, self.gate), self.gate, monotonic)
        self.port = self._server.server_port
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def _answer(self, request: Request) -> Answer:
        return Answer(status=HTTPStatus.OK, body=request.path.encode())

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def ask(self, path: str = "/metrics", user: str = "", password: str = PASSWORD, context: ssl.SSLContext | None = None) -> int:
        headers = {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()} if user else {}
        if context is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        else:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=SECONDS, context=context)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            body = answer.read().decode()
        finally:
            connection.close()
        if answer.status == HTTPStatus.UNAUTHORIZED:
            assert answer.headers["WWW-Authenticate"].startswith("Basic ")
        else:
            assert body == path
        return answer.status


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "web.yml"


def serving(path: Path | None) -> Iterator[Server]:
    server = Server(path)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def open_server() -> Iterator[Server]:
    yield from serving(None)


@pytest.fixture
def guarded(path: Path) -> Iterator[Server]:
    yield from serving(config(path, basic_auth_users={"prometheus": hashed()}))


def trusting(authority: Authority, files: Files | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.ca)
    if files is not None:
        context.load_cert_chain(files.cert, files.key)
    return context


def test_without_a_file_everybody_may_ask(open_server: Server) -> None:
    assert open_server.ask() == 200


def test_a_password_is_asked_for_but_not_by_those_who_keep_it_alive(guarded: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert [guarded.ask(user="prometheus") for _ in range(2)] == [200, 200]
    assert guarded.ask() == 401
    assert guarded.ask(user="prometheus", password="falsch") == 401
    assert guarded.ask(user="somebody") == 401
    assert guarded.ask(user="prometheus", password="x" * 500) == 401
    assert [guarded.ask(path) for path in ("/-/healthy", "/-/ready", "/", "/-/healthy/x")] == [200, 200, 401, 401]
    assert PASSWORD not in caplog.text


def test_a_right_password_is_hashed_once_and_a_wrong_one_each_time(guarded: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    hashes, asked = bcrypt.checkpw, []

    def counted(password: bytes, against: bytes) -> bool:
        asked.append(password)
        return hashes(password, against)

    monkeypatch.setattr(bcrypt, "checkpw", counted)
    right, wrong = ("Basic " + base64.b64encode(f"prometheus:{each}".encode()).decode() for each in (PASSWORD, "falsch"))
    assert [guarded.gate.admits("/metrics", each) for each in (right, wrong, right, wrong)] == [True, False, True, False]
    assert asked == [PASSWORD.encode(), b"falsch", b"falsch"]


@pytest.mark.parametrize("authorization", ["", "Basic", "Basic !!!", "Basic cHJvbWV0aGV1cw==", "Bearer abc", "Basic /////w=="])
def test_a_header_that_is_none_is_no_password(guarded: Server, authorization: str) -> None:
    assert not guarded.gate.admits("/metrics", authorization)


def test_users_are_exchanged_without_a_restart(guarded: Server, path: Path) -> None:
    assert guarded.ask(user="prometheus") == 200
    config(path, basic_auth_users={"prometheus": hashed("another")})
    assert guarded.ask(user="prometheus") == 401
    path.write_text("basic_auth_users: {")
    assert guarded.ask(user="prometheus", password="another") == 200


@pytest.fixture
def encrypted(authority: Authority, path: Path) -> Iterator[Server]:
    yield from serving(config(path, tls_server_config=tls(authority.issue("web"))))


def test_with_tls_only_who_speaks_it_is_answered(encrypted: Server, authority: Authority) -> None:
    assert encrypted.ask(context=trusting(authority)) == 200
    with socket.create_connection(("127.0.0.1", encrypted.port), timeout=SECONDS) as plain:
        plain.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert b"/metrics" not in plain.makefile("rb").read()
    old = trusting(authority)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert encrypted.ask(context=old) == 200


def test_a_client_that_never_ends_its_handshake_keeps_nobody_waiting(encrypted: Server, authority: Authority) -> None:
    with socket.create_connection(("127.0.0.1", encrypted.port), timeout=SECONDS):
        assert encrypted.ask(context=trusting(authority)) == 200


def test_another_certificate_is_taken_up(encrypted: Server, authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other")
    files = other.issue("web")
    before = authority.issue("unused")
    files.cert.replace(before.cert.with_name("web.pem"))
    assert encrypted.ask(context=trusting(authority)) == 200  # its key is still another's
    files.key.replace(before.key.with_name("web.key"))
    assert encrypted.ask(context=trusting(other)) == 200
    with pytest.raises(ssl.SSLError, match="certificate verify failed"):
        encrypted.ask(context=trusting(authority))


@pytest.fixture
def mutual(authority: Authority, path: Path) -> Iterator[Server]:
    options = tls(
        authority.issue("web"),
        client_ca_file="tls/ca.pem",  # beside the file itself
        client_auth_type="RequireAndVerifyClientCert",
        client_allowed_sans=["prometheus"],
        min_version="TLS13",
    )
    yield from serving(config(path, tls_server_config=options, http_server_config={"http2": True}))


def test_a_client_shows_a_certificate_with_an_allowed_name(mutual: Server, authority: Authority, tmp_path: Path) -> None:
    assert mutual.ask(context=trusting(authority, authority.issue("client", "prometheus"))) == 200
    foreign = Authority(tmp_path / "foreign").issue("client", "prometheus")
    for files in (None, authority.issue("other", "somebody"), foreign, authority.issue("old", "prometheus", expired=True)):
        with pytest.raises(OSError):  # noqa: PT011 - a refusal comes as an alert of TLS or as a closed connection
            mutual.ask(context=trusting(authority, files))


PAIR = "cert_file: tls/web.pem, key_file: tls/web.key"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("- a", "the file is not a mapping"),
        ("a: [", "is not YAML at line 1"),
        ("tls_config: {}", "tls_config is not known"),
        ("http_server_config: {headers: {}}", "http_server_config.headers is not known"),
        ("tls_server_config: {cert_file: x}", "needs cert_file and key_file"),
        ("tls_server_config: {cert_file: 1, key_file: y}", "cert_file takes the name of a file"),
        ("tls_server_config: {cert_file: x, key_file: y, cipher_suites: [z]}", "cipher_suites is not known"),
        ("tls_server_config: {cert_file: gone, key_file: gone}", "gone cannot be read"),
        (f"tls_server_config: {{{PAIR}, min_version: TLS10}}", "min_version takes one of TLS12, TLS13"),
        (
            f"tls_server_config: {{{PAIR}, client_auth_type: RequireAnyClientCert}}",
            "client_auth_type takes",
        ),
        (f"tls_server_config: {{{PAIR}, client_ca_file: tls/ca.pem}}", "belong together"),
        (f"tls_server_config: {{{PAIR}, client_allowed_sans: [a]}}", "needs client_auth_type"),
        (f"tls_server_config: {{{PAIR}, client_allowed_sans: a}}", "a list of names"),
        (f"tls_server_config: {{{PAIR}, min_version: TLS13, max_version: TLS12}}", "above max_version"),
        ("basic_auth_users: [a]", "basic_auth_users is not a mapping"),
        ("basic_auth_users: {a: geheim}", "a has no bcrypt hash"),
    ],
)
def test_what_is_not_understood_is_named(content: str, words: str, path: Path, authority: Authority) -> None:
    authority.issue("web")
    path.write_text(content)
    with pytest.raises(UsageError, match=words) as error:
        read_web_config(path)
    assert str(path) in str(error.value)
    assert "geheim" not in str(error.value)


def test_an_empty_file_asks_for_nothing(path: Path) -> None:
    path.write_text("")
    found, files = read_web_config(path)
    assert (found.tls, found.users, files) == (None, {}, [path])
