"""A thread with an event loop that listens, and has a task for each connection; nobody who connects keeps it from the others."""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from threading import Thread

from streaming.common.rare_log import RareLog

_BACKLOG = 128

_SWEEP_SECONDS = 0.25

_FULL_SECONDS = 0.1
"""How long nothing is accepted where the process has no descriptor left, and no connection that gives way either."""

_CUT_SECONDS = 0.01
"""How long a connection that is cut for another one has to end."""


class Acceptor:
    """Listens from its creation; `start` begins to accept, `close` cuts all connections and releases the port.

    Args:
        converse: serves one connection from a client's host, and closes it; it is cancelled if it is to end at once.
        sweep: cuts the connections whose time is over; called again and again.
        make_room: cuts a connection where no descriptor is left; returns whether there was one.

    Raises:
        OSError: nothing can listen there.
    """

    def __init__(
        self,
        host: str,
        port: int,
        converse: Callable[[socket.socket, str], Coroutine[object, object, None]],
        sweep: Callable[[], object],
        notes: RareLog,
        make_room: Callable[[], bool] = lambda: False,
    ) -> None:
        self._converse = converse
        self._sweep = sweep
        self._make_room = make_room
        self._log = notes
        self._listener = listen_at(host, port)
        bound = self._listener.getsockname()
        self.address: tuple[str, int] = str(bound[0]), int(bound[1])
        """Host and port that it listens on."""
        self.loop = asyncio.new_event_loop()
        self._ends = asyncio.Event()
        self._thread: Thread | None = None
        self._conversations: set[asyncio.Task[None]] = set()

    def start(self, name: str) -> None:
        """Begin to accept, in a thread that ends with the process."""
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Cut all connections and release the port."""
        if self._thread is not None and self._thread.is_alive():
            self.loop.call_soon_threadsafe(self._ends.set)
            self._thread.join()
        self._listener.close()
        self.loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        accepting = asyncio.create_task(self._accept())
        self._sweep_again()
        await self._ends.wait()
        accepting.cancel()
        for conversation in self._conversations:
            conversation.cancel()
        await asyncio.gather(accepting, *self._conversations, return_exceptions=True)

    def _sweep_again(self) -> None:
        if not self._ends.is_set():
            self.loop.call_later(_SWEEP_SECONDS, self._sweep_again)  # less than half of what a task that waits costs
            self._sweep()

    async def _accept(self) -> None:
        """Accept one connection a turn of the loop, so that none is cut for a later one before its request was looked at."""
        while True:
            try:
                connection, address = await self.loop.sock_accept(self._listener)
            except OSError as error:
                self._log.write(logging.WARNING, "no connection is accepted for now", {"error": str(error)})
                await asyncio.sleep(_CUT_SECONDS if self._make_room() else _FULL_SECONDS)
                continue
            conversation = asyncio.create_task(self._converse(connection, str(address[0])))
            self._conversations.add(conversation)
            conversation.add_done_callback(self._conversations.discard)
            await asyncio.sleep(0)  # while more of them wait, accepting itself does not


def listen_at(host: str, port: int) -> socket.socket:
    """A socket that listens at a name or an address of IPv4 or IPv6, and does not block; port 0 for any that is free.

    Raises:
        OSError: nothing can listen there.
    """
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener
