"""An agent that keeps few events: ``python -m tests.few_events BYTES segtail agent ...`` takes the command line of one that keeps more."""

import sys
from collections.abc import Sequence
from functools import partial
from unittest.mock import patch

from streaming.broker.agent import process
from streaming.broker.journal.journal import Journal
from streaming.terminal.cli.app import run


def keeping(size: int) -> Sequence[str]:
    """What stands before the command of such an agent."""
    return sys.executable, "-m", "tests.few_events", str(size)


if __name__ == "__main__":
    kept = int(sys.argv[1])
    del sys.argv[1:3]  # and the program that stands before the command
    with patch.object(process, "Journal", partial(Journal, kept)):
        run()
