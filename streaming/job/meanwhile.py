"""Something done again and again on a thread of its own, while this one waits for something else."""

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def repeated(action: Callable[[], object], seconds: float) -> Iterator[None]:
    """Call ``action`` every so many seconds until the block is left, which waits for a call that is under way."""
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
