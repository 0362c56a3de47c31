"""Handles SIGTERM and Ctrl-C for a command that starts a job: they end it in good order, whatever it is doing."""

import signal
import threading


class Signals:
    """Sets ``stop`` at a signal. While the job starts, which takes seconds, the first raises `Stopped`. Only the main thread uses it."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._starting = True
        self._listen()

    def started(self) -> None:
        """The job is running and checks ``stop`` itself."""
        self._listen()  # PySpark replaces this handler by its own for Ctrl-C
        self._starting = False

    def _listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)

    def _handle(self, *_: object) -> None:
        self.stop.set()
        if self._starting:
            self._starting = False
            raise Stopped


class Stopped(BaseException):
    """A signal came before the job ran. Like KeyboardInterrupt it is no Exception, so that no code treats it as a failure."""
