"""Dumps as the command makes them, without a process of their own."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streaming.broker.disk.segment_walk import FormatFlaw
from streaming.common.progress_line import ProgressLine
from streaming.terminal.dump.dumper import dump
from streaming.terminal.dump.request import Format, Request

LOGS = Path(__file__).parents[1] / "data" / "logs"


@dataclass(frozen=True)
class Dumped:
    """What a dump wrote, what it found and its exit status."""

    output: bytes
    findings: tuple[FormatFlaw, ...]
    status: int
    conclusion: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The objects of a JSON dump."""
        return [json.loads(line) for line in self.output.splitlines()]


def dumped(*paths: Path, **asked: Any) -> Dumped:
    """A dump as text, or as ``format`` says."""
    out, findings, conclusions = io.BytesIO(), list[FormatFlaw](), list[str]()
    status = dump(Request(paths=paths, **asked), out, findings.append, ProgressLine(None), conclusions.append)
    return Dumped(out.getvalue(), tuple(findings), status, "; ".join(conclusions))


def rows(*paths: Path, **asked: Any) -> list[dict[str, Any]]:
    """The rows of a dump in which nothing was found."""
    done = dumped(*paths, format=Format.JSON, **asked)
    assert (done.findings, done.status) == ((), 0)
    return done.rows


def findings_at(done: Dumped) -> list[tuple[str, int | None]]:
    """The files and positions of what was found."""
    return [(finding.path.name, finding.position) for finding in done.findings]
