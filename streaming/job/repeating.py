"""Repeats an action on a thread of its own, while this thread waits for something else."""

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def repeated(action: Callable[[], object], seconds: float) -> Iterator[None]:
    """Call ``action`` every ``seconds`` until the block is left. Leaving it waits for a call that is running."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            action()

    thread = threading.Thread(target=repeat, daemon=True, name="meanwhile")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
