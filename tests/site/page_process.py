"""The page in a process of its own, which can be frozen, ended and started again at its address; and a proxy in front of a page."""

import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from urllib.error import HTTPError

from streaming.common.web.gate import Gate
from streaming.common.web.messages import HttpRequest, Response
from streaming.common.web.server import Server
from tests.limits import SECONDS
from tests.site.page_world import MadeUpJob, site_of


class PageProcess:
    """``url``: its address, without a slash at the end."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.site.page_process", str(port)], stdout=subprocess.PIPE, stdin=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"listens\n"

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """By SIGTERM, as a service ends."""
        self.thaw()
        self._process.terminate()
        self._process.communicate(timeout=SECONDS)


@contextmanager
def page_process(port: int) -> Iterator[PageProcess]:
    """One that has ended when the block is left."""
    started = PageProcess(port)
    try:
        yield started
    finally:
        started.end()


@contextmanager
def stripping_proxy(base: str, prefix: str) -> Iterator[str]:
    """The address of a page that is reached below a prefix, which the proxy takes away, as the ingress of a cluster does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith(f"{prefix}/"):
                self.send_error(404)
                return
            try:
                answer = urllib.request.urlopen(base + self.path.removeprefix(prefix))
            except HTTPError as error:
                answer = error
            with answer:
                body = answer.read()
                self.send_response(answer.status)
                for name in ("Content-Type", "Content-Security-Policy"):
                    if answer.headers[name]:
                        self.send_header(name, answer.headers[name])
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """What matters a test sees by itself."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}{prefix}"
        finally:
            server.shutdown()
            thread.join()


def _serve(port: int) -> None:
    site = site_of(MadeUpJob())

    def answer(request: HttpRequest) -> Response:
        return site.answer(request) or Response(status=404, body=b"not found\n")

    server = Server("127.0.0.1", port, answer, Gate(None), monotonic)
    server.start("page")
    sys.stdout.write("listens\n")
    sys.stdout.flush()
    sys.stdin.read()  # ends with its parent


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
