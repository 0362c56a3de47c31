"""TLS and passwords of what is served over HTTP, over real connections."""

import base64
import http.client
import logging
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from time import monotonic

import bcrypt
import pytest
import yaml

from streaming.common.web import gate as gates
from streaming.common.web import places as limits
from streaming.common.web.gate import Gate, Passwords, read_web_config
from streaming.common.web.messages import HttpRequest, Response
from streaming.common.web.places import ServerCounts
from streaming.common.web.server import Server as WebServer
from streaming.errors import UsageError
from streaming.terminal.cli.job_answers import fetch
from tests.certificates import Authority, Files, trusting
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


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for the answer that a password is wrong."""
    monkeypatch.setattr(limits, "WRONG_SECONDS", 0.0)


class Server:
    def __init__(self, path: Path | None) -> None:
        self.gate = Gate(path)
        self._server = WebServer("127.0.0.1", 0, self._answer, self.gate, monotonic)
        self.port = self._server.address[1]
        self._server.start("web")

    def _answer(self, request: HttpRequest) -> Response:
        return Response(status=HTTPStatus.OK, body=request.path.encode())

    def counts(self) -> ServerCounts:
        return self._server.counts()

    def close(self) -> None:
        self._server.close()

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


@pytest.mark.parametrize(("expected", "status"), [("100-continue", 100), ("100-Continue", 200), ("200-ok", 417), ("100-continue, x", 417)])
def test_what_a_client_expects_and_nobody_does_is_refused(open_server: Server, expected: str, status: int) -> None:
    with socket.create_connection(("127.0.0.1", open_server.port), timeout=SECONDS) as client:
        client.sendall(f"GET / HTTP/1.1\r\nHost: localhost\r\nExpect: {expected}\r\nConnection: close\r\n\r\n".encode())
        assert status_of(client) == status


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


def authorized(password: str, user: str = "prometheus") -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The passwords that bcrypt was asked about."""
    check, asked = bcrypt.checkpw, []

    def counted(password: bytes, against: bytes) -> bool:
        asked.append(password)
        return check(password, against)

    monkeypatch.setattr(bcrypt, "checkpw", counted)
    return asked


def test_a_password_is_hashed_once_right_or_wrong(guarded: Server, checked: list[bytes]) -> None:
    tries = [(PASSWORD, "prometheus"), ("falsch", "prometheus"), (PASSWORD, "somebody")] * 2
    assert [guarded.ask(user=user, password=password) for password, user in tries] == [200, 401, 401] * 2
    assert checked == [PASSWORD.encode(), b"falsch", PASSWORD.encode()]


class Crowd:
    """Passwords that are tried from many addresses, and wait for bcrypt until `let_go`."""

    def __init__(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        self._port = server.port
        self._check, self._go_on = bcrypt.checkpw, threading.Event()
        self.waiting: list[socket.socket] = []
        self.asked: list[bytes] = []
        monkeypatch.setattr(bcrypt, "checkpw", self._checked)

    def _checked(self, password: bytes, against: bytes) -> bool:
        self.asked.append(password)
        self._go_on.wait(SECONDS)
        return self._check(password, against)

    def ask(self, source: str, password: str) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self._port), timeout=SECONDS, source_address=(source, 0))
        made.sendall(f"GET /metrics HTTP/1.0\r\nAuthorization: {authorized(password)}\r\n\r\n".encode())
        self.waiting.append(made)
        return made

    def let_go(self) -> list[int]:
        """The status of each answer."""
        self._go_on.set()
        return [status_of(each) for each in self.waiting]


def status_of(connection: socket.socket) -> int:
    with connection, connection.makefile("rb") as answer:
        return int(answer.read().split()[1])


