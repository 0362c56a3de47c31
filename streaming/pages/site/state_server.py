"""Serves the page and `/api/v1/` of a state that a command has read: the same views as a job's, without metrics."""

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from time import monotonic as system_monotonic

from streaming.common.web.gate import Gate
from streaming.common.web.messages import HttpRequest, Response, sentence
from streaming.pages.api.state import State
from streaming.pages.site.page_site import PageSite
from streaming.pages.site.state_routes import API, RESTART_HOOK, StateAnswers, listen, restart_answer, root_url


class StateServer:
    """Listens as soon as it is created, answers from `start` to `close`.

    Args:
        host: name or address to listen on.
        port: 0 for any that is free.
        state: what is shown first.
        web_config: TLS and passwords, see `streaming.common.web.gate`; None for neither.
        monotonic: seconds that only go forward, for connections that last too long.

    Raises:
        UsageError: nothing can listen there, or ``web_config`` cannot be used.
    """

    def __init__(
        self, host: str, port: int, state: State, *, web_config: Path | None = None, monotonic: Callable[[], float] = system_monotonic
    ) -> None:
        self._gate = Gate(web_config)
        self.show(state)
        self._server = listen(host, port, self._answer, self._gate, monotonic)

    def show(self, state: State) -> None:
        """Show another reading from now on. Requests that are being answered end with the one before."""
        self._faces = StateAnswers(state, None), PageSite(state, None)
        self._state = state

    @property
    def url(self) -> str:
        """Where the page is."""
        return root_url(self._server, self._gate)

    def start(self) -> None:
        """Begin to answer, in threads that end with the process."""
        self._server.start("page")

    def close(self) -> None:
        """Stop answering and release the port; connections that are still open are cut."""
        self._server.close()

    def _answer(self, request: HttpRequest) -> Response:
        answers, site = self._faces
        if request.path.startswith(API):
            return answers.answer(request)
        if request.path in ("/-/healthy", "/-/ready"):
            return sentence(HTTPStatus.OK, "the log dirs are read")
        if request.path.startswith(RESTART_HOOK):
            return restart_answer(self._state, request)
        page = site.answer(request)
        return sentence(HTTPStatus.NOT_FOUND, "not found: log dirs that were read have a page, and no metrics") if page is None else page
