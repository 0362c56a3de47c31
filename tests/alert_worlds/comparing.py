"""Alerts and judge held against each other: over the same worlds an alert fires if and only if the judge finds a problem of its kind."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streaming.broker.protocol.status_json import WARNING, Problem
from streaming.cluster.verdicts import kinds
from streaming.cluster.verdicts.kinds import KINDS, ProblemKind
from streaming.kafka.formats.names import OFFSETS_TOPIC
from tests.alert_worlds.prometheus_rules import Labels, firing
from tests.alert_worlds.worlds import World

_BLIND = ("reason", "broker", "topic", "log_dir", "agent")
_DAMAGED = ("found_by", "broker", "topic", "log_dir")
_UNREADABLE = ("found_by", "broker", "log_dir")

SUBJECTS: dict[ProblemKind, tuple[str, ...]] = {
    kinds.QUORUM_LOST: (),
    kinds.OFFLINE: ("topic",),
    kinds.UNCLEAN: ("topic",),
    kinds.LOG_CORRUPT: ("broker", "topic"),
    kinds.HANGING: ("topic",),
    kinds.BROKER_DOWN: ("broker",),
    kinds.BROKER_NOT_WRITING: ("broker",),
    kinds.BROKER_METADATA_STALLED: ("broker",),
    kinds.LOG_DIR_OFFLINE: ("broker", "log_dir"),
    kinds.LOG_SET_ASIDE: ("broker", "log_dir"),
    kinds.LOG_DIR_FULL: ("broker", "log_dir"),
    kinds.UNDER_MIN_ISR: ("topic",),
    kinds.GROUP_WILL_LOSE: ("group", "topic"),
    kinds.OVERDUE: (),
    kinds.STUCK: ("topic",),
    kinds.LOG_DIR_UNREADABLE: ("broker", "log_dir"),
    kinds.LOG_UNREADABLE: _UNREADABLE,
    kinds.METADATA_UNREADABLE: (),
    kinds.AGENT_DOWN: ("agent",),
    kinds.GROUP_LOST: ("group", "topic"),
    kinds.GROUP_SKIPPED: ("group", "topic"),
    kinds.GROUP_OFFSET_INVALID: ("group", "topic"),
    kinds.GROUP_HELD: ("group", "topic", "waits"),
    kinds.GROUP_PENDING: ("group", "topic", "waits"),
    kinds.GROUPS_ABANDONED: (),
    kinds.GROUP_STOPPED: ("group", "topic"),
    kinds.GROUP_REBALANCING: ("group",),
    kinds.GROUP_OFFSETS_EXPIRE: ("group", "topic"),
    kinds.STALLED: ("topic",),
    kinds.RETENTION_OVERDUE: ("broker", "topic"),
    kinds.RETENTION_BLOCKED: ("broker", "topic", "reason"),
    kinds.IN_FUTURE: ("topic",),
    kinds.ARRIVES_EXPIRED: ("topic",),
    kinds.COMPACTION_STALLED: ("broker", "topic"),
    kinds.UNDER_REPLICATED: ("topic",),
    kinds.BROKER_STARTING: ("broker",),
    kinds.BROKER_STOPPED: ("broker",),
    kinds.REPLICA_CORRUPT: _DAMAGED,
    kinds.SCRUB_CORRUPT: _DAMAGED,
    kinds.SCRUB_UNREADABLE: _UNREADABLE,
    kinds.SCRUB_OVERDUE: _BLIND,
    kinds.LAGGING: ("broker",),
    kinds.BLIND: _BLIND,
    kinds.LOG_DIR_UNWATCHED: _BLIND,
    kinds.LIMITS_ASSUMED: _BLIND,
}
"""The labels by which an alert and a problem of each kind are about the same thing, besides the severity."""

_OF_KIND = {
    kinds.GROUP_HELD: {"waits": "records"},
    kinds.GROUP_PENDING: {"waits": "commits"},
    kinds.LOG_UNREADABLE: {"found_by": "tail", "log_dir": ""},
    kinds.SCRUB_UNREADABLE: {"found_by": "scrub"},
    kinds.REPLICA_CORRUPT: {"found_by": "tail"},
    kinds.SCRUB_CORRUPT: {"found_by": "scrub"},
}
"""What an alert's labels tell of a kind, where it reports several."""

