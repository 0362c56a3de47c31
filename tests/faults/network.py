"""A network between a job and an agent that can be cut: connections on loopback go through a proxy that refuses, drops or swallows them.

Who has opened a connection is looked up in /proc, so that a cut may concern some of a job's processes alone, as where executors run
on other machines than the driver.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

_CHUNK = 1 << 16
_ACCEPT_SECONDS = 0.2

_NOBODYS = "0"  # the inode of a connection that no process has open

EVERYBODY = ""


class Network:
    """A proxy that listens at ``address`` until the block is left.

    A cut is undone by `mend`. A hole is how a network looks whose packets go nowhere: connections stand, and nothing comes.
    """

    def __init__(self, target_port: int) -> None:
        self._target = ("127.0.0.1", target_port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(_ACCEPT_SECONDS)
        self.port: int = self._listener.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket | None, str]] = []
        self._cut: str | None = None
        self._hole = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._accept, name="network", daemon=True)

    def __enter__(self) -> "Network":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._listener.close()
        self._drop(EVERYBODY)

    def cut(self, who: str = EVERYBODY) -> None:
        """Break the connections of processes whose command line holds ``who``, and refuse theirs."""
        with self._lock:
            self._cut = who
        self._drop(who)

    def swallow(self) -> None:
        """Take what is sent, new connections too, and pass nothing on."""
        self._hole.set()

    def mend(self) -> None:
        """Let everything through again. What was swallowed is lost, with its connection."""
        self._cut = None
        if self._hole.is_set():
            self._hole.clear()
            self._drop(EVERYBODY)

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                near, peer = self._listener.accept()
            except TimeoutError:
                continue
            who = _command_of(peer[1], self.port)
            far = None if self._hole.is_set() else self._connect(near)
            with self._lock:
                refused = self._cut is not None and (self._cut in who or not who)  # one that is gone already may have been meant
                if not refused:
                    self._pairs.append((near, far, who))
            if refused:
                _end(near)
                if far is not None:
                    _end(far)
            elif far is not None:
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _connect(self, near: socket.socket) -> socket.socket | None:
        try:
            return socket.create_connection(self._target)
        except OSError:  # the agent is away
            _end(near)
            return None

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                if not self._hole.is_set():
                    sink.sendall(data)
        _end(source)
        _end(sink)

    def _drop(self, who: str) -> None:
        with self._lock:
            for near, far, command in self._pairs:
                if who in command:
                    _end(near)
                    if far is not None:
                        _end(far)
            self._pairs = [pair for pair in self._pairs if who not in pair[2]]


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def _command_of(port: int, to: int) -> str:
    """The command line of the process whose connection goes from the one local port to the other, "" if it is gone.

    A local port alone names nobody: a connection to somewhere else may have it too, one that is closed and waits included.
    """
    inode = next((inode for local, remote, inode in _connections() if (local, remote) == (port, to)), _NOBODYS)
    if inode == _NOBODYS:
        return ""
    for fds in Path("/proc").glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):
            if any(_link(fd) == f"socket:[{inode}]" for fd in fds.iterdir()):
                return (fds.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def _link(fd: Path) -> str:
    try:
        return str(fd.readlink())
    except OSError:  # closed since the directory was listed
        return ""


def _connections() -> Iterator[tuple[int, int, str]]:
    """Local port, remote port and inode of each connection."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            local, remote = (int(field.rpartition(":")[2], 16) for field in fields[1:3])
            yield local, remote, fields[9]
