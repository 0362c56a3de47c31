"""Keeps the agent's Flight server running: a new one on the same port whenever the certificates have changed."""

import logging
import threading

import pyarrow as pa

from streaming.agent.flight_server import AgentServer
from streaming.agent.own_page import AgentMetrics
from streaming.agent.security import Certificates, Security
from streaming.agent.service import Service
from streaming.errors import AgentError, UsageError
from streaming.units import Address

log = logging.getLogger(__name__)

_REBIND_TRIES = 100
_REBIND_PAUSE_SECONDS = 0.05
_CLOSE_SECONDS = 2.0


class Listening:
    """The server at one address. For one thread.

    Raises:
        UsageError: nothing can listen there.
    """

    def __init__(self, service: Service, listen: Address, security: Security, metrics: AgentMetrics) -> None:
        self._service = service
        self._security = security
        self._metrics = metrics
        self._certificates = self._current()
        try:
            self._server = self._serve(listen)
        except (OSError, pa.ArrowException) as error:
            raise UsageError(
                f"cannot listen on {listen} ({error}): stop the process that uses it, or name another address with --listen"
            ) from error
        self.address = Address(listen.host, self._server.port)
        self._ending: list[threading.Thread] = []

    def refresh(self) -> None:
        """Use certificates that have changed. They apply to new connections; running calls end with the old ones.

        Raises:
            AgentError: another process took the port in between.
        """
        certificates = self._current()
        if certificates is self._certificates:
            return
        self._certificates = certificates
        self._end_server()
        pause = threading.Event()
        for last_try in range(_REBIND_TRIES, 0, -1):  # the port is released at once, though running calls may take a while
            try:
                self._server = self._serve(self.address)
            except (OSError, pa.ArrowException) as error:
                if last_try == 1:
                    raise AgentError(f"cannot listen on {self.address} again after its certificate changed ({error})") from error
                pause.wait(_REBIND_PAUSE_SECONDS)
            else:
                log.info("agent listens with another certificate", extra={"address": str(self.address)})
                return

    def close(self) -> None:
        """Stop listening. Running calls have a moment to end."""
        self._end_server()
        for thread in self._ending:
            thread.join(_CLOSE_SECONDS)

    def _current(self) -> Certificates | None:
        return None if self._security.certificates is None else self._security.certificates.get()

    def _serve(self, listen: Address) -> AgentServer:
        return AgentServer(self._service, listen, self._certificates, self._security.tokens, self._metrics)

    def _end_server(self) -> None:
        # shutdown returns when the last call has ended, and the journal does not wait for a download
        thread = threading.Thread(target=self._server.shutdown, daemon=True, name="flight-ends")
        thread.start()
        self._ending = [each for each in self._ending if each.is_alive()] + [thread]
