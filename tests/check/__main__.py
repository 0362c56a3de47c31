"""Runs the tests that a change may break, the nearest first, as many as fit into a time: ``python -m tests.check``.

It says what it leaves out.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from tests.check.nearest import NoGitError, nearest, read, since_main

ROOT = Path(__file__).parents[2]
_LEAST_SECONDS = 10
_LEFT_OUT = (
    "Not run either: tests that are not near (`make test`), that are slow, or that start Spark or another program (`make test-all`).\n"
)


def main() -> int:
    """0 if all that ran passed, else pytest's own exit status; 2 if git cannot say what was changed."""
    parser = argparse.ArgumentParser(prog="python -m tests.check", description=__doc__)
    parser.add_argument("--until", type=float, default=time.time() + 45, help="a Unix time: no test begins behind it")
    parser.add_argument("--base", default="", help="the commit to compare with, instead of where this branch left main")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest")
    given = parser.parse_args()
    try:
        changed = since_main(ROOT, given.base)
    except NoGitError as error:
        sys.stderr.write(f"What was changed is not known: {error}. `make test` runs the tests of everything.\n")
        return 2
    tree = read(ROOT)
    chosen = nearest(changed, tree)
    left = len(tree.tests()) - len(chosen)
    files = [name.replace(".", "/") + ".py" for name in chosen]
    sys.stdout.write(f"{len(changed)} files changed. Near them are {len(files)} files of tests; {left} others do not run.\n")
    if not files:
        return 0
    sys.stdout.flush()
    command = [sys.executable, "-m", "pytest", f"--until={given.until}", f"--least={_LEAST_SECONDS}", *given.pytest, *files]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    sys.stdout.write(_LEFT_OUT)
    return status


if __name__ == "__main__":
    sys.exit(main())
