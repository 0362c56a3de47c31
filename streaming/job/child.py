"""The agent that a job starts for itself, on a loopback port: the same agent as any other, kept alive while the job lives.

It ends when the pipe from this process closes, however this process ends.
"""

import logging
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from streaming.errors import AgentError

log = logging.getLogger(__name__)

NAME = "local"
"""Name of a job's own agent. It stays the same on every host, so that a checkpoint may be moved."""

_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
_POLL_SECONDS = 0.02
_BACK_OFF_SECONDS = (0.0, 1.0, 2.0, 5.0, 10.0)


class ChildAgent:
    """A child process that is started again when it ends by itself."""

    def __init__(self, log_dirs: tuple[Path, ...], directory: Path, address_file: Path, environ: Mapping[str, str]) -> None:
        self._address_file = address_file
        self._environ = dict(environ)
        self._command = [
            *(sys.executable, "-m", "streaming.cli", "agent", "--child", "--name", NAME),
            *("--log-dirs", ",".join(map(str, log_dirs)), "--journal", str(directory), "--listen", "127.0.0.1:0"),
            *("--address-file", str(address_file)),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = 0
        self._again_at = 0.0

    def start(self) -> None:
        """Start it and wait until it listens.

        Raises:
            AgentError: it ended instead; what it said stands on standard error.
        """
        self._spawn()
        assert self._process is not None
        deadline = time.monotonic() + _START_SECONDS
        while not self._address_file.exists():
            if self._process.poll() is not None:
                error = AgentError(
                    f"the job's own agent ended with status {self._process.returncode} before it listened: see its message above"
                )
                error.exit_status = max(1, self._process.returncode)
                raise error
            if time.monotonic() > deadline:
                raise AgentError(f"the job's own agent does not listen after {_START_SECONDS:.0f} s")
            time.sleep(_POLL_SECONDS)

    def _spawn(self) -> None:
        self._address_file.unlink(missing_ok=True)
        # a session of its own: Ctrl-C in a terminal ends the job, and the job ends the agent after the last read
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, env=self._environ, start_new_session=True)

    def keep_alive(self, now: float) -> None:
        """Start it again if it has ended. ``now``: seconds of a clock that only goes forward."""
        if self._process is None or self._process.poll() is None:
            return
        if not self._again_at:
            pause = _BACK_OFF_SECONDS[min(self._ended, len(_BACK_OFF_SECONDS) - 1)]
            log.error("the job's own agent ended, it is started again", extra={"status": self._process.returncode, "in_seconds": pause})
            self._ended += 1
            self._again_at = now + pause
        if now >= self._again_at:
            self._again_at = 0.0
            self._spawn()

    def stop(self) -> None:
        """End it."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            log.warning("the job's own agent does not end, it is killed")
            self._process.kill()
            self._process.wait()
        self._process = None