@pytest.mark.parametrize("addresses", [1, 40], ids=["one address", "many addresses"])
def test_who_is_known_waits_for_no_password_that_others_try(guarded: Server, addresses: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are more than the requests that may be answered at a time, and than the clients that may take their answers."""
    assert guarded.ask(user="prometheus") == 200
    crowd = Crowd(guarded, monkeypatch)
    monkeypatch.setattr(limits, "WRONG_SECONDS", float(SECONDS))  # whoever is refused keeps waiting, too
    for number in range(60):
        crowd.ask(f"127.0.1.{number % addresses + 1}", str(number))
    for _ in range(3):
        assert guarded.ask(user="prometheus") == 200
    monkeypatch.setattr(limits, "WRONG_SECONDS", 0.0)
    for each in crowd.waiting:
        each.close()
    crowd._go_on.set()


def test_who_is_not_known_yet_gets_a_turn_beside_those_who_try(guarded: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a start, while eight addresses try."""
    crowd = Crowd(guarded, monkeypatch)
    for number in range(64):
        crowd.ask(f"127.0.1.{number % 8 + 1}", str(number))
    while not crowd.asked:
        pass
    scrape = crowd.ask("127.0.2.1", PASSWORD)
    crowd.waiting.remove(scrape)
    found = Counter(crowd.let_go())
    assert status_of(scrape) == 200
    assert found[401] + found[503] == 64
    assert found[401] >= 8 * limits.PASSWORDS_PER_CLIENT


def test_wrong_passwords_are_counted_and_are_one_line_a_minute(guarded: Server, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(5):
        assert guarded.ask(user="prometheus", password=f"{number % 3}") == 401
    assert guarded.ask() == 401  # no password is not a wrong one: a browser asks so first
    assert guarded.ask(user="prometheus") == 200
    assert guarded.counts().wrong == 5
    (line,) = (record for record in caplog.records if record.getMessage() == "wrong password")
    assert line.__dict__["client"] == "127.0.0.1"
    assert PASSWORD not in caplog.text


def test_what_was_right_is_forgotten_when_the_file_changes(guarded: Server, path: Path, checked: list[bytes]) -> None:
    assert guarded.ask(user="prometheus") == 200
    config(path, basic_auth_users={"prometheus": hashed()})  # another hash of the same password
    assert guarded.ask(user="prometheus") == 200
    config(path, basic_auth_users={"somebody": hashed()})
    assert guarded.ask(user="prometheus") == 401
    assert checked.count(PASSWORD.encode()) == 3  # once with each file


def test_a_wrong_password_that_becomes_the_right_one_is_right(guarded: Server, path: Path) -> None:
    assert guarded.ask(user="prometheus", password="new") == 401
    config(path, basic_auth_users={"prometheus": hashed("new")})
    assert guarded.ask(user="prometheus", password="new") == 200


def test_tries_displace_no_right_password(checked: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "WRONG_PASSWORDS", 10)
    users, checker = {"prometheus": hashed().encode()}, Passwords()
    assert checker.check(users, authorized(PASSWORD))
    wrong = [authorized(str(number)) for number in range(30)]
    assert not any(checker.check(users, each) for each in wrong)
    assert checker.remembered(users, authorized(PASSWORD)) is True
    assert [checker.remembered(users, each) for each in wrong] == [None] * 20 + [False] * 10


@pytest.mark.parametrize("authorization", ["", "Basic", "Basic !!!", "Basic cHJvbWV0aGV1cw==", "Bearer abc", "Basic /////w=="])
def test_a_header_that_is_none_is_no_password(guarded: Server, authorization: str, checked: list[bytes]) -> None:
    assert guarded.gate.remembers("/metrics", authorization) is False
    assert checked == []


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


def test_who_asks_in_the_wrong_way_is_told_what_to_write(encrypted: Server, open_server: Server) -> None:
    for address, words in (
        (f"http://127.0.0.1:{encrypted.port}", "it closes the connection: if it speaks TLS, write https://"),
        (f"https://127.0.0.1:{open_server.port}", "it speaks no TLS: write http://"),
        (f"https://127.0.0.1:{encrypted.port}", r"its certificate is not trusted here \(.*\): the variable SSL_CERT_FILE names"),
    ):
        with pytest.raises(UsageError, match=words):
            fetch(address, "/metrics", SECONDS)


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


@pytest.mark.parametrize(
    "content", ["", "# none", "{}", "tls_server_config:", "basic_auth_users: {}", "http_server_config: {http2: false}"]
)
def test_a_file_that_asks_for_nothing_is_refused(content: str, path: Path) -> None:
    """It was emptied or cut: the server would be open, and nobody would know."""
    path.write_text(content)
    with pytest.raises(UsageError, match=r"asks for neither TLS .* nor passwords .*leave --web-config away") as error:
        read_web_config(path)
    assert str(error.value).startswith(f"--web-config {path} ")


def test_a_hash_that_was_cut_is_refused_at_a_start_and_the_one_before_stays(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole = hashed()
    gate = Gate(config(path, basic_auth_users={"prometheus": whole}))
    for length in range(1, len(whole)):
        config(path, basic_auth_users={"prometheus": whole[:length]})
        with pytest.raises(UsageError, match="basic_auth_users: prometheus has no bcrypt hash") as error:
            read_web_config(path)
        assert str(path) in str(error.value)
        assert gate.remembers("/metrics", authorized(PASSWORD, "prometheus")) is not False
        assert "prometheus has no bcrypt hash" in str(vars(caplog.records[-1])["error"])
    assert gate.admits(authorized(PASSWORD, "prometheus"))


@pytest.fixture
def shut(authority: Authority, path: Path) -> Gate:
    """Everything that a file can ask for."""
    options = tls(
        authority.issue("web"),
        client_ca_file="tls/ca.pem",
        client_auth_type="RequireAndVerifyClientCert",
        client_allowed_sans=["prometheus"],
    )
    return Gate(config(path, basic_auth_users={"prometheus": hashed()}, tls_server_config=options))


def is_shut(gate: Gate) -> bool:
    context = gate.context()
    assert context is not None
    with pytest.raises(ssl.SSLError):
        gate.check_names({})
    return context.verify_mode is ssl.CERT_REQUIRED and gate.remembers("/metrics", "") is False


USERS, TLS = "basic_auth_users", "tls_server_config"


@pytest.mark.parametrize(
    ("without", "lost"),
    [
        ([USERS, TLS], "asks for neither TLS (tls_server_config) nor passwords (basic_auth_users)"),
        ([TLS], "TLS (tls_server_config) and client certificates"),
        ([USERS], "the change would turn off passwords (basic_auth_users): put it back, or restart"),
        (["client_allowed_sans"], "the names in client certificates (client_allowed_sans)"),
        (["client_allowed_sans", "client_auth_type", "client_ca_file"], "client certificates (client_auth_type) and the names"),
    ],
)
def test_a_change_that_would_open_what_is_shut_is_not_taken(
    shut: Gate, path: Path, without: list[str], lost: str, caplog: pytest.LogCaptureFixture
) -> None:
    whole = yaml.safe_load(path.read_text())
    options = {name: value for name, value in whole[TLS].items() if name not in without}
    config(path, **{name: value for name, value in (whole | {TLS: options}).items() if name not in without})
    assert is_shut(shut)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert lost in str(vars(caplog.records[0])["error"])
    config(path, **whole | {USERS: {"another": hashed()}})
    assert shut.remembers("/metrics", authorized(PASSWORD, "another")) is None
    assert shut.admits(authorized(PASSWORD, "another"))


@pytest.mark.parametrize("order", [[USERS, TLS], [TLS, USERS]])
def test_a_file_that_is_being_written_opens_nothing(shut: Gate, path: Path, order: list[str]) -> None:
    whole = yaml.safe_load(path.read_text())
    text = yaml.safe_dump({name: whole[name] for name in order}, sort_keys=False)
    for written in range(len(text)):
        path.write_text(text[:written])
        assert is_shut(shut), text[:written]


def test_tls_may_be_turned_on_while_it_runs(path: Path, authority: Authority) -> None:
    gate = Gate(config(path, basic_auth_users={"prometheus": hashed()}))
    config(path, basic_auth_users={"prometheus": hashed()}, tls_server_config=tls(authority.issue("web")))
    assert gate.context() is not None
