"""What the doctor has found, as ``segtail doctor --json`` prints it: no job serves it."""

from dataclasses import dataclass, field

from streaming.broker.protocol.json_message import PublicMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisRow(PublicMessage):
    """One result of a check: a sentence, and the command that mends it, "" if there is none."""

    check: str
    state: str
    what: str
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorPage(PublicMessage):
    """All results. ``at_ms``, ``version``, ``doubts``: as in `streaming.broker.protocol.listing_json.ListPage`."""

    at_ms: int
    version: str = ""
    doubts: list[str] = field(default_factory=list)
    faults: int
    warnings: int
    unknown: int
    rows: list[DiagnosisRow]