_REASON = re.compile(r"\((\w+)\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An alert that fires in a world while the judge finds no such problem (``fires``), or the other way round."""

    seed: int
    alert: str
    fires: bool
    subject: Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """``compared``: pairs of a world and an alert. ``agreed``: of each kind, how many subjects its alert and the judge name alike."""

    compared: int
    agreed: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    def __add__(self, other: "Comparison") -> "Comparison":
        """Both together."""
        return Comparison(
            compared=self.compared + other.compared,
            agreed=self.agreed + other.agreed,
            differences=self.differences + other.differences,
        )


def compare(worlds: Sequence[World], directory: Path) -> Comparison:
    """Every alert that has a kind, in every world."""
    subjects = {kind.alert: (*labels, "severity") for kind, labels in SUBJECTS.items()}
    fires = firing(worlds, subjects, directory)
    comparison = Comparison(compared=len(worlds) * len(subjects))
    for alert in subjects:
        of_alert = {kind.name: kind for kind in KINDS if kind.alert == alert}
        found = {
            (number, _subject(of_alert[problem.kind], problem))
            for number, each in enumerate(worlds)
            for problem in each.problems
            if problem.kind in of_alert and _is_alerted(of_alert[problem.kind], problem)
        }
        for number, subject in found & fires[alert]:
            comparison.agreed.update(_agreed(worlds[number].problems, of_alert, subject))
        for number, subject in sorted(found ^ fires[alert], key=lambda each: (each[0], sorted(each[1]))):
            alone = (number, subject) in fires[alert]
            explained = _is_explained if alone else _is_reported_elsewhere
            if not explained(alert, subject, worlds[number].problems):
                comparison.differences.append(Difference(seed=worlds[number].seed, alert=alert, fires=alone, subject=subject))
    return comparison


def _is_alerted(kind: ProblemKind, problem: Problem) -> bool:
    """A problem of another severity than its kind may have is for whoever looks."""
    return problem.severity in (kind.severity, kind.else_severity)


def _agreed(problems: Sequence[Problem], of_alert: Mapping[str, ProblemKind], subject: Labels) -> set[str]:
    """The kinds of the problems that are this subject's."""
    return {each.kind for each in problems if each.kind in of_alert and _subject(of_alert[each.kind], each) == subject}


def _subject(kind: ProblemKind, problem: Problem) -> Labels:
    labels = {name: _OF_KIND.get(kind, {}).get(name) or _label(name, problem) for name in (*SUBJECTS[kind], "severity")}
    return frozenset((name, value) for name, value in labels.items() if value)


def _label(name: str, problem: Problem) -> str:
    if name == "reason":
        found = _REASON.search(problem.summary)
        return found[1] if found else ""
    value = getattr(problem, name, "")
    return "" if value == -1 else str(value)


def _is_explained(alert: str, subject: Labels, problems: Sequence[Problem]) -> bool:
    """Whether a worse problem says the same, so that one problem is shown while two alerts fire."""
    topic = dict(subject).get("topic")
    if alert == kinds.STALLED.alert:
        return any(
            each.kind == kinds.OVERDUE.name or (each.kind in (kinds.HANGING.name, kinds.STUCK.name) and each.topic == topic)
            for each in problems
        )
    if alert == kinds.LAGGING.alert:  # that an agent reads its disks for ten minutes is nothing that one moment shows
        return dict(subject)["severity"] == WARNING
    if alert == kinds.BLIND.alert:
        return dict(subject)["reason"] == "metadata_unreadable" and any(each.kind == kinds.METADATA_UNREADABLE.name for each in problems)
    return False


def _is_reported_elsewhere(alert: str, subject: Labels, problems: Sequence[Problem]) -> bool:
    """Whether each transaction that is stuck in the offsets is the consequence of what is stuck in another topic, whose alert tells it."""
    if alert != kinds.STUCK.alert or dict(subject)["topic"] != OFFSETS_TOPIC:
        return False
    elsewhere = {each.id for each in problems if each.kind == kinds.STUCK.name and each.topic != OFFSETS_TOPIC}
    return all(each.because in elsewhere for each in problems if each.kind == kinds.STUCK.name and each.topic == OFFSETS_TOPIC)
