"""A plugin of pytest that ends what a run has started and left: one that is interrupted does not get to the ends of its fixtures.

Processes of tests have sessions of their own, so that Ctrl-C does not reach them. Each inherits a word of its run in its environment, by
which it is found. A run that gets to its end leaves nothing; what is found there is named.
"""

import os
import signal
import uuid
from contextlib import suppress

import pytest

from tests.marked_processes import marked

_NAME = "TEST_RUN"
_SHOWN = 160
"""So many characters of a command line are shown."""

_WORD = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # processes of pytest-xdist have the word from their controller
        config.stash[_WORD] = f"{_NAME}={uuid.uuid4()}"
        os.environ[_NAME] = config.stash[_WORD].partition("=")[2]


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if not (word := config.stash.get(_WORD, "")):
        return
    for left in marked(word):
        with suppress(ProcessLookupError):  # it ended meanwhile
            os.kill(left.pid, signal.SIGKILL)
            config.get_terminal_writer().line(f"left by the tests, and ended: {left.command:.{_SHOWN}}")
