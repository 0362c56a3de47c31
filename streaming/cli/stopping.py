"""What SIGTERM and Ctrl-C do to a command that starts a job: they end it in good order, whatever it is doing."""

import signal
import threading


class Stopped(BaseException):
    """A signal came before the job ran. Like KeyboardInterrupt it is no Exception: nothing on the way may take it for a failure."""


class Signals:
    """Signals set ``stop``; while the job starts, which takes seconds, the first one ends that by `Stopped`. For the main thread."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._starting = True
        self._listen()

    def started(self) -> None:
        """The job runs and looks at ``stop`` itself."""
        self._listen()  # PySpark puts a handler of its own in the place of this one for Ctrl-C
        self._starting = False

    def _listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)

    def _handle(self, *_: object) -> None:
        self.stop.set()
        if self._starting:
            self._starting = False
            raise Stopped
