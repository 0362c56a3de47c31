"""What tests need from the machine beside Python."""

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest


def require_tool(name: str) -> Path:
    """Finds a program beside this Python or on the PATH, or gives the test up as `missing` does."""
    found = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    return Path(found) if found else missing(f"{name} is neither in .venv/bin nor on the PATH")


def missing(what: str) -> NoReturn:
    """Skips the test for want of something on a developer's machine; with ``CI=true`` that is a failure, never a silent skip."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}, and with CI=true every test has to run")
    pytest.skip(what)
