"""The agent that a job starts for itself, on a loopback port: the same agent as any other, kept running; and the pauses of restarts."""

import logging
import os
import secrets
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from streaming.common.settings import OPTIONS, Settings
from streaming.common.units import format_duration
from streaming.common.whole_files import write_whole
from streaming.errors import AgentError

log = logging.getLogger(__name__)

FAILURES = 5
"""A query that has failed so often without a check for work in between is not well, however soon it is started again."""

NAME = "local"
"""Name of a job's own agent. It stays the same on every host, so that a checkpoint may be moved."""

_PASSED = (
    *("producers_limit", "read_rate", "redact_ids"),
    *("groups_limit", "ladder_rate"),
    *("scrub_rate", "scrub_every"),
    *("log_level", "log_format"),
)
_LIMITS = ("server_properties", "broker_config")
_START_SECONDS = 60.0
_STOP_SECONDS = 3.0
_BACK_OFF_SECONDS = (0.0, 1.0, 2.0, 5.0, 10.0)
_WELL_SECONDS = 60.0


class ChildAgent:
    """A child process that is started again when it ends by itself. Only one thread uses it.

    Args:
        directory: of its cache.
        address_file: a file that gets the agent's address whenever it listens, for those that read from the agent.
        token_file: a file that gets the token that the agent accepts. Only this user can read it.
    """

    def __init__(
        self, log_dirs: tuple[Path, ...], directory: Path, address_file: Path, token_file: Path, environ: Mapping[str, str]
    ) -> None:
        self._directory = directory
        self._address_file = address_file
        self._token_file = token_file
        self._environ = dict(environ)
        self._command = [
            *(sys.executable, "-P", "-m", "streaming.terminal.cli", "agent", "--child", "--name", NAME),
            *("--log-dirs", ",".join(map(str, log_dirs)), "--cache", str(directory), "--listen", "127.0.0.1:0"),
            *("--token-file", str(token_file)),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._listens = False
        self._address = ""  # of the process that listens, until it is written
        self._failing = False
        self._again_at = 0.0
        self._back_off = BackOff(_BACK_OFF_SECONDS, _WELL_SECONDS)
        self._spawned_at = 0.0
        self.restarts = 0
        """How often it had to be started again."""

    def start(self) -> None:
        """Start it and wait until it listens.

        Raises:
            AgentError: it ended instead; its message is on standard error. Or it cannot be started, or its address not be written.
        """
        try:
            self._start()
        except OSError as error:
            raise AgentError(f"the job's own agent cannot be started: {error}") from error

    def _start(self) -> None:
        self._spawn(time.monotonic())
        deadline = time.monotonic() + _START_SECONDS
        while not self._heard(deadline - time.monotonic()):
            status = self._ended()
            if status is not None:
                error = AgentError(f"the job's own agent ended with status {status} before it listened: see its message above")
                error.exit_status = max(1, status)
                raise error
            if time.monotonic() > deadline:
                raise AgentError(f"the job's own agent does not listen after {format_duration(_START_SECONDS)}")

    def keep_alive(self, now: float) -> None:
        """Start it again if it has ended. A start that the system refuses (memory, processes, disk) is tried again with the next call.

        Args:
            now: by `time.monotonic`.
        """
        try:
            self._keep_alive(now)
        except OSError as error:
            if not self._failing:
                log.error("the job's own agent cannot be started again now, it is tried again", extra={"error": str(error)})
            self._failing = True
        else:
            self._failing = False

    def _keep_alive(self, now: float) -> None:
        if self._process is not None and (self._heard(0.0) or self._ended() is None):
            return
        if not self._again_at:
            pause = self._back_off.ended(now - self._spawned_at)
            log.error("the job's own agent ended, it is started again", extra={"status": self._ended(), "in_seconds": pause})
            self.restarts += 1
            self._again_at = now + pause
        if now >= self._again_at:
            self._spawn(now)
            self._again_at = 0.0

    def stop(self) -> None:
        """End it."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            log.warning("the job's own agent does not end, it is killed")
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._process = None

    def _spawn(self, now: float) -> None:
        self.stop()
        self._spawned_at = now
        self._listens, self._address = False, ""
        self._make_directory()
        write_whole(self._token_file, secrets.token_hex(32).encode(), lasting=False, mode=0o600)
        # a session of its own: Ctrl-C in a terminal ends the job, and the job ends the agent after the last read
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environ, start_new_session=True
        )

    def _ended(self) -> int | None:
        return None if self._process is None else self._process.poll()

    def _heard(self, seconds: float) -> bool:
        """Whether it listens and runs; waits for its address for ``seconds``, or until it ends."""
        if self._listens or self._process is None:
            return self._listens and self._ended() is None
        if self._address:
            self._write_address()
            return self._ended() is None
        assert self._process.stdout is not None
        pipe = self._process.stdout
        with selectors.DefaultSelector() as selector:  # select() takes no descriptor above 1,023
            selector.register(pipe, selectors.EVENT_READ)
            if not selector.select(max(0.0, seconds)):
                return False
        address = os.read(pipe.fileno(), 256).decode().strip()  # so short a line is never split
        if not address:
            self._process.wait()  # it closed the pipe: it is about to end
            return False
        self._address = address
        self._write_address()
        return True

    def _make_directory(self) -> None:
        """Make it for this user alone, as the agent would; whether others may enter one that was there is the agent's to log."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _write_address(self) -> None:
        self._make_directory()
        write_whole(self._address_file, self._address.encode(), lasting=False)
        self._listens = True


class BackOff:
    """The pauses of one thing that is started again and again: longer each time it ends soon, short again after it has run well.

    Args:
        pauses: seconds, for the first end and those that follow soon; the last pause is used for all further ends.
        well_seconds: if it ran for so long it was well, and its end counts as a first one.
    """

    def __init__(self, pauses: Sequence[float], well_seconds: float) -> None:
        self._pauses = pauses
        self._well_seconds = well_seconds
        self._ends = 0

    def ended(self, ran_seconds: float) -> float:
        """It has ended after ``ran_seconds``; returns how many seconds to wait."""
        if ran_seconds >= self._well_seconds:
            self._ends = 0
        pause = self._pauses[min(self._ends, len(self._pauses) - 1)]
        self._ends += 1
        return pause


class Wellness:
    """Whether the query is well: it checks for work again and again, and its micro-batches succeed.

    The job updates it, the exporter reads it; safe from any thread.

    A check counts when its micro-batch is through, or when there was nothing to do. The start of a query does not count: a query that fails
    each time is started as often as it fails.

    Args:
        seconds: a query without a check for so long is not well.
        clock: seconds, of a clock that only goes forward.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._checked_at = clock()
        self._failures = 0

    def checked(self) -> None:
        """The query has checked for work, or there is no query yet."""
        self._checked_at = self._clock()
        self._failures = 0

    def failed(self) -> None:
        """The query has failed."""
        self._failures += 1

    @property
    def well(self) -> bool:
        """Whether the query is well."""
        return self._failures < FAILURES and self._clock() - self._checked_at < self._seconds


def environment(settings: Settings) -> dict[str, str]:
    """The agent's environment: its settings are those of the job, whichever way the job got them."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("SEGTAIL_")}
    options = {
        name: OPTIONS[name].form.show(getattr(settings, OPTIONS[name].attribute))
        for name in (*_PASSED, *(each for each in _LIMITS if getattr(settings, each)))
    }
    return own | {f"SEGTAIL_{name.upper()}": _written(value) for name, value in options.items()}


def _written(value: object) -> str:
    """A value as people write it: a flag is true or false, not True or False, and a list has commas."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
