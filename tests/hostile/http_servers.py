"""Real servers for strangers to attack, with what the system says of their processes, and the strangers' connections."""

import base64
import http.client
import itertools
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import bcrypt

from tests.builders import batch, log_dir, partition
from tests.limits import SECONDS
from tests.marked_processes import marked
from tests.processes import reap, segtail, until

USER, PASSWORD = "prometheus", "the right one"
ROUNDS = 10
"""bcrypt's cost as htpasswd and the documents have it."""


@dataclass(frozen=True)
class Figures:
    """Of a process: resident memory now and at most, in KiB, threads and descriptors."""

    rss: int
    peak: int
    threads: int
    descriptors: int


@dataclass(frozen=True)
class Server:
    """A server on loopback in a process of its own, which logs into a file."""

    host: str
    port: int
    pid: int
    log: Path
    context: ssl.SSLContext | None = None

    def figures(self) -> Figures:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{self.pid}/status").read_text().splitlines())
        rss, peak, threads = (int(status[name].split()[0]) for name in ("VmRSS", "VmHWM", "Threads"))
        return Figures(rss, peak, threads, len(list(Path(f"/proc/{self.pid}/fd").iterdir())))

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        """A connection from an address of loopback."""
        return socket.create_connection((self.host, self.port), timeout=SECONDS, source_address=(source, 0))

    def ask(self, path: str, *, password: str | None = None, source: str = "127.0.0.1") -> int:
        """The status of the answer, 0 where the connection ended without one."""
        return self.answer(path, password=password, source=source)[0]

    def answer(self, path: str, *, password: str | None = None, source: str = "127.0.0.1") -> tuple[int, Mapping[str, str], bytes]:
        headers = {} if password is None else {"Authorization": authorization(password)}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=SECONDS)
        try:
            connection.sock = self.connect(source)
            if self.context is not None:
                connection.sock = self.context.wrap_socket(connection.sock, server_hostname=self.host)
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, {}, b""
        finally:
            connection.close()

    def asked(self, data: bytes, source: str = "127.0.0.1") -> bytes:
        """What comes back for these bytes, to the end of the connection."""
        with self.connect(source) as connection:
            connection.sendall(data)
            return connection.makefile("rb").read()


def authorization(password: str) -> str:
    """The header of that name, with the scraper's name."""
    return "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()


def passwords(path: Path, **more: object) -> Path:
    """A web config file with one user."""
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(ROUNDS)).decode()
    path.write_text(f"basic_auth_users: {{{USER}: {hashed}}}\n" + "".join(f"{name}: {value}\n" for name, value in more.items()))
    return path


@contextmanager
def agent(folder: Path, web_config: Path | None, context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """The page of a real agent."""
    disk, log = log_dir(folder / "disk"), folder / "log"
    partition(disk, "orders").append(batch(1))
    options = () if web_config is None else ("--web-config", web_config)
    listens = ("--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0")
    with segtail("agent", "--log-dirs", disk.path, *listens, *options, stated=log) as started:
        url = until("the agent's page is served", lambda: re.search(r"metrics are served\" url=https?://([\d.]+):(\d+)", started.stated))
        process = until("its process", lambda: next(marked(started.mark), None))
        server = Server(url[1], int(url[2]), process.pid, log, context)
        until("it is ready", lambda: server.ask("/-/ready") == 200)
        yield server


@contextmanager
def exporter(folder: Path, web_config: Path | None, context: ssl.SSLContext | None = None, logs: int = 50) -> Iterator[Server]:
    """The exporter of a job that shows so many logs."""
    log = folder / "log"
    command = [sys.executable, "-m", "tests.hostile.exporter_process", str(logs), *([] if web_config is None else [str(web_config)])]
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, cwd=Path(__file__).parents[2])
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        where = urlsplit(process.stdout.readline().decode().strip())
        assert where.hostname is not None
        yield Server(where.hostname, where.port or 0, process.pid, log, context)
    finally:
        process.stdin.close()
        reap(process)
        process.stdout.close()


_NUMBERS = itertools.count()


def address() -> str:
    """An address of loopback that nobody had before."""
    number = next(_NUMBERS)
    return f"127.7.{number // 250 % 250}.{number % 250 + 1}"
