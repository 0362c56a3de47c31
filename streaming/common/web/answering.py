"""Which thread answers which request, and when one is refused because too many are being answered or too many passwords wait."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from streaming.common.rare_log import RareLog
from streaming.common.web import client_limits as limits
from streaming.common.web.gate import OPEN_PATHS, Gate
from streaming.common.web.lanes import BusyError, Lane
from streaming.common.web.messages import HttpRequest, Response, sentence
from streaming.common.web.places import client_of
from streaming.common.web.request_head import RequestHead

_SHOWN = 200
"""So many characters of a path are logged."""


class Answering:
    """For one thread, whose event loop waits for the others.

    Args:
        answer: returns the answer to a request; called by several threads.
        rare_log: for answers that fail.
    """

    def __init__(self, answer: Callable[[HttpRequest], Response], gate: Gate, rare_log: RareLog) -> None:
        self._make = answer
        self._gate = gate
        self._log = rare_log
        self._probes = Lane("http-probe", limits.PROBE_THREADS, limits.PROBES)
        self._requests = Lane("http", limits.REQUEST_THREADS, limits.REQUESTS)
        self._passwords = Lane("http-password", 1, limits.PASSWORDS_WAITING)
        self._checking: Counter[str] = Counter()  # passwords that wait, by client
        self.refusals = 0
        """The number of requests that were refused because there was too much to do."""

    def close(self) -> None:
        """Let the threads end."""
        for lane in (self._probes, self._requests, self._passwords):
            lane.close()

    async def answer(self, head: RequestHead, may_ask: Callable[[bool], bool]) -> Response:
        """The answer, or the reason why there is none.

        Args:
            may_ask: returns whether one more request, which is a probe or not, may be answered now.
        """
        is_probe = head.request.path in OPEN_PATHS
        known = self._gate.remembers(head.request.path, head.authorization)
        try:
            if known is not False and not may_ask(is_probe):
                raise BusyError
            if not (await self._is_admitted(head) if known is None else known):
                asks = 'Basic realm="segtail", charset="UTF-8"'
                return sentence(HTTPStatus.UNAUTHORIZED, "a name and a password, please", WWW_Authenticate=asks)
            lane = self._probes if is_probe else self._requests
            return await asyncio.wrap_future(lane.do(partial(self._made, head.request)))
        except BusyError:
            self.refusals += 1
            return sentence(HTTPStatus.SERVICE_UNAVAILABLE, "busy: try again", Retry_After=str(limits.RETRY_SECONDS))

    async def _is_admitted(self, head: RequestHead) -> bool:
        client = client_of(head.request.client)
        if self._checking[client] >= limits.PASSWORDS_PER_CLIENT:
            raise BusyError
        self._checking[client] += 1
        try:
            return await asyncio.wrap_future(self._passwords.do(lambda: self._gate.admits(head.authorization)))
        finally:
            self._checking[client] -= 1
            self._checking += Counter()  # forgets those with none

    def _made(self, request: HttpRequest) -> Response:
        try:
            return self._make(request)
        except Exception as error:  # noqa: BLE001 - the next request is answered
            self._log.write(logging.ERROR, f"no answer to {request.path[:_SHOWN]}", {}, error)
            return sentence(HTTPStatus.INTERNAL_SERVER_ERROR, "an error; the log of this process has it")
