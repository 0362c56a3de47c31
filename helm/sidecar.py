#!/opt/segtail/bin/python
"""Keeps a command running in a container of a broker's pod, and ends only when it is told to.

A pod is ready only while all its containers run: an agent that ends there, for whatever reason, would take its broker out of its Services,
and an operator would stop to roll brokers. So the container goes on without the agent: it says what happened, and starts the command again
after a pause that grows. It needs Python's own library alone, so that it costs a broker's pod some 10 MB.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Sequence

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 300.0
STEADY_SECONDS = 600.0
"""After a run of this length the next pause is the first again."""

END_SECONDS = 10.0
"""How long the command has to end before it is killed: the broker's pod waits for it."""

_ENDS = (signal.SIGTERM, signal.SIGINT)
_WAITED_FOR = (*_ENDS, signal.SIGCHLD)


def pause_after(pause: float, ran: float) -> float:
    """How long to wait before the next start, seconds, after the last pause (0 for none) and a run."""
    return FIRST_PAUSE_SECONDS if not pause or ran >= STEADY_SECONDS else min(2 * pause, LONGEST_PAUSE_SECONDS)


def keep(command: Sequence[str]) -> None:
    """Keep a command running until SIGTERM or SIGINT. Signals are waited for, not handled: no code runs in the middle of other code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
    pause = 0.0
    while True:
        began = time.monotonic()
        how = _run(command)
        if how is None:
            return
        ran = time.monotonic() - began
        pause = pause_after(pause, ran)
        _report(f"it {how} after {ran:.0f} s; this container goes on and starts it again in {pause:.0f} s")
        if _told_within(pause):
            return


def _run(command: Sequence[str]) -> str | None:
    """Run it once; returns how it ended, None if it was to."""
    try:
        process = subprocess.Popen(command, preexec_fn=_take_signals)
    except OSError as error:
        return f"cannot be started ({error})"
    while process.poll() is None:
        if signal.sigwait(_WAITED_FOR) in _ENDS:
            _end(process)
            return None
    return f"was killed by signal {-process.returncode}" if process.returncode < 0 else f"ended with status {process.returncode}"


def _take_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAITED_FOR)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _told_within(seconds: float) -> bool:
    """Whether the end is told in this time."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        told = signal.sigtimedwait(_WAITED_FOR, left)
        if told is not None and told.si_signo in _ENDS:
            return True
    return False


def _report(what: str) -> None:
    print(f"sidecar: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit("sidecar: name the command to run")
    keep(sys.argv[1:])
