"""The threads that answer calls."""

import threading
import weakref

from streaming.broker.agent.call_threads import CallThreads


class Call:
    """Stands for one of gRPC."""


def test_an_idle_thread_holds_no_call() -> None:
    """Its stream would count against those that its connection may have."""
    threads, call, gone = CallThreads(1), Call(), threading.Event()
    weakref.finalize(call, gone.set)
    threads.submit(lambda _: None, call)
    del call
    assert gone.wait(10)
    threads.close()
