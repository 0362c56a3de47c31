"""The progress of a scrub, stored in a small file beside the journal: the scrub goes on from there when the agent is started again."""

import json
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from streaming.broker.disk.segment_files import SegmentKey
from streaming.broker.scrub.findings import FoundSegment
from streaming.common.whole_files import write_whole
from streaming.kafka.scan.soundness import Damage, Fault

log = logging.getLogger(__name__)

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubProgress:
    """The progress of the scrub of one log dir.

    ``began_ms``, ``ended_ms``: when the last pass began, and when a pass ended last (Unix milliseconds, -1 never). ``running``: a pass is
    not finished. ``directory``: the directory of the current log. ``behind``: the base offset of the last checked segment of that log, -1
    none; the stored file has this name. ``key``, ``position``: the segment that is being checked, if any, and its first byte to check
    next. ``checked``: the bytes that were ever checked.
    """

    directory_id: str | None = None
    began_ms: int = -1
    ended_ms: int = -1
    running: bool = False
    directory: str = ""
    behind: int = -1
    key: SegmentKey | None = None
    position: int = 0
    checked: int = 0
    found: Sequence[FoundSegment] = field(default=())


def load(path: Path) -> ScrubProgress:
    """Load the stored progress; that of a new scrub if there is no file, or it is not understood."""
    try:
        fields = json.loads(path.read_bytes())
        return _read(fields)
    except FileNotFoundError:
        return ScrubProgress()
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        log.warning("progress of the scrub cannot be read: the scrub begins anew", extra={"path": str(path), "error": str(error)})
        return ScrubProgress()


def store(path: Path, progress: ScrubProgress) -> None:
    """Store the progress. The file is always whole: it is the old one or the new one. Raises OSError."""
    fields = {name: getattr(progress, name) for name in ScrubProgress.__slots__} | {
        "version": _VERSION,
        "found": [_found(each) for each in progress.found],
    }
    write_whole(path, json.dumps(fields).encode())


def file_of(directory: Path, log_dir: Path) -> Path:
    """The file for a log dir, in the directory of the journal."""
    return directory / f"scrub-{blake2b(bytes(log_dir), digest_size=8).hexdigest()}.json"


def _found(segment: FoundSegment) -> dict[str, Any]:
    return {
        "path": os.fspath(segment.path),
        "key": list(segment.key),
        "damages": [[str(damage.fault), damage.position, damage.offset] for damage in segment.damages],
        "batches": segment.batches,
        "error": segment.error,
    }


def _read(fields: dict[str, Any]) -> ScrubProgress:
    if fields.pop("version") != _VERSION:
        raise ValueError("it is of another version")
    key = fields.pop("key")
    return ScrubProgress(
        **{name: value for name, value in fields.items() if name in ScrubProgress.__slots__ and name != "found"},
        key=None if key is None else SegmentKey(*key),
        found=tuple(
            FoundSegment(
                Path(each["path"]),
                SegmentKey(*each["key"]),
                tuple(Damage(Fault(fault), position, offset) for fault, position, offset in each["damages"]),
                each["batches"],
                each["error"],
            )
            for each in fields["found"]
        ),
    )
