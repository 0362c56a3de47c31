"""Bytes from and to one client, with or without TLS, for an event loop.

asyncio's own streams keep 256 KiB and more for each connection with TLS, also where a client says nothing: this keeps what OpenSSL does.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar

_Value = TypeVar("_Value")

_CHUNK_BYTES = 16 << 10

_TURN = 8
"""How often it reads and writes before others have their turn. A short answer is one turn, so that nobody is between its parts."""


class Channel:
    """For the thread of the loop. All methods that wait raise OSError if the connection has ended.

    They let others have their turn now and then: a client that always has more to send, or takes all it is sent, keeps no loop.

    Args:
        connection: one that does not block; the channel closes it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
        self._loop = loop
        self._socket = connection
        self._acts = 0  # since others had their turn

    async def shake(self, context: ssl.SSLContext) -> Mapping[str, object]:
        """Begin TLS; returns the client's certificate, empty if it has shown none.

        Raises:
            OSError: the client does not use TLS, or has no accepted certificate.
        """
        encrypted = context.wrap_socket(self._socket, server_side=True, do_handshake_on_connect=False)
        self._socket = encrypted
        await self._until(encrypted.do_handshake, self._readable)
        return encrypted.getpeercert() or {}

    async def read(self, most: int) -> bytes:
        """The next bytes, b"" at the end."""
        return await self._until(lambda: self._socket.recv(most), self._readable)

    async def write(self, data: bytes | memoryview) -> int:
        """Send as many of the bytes as the client takes now, at least one; returns how many."""
        return await self._until(lambda: self._socket.send(data), self._writable)

    async def end(self, most: int) -> None:
        """Say that nothing more comes, and read what the client still sends, up to so many bytes.

        If a connection is closed with unread bytes it is reset, and the client might never get the answer.
        """
        if isinstance(self._socket, ssl.SSLSocket):
            with suppress(OSError, ValueError):  # it does not wait for the client's word: the raw end follows
                self._socket.unwrap()
        socket.socket.shutdown(self._socket, socket.SHUT_WR)
        while most > 0 and (more := await self._until(lambda: socket.socket.recv(self._socket, _CHUNK_BYTES), self._readable)):
            most -= len(more)

    def close(self) -> None:
        """End at once."""
        self._socket.close()

    async def _until(self, act: Callable[[], _Value], is_ready: Callable[["asyncio.Future[None]"], Callable[[int], object]]) -> _Value:
        self._acts += 1
        if self._acts > _TURN:
            self._acts = 0
            await asyncio.sleep(0)
        while True:
            try:
                return act()
            except ssl.SSLWantReadError:
                await self._wait(self._readable)
            except ssl.SSLWantWriteError:
                await self._wait(self._writable)
            except BlockingIOError:
                await self._wait(is_ready)

    async def _wait(self, is_ready: Callable[["asyncio.Future[None]"], Callable[[int], object]]) -> None:
        self._acts = 0
        ready: asyncio.Future[None] = self._loop.create_future()
        forget = is_ready(ready)
        try:
            await ready
        finally:
            forget(self._socket.fileno())

    def _readable(self, ready: "asyncio.Future[None]") -> Callable[[int], object]:
        self._loop.add_reader(self._socket.fileno(), _note, ready)
        return self._loop.remove_reader

    def _writable(self, ready: "asyncio.Future[None]") -> Callable[[int], object]:
        self._loop.add_writer(self._socket.fileno(), _note, ready)
        return self._loop.remove_writer


def _note(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)
