"""What is between Prometheus and the job: it hands on each scrape, or refuses every second one."""

import itertools
import urllib.request

from tests.limits import SECONDS

CONTENT_TYPE = {"Content-Type": "text/plain; version=0.0.4"}


class Scrapes:
    """``every_second_fails`` may be set at any time. ``targets``: where the job serves, as ``host:port``."""

    def __init__(self, target: str) -> None:
        self.every_second_fails = False
        self._target = target
        self._numbers = itertools.count()

    def answer(self, path: str) -> tuple[int, bytes]:
        """The status and the body for a path."""
        if self.every_second_fails and next(self._numbers) % 2:
            return 503, b""
        try:
            with urllib.request.urlopen(f"http://{self._target}{path}", timeout=SECONDS) as answer:
                return answer.status, answer.read()
        except OSError:  # the job does not run, or stands still
            return 503, b""
