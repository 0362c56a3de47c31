"""The agent's port: takes connections, ends their TLS, and hands their bytes to gRPC on a socket that nobody else can reach.

gRPC itself bounds neither how long a client may send the headers of a call, nor whose connections fill its port. Here a connection that
goes beyond a bound is cut, and clients displace only each other (`streaming.broker.agent.connections`).
"""

import asyncio
import logging
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from streaming.broker.agent.connections import SILENT_SECONDS, Connection, Connections
from streaming.broker.agent.http2_frames import GOING_AWAY, AnswerSeen, FrameCount, FramePace
from streaming.broker.agent.security import Certificates
from streaming.common.rare_log import RareLog
from streaming.common.reloading import Reloading
from streaming.common.units import Address
from streaming.common.web.acceptor import Acceptor, listen_at
from streaming.common.web.channel import Channel
from streaming.errors import FormatError, UsageError

log = logging.getLogger(__name__)

_CHUNK_BYTES = 64 << 10

_TURN_BYTES = 16 << 10
"""How much of a client's is read at a time: no more than 1,821 frames, so that a flood of them is no long turn."""

_PATH_BYTES = 100
"""The longest path of a socket, on every system: Linux takes 107 bytes."""


class CallFront:
    """Listens from its creation, and passes bytes from `start` to `close`.

    Args:
        certificates: for TLS; without them the bytes come as they are.
        directory: one that only this user may enter, for the socket; without it, or where its path is too long, there is one for a while.
        monotonic: seconds of a monotonic clock.

    Raises:
        OSError: nothing can listen there.
    """

    def __init__(
        self,
        listen: Address,
        certificates: Reloading[Certificates] | None,
        directory: Path | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._certificates = certificates
        self._monotonic = monotonic
        self._log = RareLog(log)
        self._connections = Connections()
        sweep, make_room = lambda: self._connections.cut_overdue(monotonic()), self._connections.make_room
        self._acceptor = Acceptor(listen.host, listen.port, self._pass, sweep, self._log, make_room)
        self.address = Address(listen.host, self._acceptor.address[1])
        fits = directory is not None and len(os.fsencode(directory / "calls")) <= _PATH_BYTES
        self._for_a_while = None if fits else tempfile.mkdtemp(prefix="segtail-")
        self.inner = Path(self._for_a_while or directory or "") / "calls"
        """The path of the socket on which gRPC listens."""
        self._last: Certificates | None = None

    def start(self) -> None:
        """Begin to take connections, in a thread that ends with the process."""
        self._acceptor.start("connections")

    def close(self) -> None:
        """Cut all connections and release the port."""
        self._acceptor.close()
        self.inner.unlink(missing_ok=True)
        if self._for_a_while is not None:
            shutil.rmtree(self._for_a_while, ignore_errors=True)

    @property
    def cuts(self) -> int:
        """How many connections were cut. For any thread."""
        return self._connections.cuts

    async def _pass(self, connection: socket.socket, host: str) -> None:
        """Pass the bytes of one connection to and fro, until either side ends it or it is cut."""
        task = asyncio.current_task()
        assert task is not None
        entry = self._connections.enter(host, self._monotonic(), task.cancel)
        outer, inner = Channel(self._acceptor.loop, connection), None
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._certificates is not None:
                await outer.shake(self._shown(self._certificates.get()).context)
            frames = FrameCount()
            first = await outer.read(_TURN_BYTES)
            frames.take(first)
            if first:  # who sends nothing costs no more than this
                inner = Channel(self._acceptor.loop, await self._inner())
                await self._both(outer, inner, first, frames, entry)
        except (OSError, asyncio.CancelledError) as error:  # it went away, has no accepted certificate, or was cut
            log.debug("connection ended", extra={"client": host, "error": str(error)})
        except FormatError as error:
            self._connections.cuts += 1
            self._log.write(logging.WARNING, "a connection is cut", {"client": host, "error": str(error)})
            with suppress(OSError):  # its time is over, too
                async with asyncio.timeout(SILENT_SECONDS):
                    await outer.write(GOING_AWAY)
                    await outer.end(_CHUNK_BYTES)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next connection is served
            self._log.write(logging.ERROR, "connection failed", {"client": host}, error)
        finally:
            self._connections.leave(entry)
            for channel in (outer, inner):
                if channel is not None:
                    channel.close()

    def _shown(self, certificates: Certificates) -> Certificates:
        """The certificate and the key for the next client."""
        if self._last is not None and certificates is not self._last:
            log.info("agent shows another certificate")
        self._last = certificates
        return certificates

    async def _inner(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.setblocking(False)
        try:
            await self._acceptor.loop.sock_connect(made, os.fspath(self.inner))
        except BaseException:
            made.close()
            raise
        return made

    async def _both(self, outer: Channel, inner: Channel, first: bytes, frames: FrameCount, entry: Connection) -> None:
        """Both directions; the end of either is that of the connection, because neither side of HTTP/2 goes on after the other."""

        async def inwards() -> None:
            entry.calls = frames.calls
            data, pace = first, FramePace()
            while data:
                rest = memoryview(data)
                while rest:  # one that takes nothing holds up the other
                    rest = rest[await inner.write(rest) :]
                if (seconds := pace.wait(frames.frames, self._monotonic())) > 0:
                    await asyncio.sleep(seconds)
                data = await outer.read(_TURN_BYTES)
                frames.take(data)
                entry.calls = frames.calls

        async def outwards() -> None:
            seen = AnswerSeen()
            while data := await inner.read(_CHUNK_BYTES):
                entry.answered = entry.answered or seen.take(data)
                rest = memoryview(data)
                while rest:
                    entry.stalled = self._monotonic()
                    rest = rest[await outer.write(rest) :]
                    entry.stalled = None

        ways = [asyncio.create_task(inwards()), asyncio.create_task(outwards())]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in done:
                way.result()
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)


def refuse_taken(listen: Address) -> None:
    """Find out whether an agent can listen at an address, before anything is made for it.

    Raises:
        UsageError: it is in use, or none of this host's.
    """
    try:
        listen_at(listen.host, listen.port).close()
    except OSError as error:
        raise cannot_listen(listen, error) from error


def cannot_listen(listen: Address, error: OSError) -> UsageError:
    """The error that names the address and the option."""
    return UsageError(
        f"cannot listen on {listen}: {error.strerror or error}; stop the process that uses it, or choose another address with "
        "--listen HOST:PORT"
    )
