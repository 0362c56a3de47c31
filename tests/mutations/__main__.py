"""``python -m tests.mutations [NAME ...]``: changes one line at a time in a copy of the tree, and sees that a fast test fails for it.

Exits with 1 if a change survived, or if its line is not there any more; with 2 if the tests fail without any change.
"""

import queue
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.mutations.changed_copy import ChangedCopy, StaleError
from tests.mutations.table import MUTATIONS, Mutation

_TREE = Path(__file__).parents[2]
_COPIES = 2
"""So many changes are tried side by side, each in a copy of its own."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one mutation. ``found``: the test that failed for it, or why there is none."""

    name: str
    killed: bool
    found: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.name:44} {self.seconds:6.1f} s  {self.found}"


def replay(mutations: Sequence[Mutation], tree: Path, say: Callable[[str], None]) -> int:
    """Tries mutations of a tree; returns the exit status."""
    with ExitStack() as stack, ThreadPoolExecutor(_COPIES) as threads:
        copies = queue.SimpleQueue[ChangedCopy]()
        for _ in range(min(_COPIES, len(mutations))):
            copies.put(ChangedCopy(tree, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutations-")))))
        if not _passes_unchanged(mutations, copies, say):
            return 2
        results = []
        for result in threads.map(lambda mutation: _try(mutation, copies), mutations):
            say(str(result))
            results.append(result)
    survived = sum(not result.killed for result in results)
    say(f"{len(results) - survived} of {len(results)} changes fail a test")
    return 1 if survived else 0


def _passes_unchanged(mutations: Sequence[Mutation], copies: queue.SimpleQueue[ChangedCopy], say: Callable[[str], None]) -> bool:
    """Whether all tests that are named pass: else what fails for a change would show nothing."""
    copy = copies.get()
    outcome = copy.test(tuple(sorted({file for mutation in mutations for file in mutation.tests})))
    copies.put(copy)
    if not outcome.passed:
        say(outcome.output)
        say(f"without any change {outcome.killer} fails")
    return outcome.passed


def _try(mutation: Mutation, copies: queue.SimpleQueue[ChangedCopy]) -> Result:
    copy, began = copies.get(), time.monotonic()
    try:
        with copy.changed(mutation):
            outcome = copy.test(mutation.tests)
        found = "SURVIVED" if outcome.passed else outcome.killer
        return Result(mutation.name, not outcome.passed, found, time.monotonic() - began)
    except StaleError as error:
        return Result(mutation.name, False, f"STALE: {error}", time.monotonic() - began)
    finally:
        copies.put(copy)


def main(names: Sequence[str]) -> int:
    """Replays the mutations of these names, or all."""
    unknown = set(names) - {mutation.name for mutation in MUTATIONS}
    if unknown:
        sys.stderr.write(f"no mutation is called {', '.join(sorted(unknown))}\n")
        return 2
    return replay([each for each in MUTATIONS if not names or each.name in names], _TREE, _say)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
