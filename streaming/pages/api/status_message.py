"""What is wrong: the status, with the first two sentences of page and terminal, every agent, problems, and the numbers of now."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import streaming
from streaming.broker.protocol.group_json import NOBODYS
from streaming.broker.protocol.listing_json import LARGEST_LIMIT
from streaming.broker.protocol.status_json import SEVERITIES, AgentState, ClusterNumbers, JobStart, Problem, ProblemPage, Status
from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_partitions import GroupTotals
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.first_lines import freshness, not_current, start_sentence, verdict
from streaming.cluster.verdicts.incidents import count, roots
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.taillag import StartProgress
from streaming.common.arrays import Flags
from streaming.common.units import format_count
from streaming.errors import UsageError
from streaming.kafka.formats.names import METADATA_TOPIC
from streaming.pages.api.history import ShownNumbers
from streaming.pages.api.judged_look import JudgedLook
from streaming.pages.api.listed_groups import ListedGroups
from streaming.pages.api.paging import filter_of, limit_of, offset_of, parameters_of
from streaming.rules.transaction_verdicts import TransactionVerdict

MOST_AGENTS = 1000
"""The most agents of an answer: those that are down first."""


def status_of(judged: JudgedLook) -> Status:
    """The status of a look."""
    circumstances, every, start = judged.circumstances, judged.problems, judged.circumstances.start
    newest_ms = min(judged.newest_ms, judged.at_ms) if start is None else -1
    agents = sorted(circumstances.agents, key=lambda each: (each.up, each.name))
    return Status(
        at_ms=judged.at_ms,
        version=streaming.__version__,
        ready=start is None,
        start=None if start is None else _start(start),
        verdict=verdict(circumstances, every),
        freshness=freshness(circumstances, newest_ms),
        not_current=not_current(circumstances, newest_ms),
        severity=every[0].gravity if every else "",
        **count(every),
        newest_ms=newest_ms,
        agents=[_agent(circumstances, each) for each in agents[:MOST_AGENTS]],
        omitted_agents=max(len(agents) - MOST_AGENTS, 0),
        partitions=len(circumstances.view.logs.columns),
        logs=len(circumstances.view.observed.columns),
        started_ms=judged.started_ms,
        cluster_id=next((each.cluster_id for each in circumstances.agents if each.cluster_id), ""),
        redacted=circumstances.commands.redacted,
        doubts=list(judged.doubts),
        url=judged.url,
    )


def _start(start: StartProgress) -> JobStart:
    left_ms = -1 if start.left_s < 0 else round(start.left_s * 1000)
    return JobStart(step=start.step, what=start_sentence(start), done_bytes=start.done_bytes, all_bytes=start.all_bytes, left_ms=left_ms)


def _agent(circumstances: Circumstances, agent: AgentStatus) -> AgentState:
    size, seconds = circumstances.lags.get(agent.name, (None, -1.0))
    return AgentState(
        name=agent.name,
        up=agent.up,
        brokers=list(agent.brokers),
        behind_bytes=-1 if size is None else size,
        behind_ms=-1 if seconds < 0 else round(seconds * 1000),
        problems=[str(each) for each in agent.problems],
        explanation=agent.explanation,
    )


def problem_page(every: Sequence[Problem], query: str, at_ms: int, largest: int = LARGEST_LIMIT) -> ProblemPage:
    """The problems that a query string asks for.

    Raises:
        UsageError: a parameter is not understood; the sentence names it.
    """
    given = parameters_of(query, ("severity", "filter", "roots", "offset", "limit"))
    severity, wanted = given.get("severity", ""), filter_of(given).casefold()
    if severity and severity not in SEVERITIES:
        raise UsageError(f"severity is not one of {', '.join(SEVERITIES)}")
    if given.get("roots", "") not in ("", "true", "false"):
        raise UsageError("roots is not true or false")
    offset, counts, is_of_roots = offset_of(given), count(every), given.get("roots") == "true"
    rows = roots(every) if is_of_roots else every
    matched = [
        each
        for each in rows
        if (not severity or (each.gravity if is_of_roots else each.severity) == severity)
        and (not wanted or wanted in _text(each).casefold())
    ]
    return ProblemPage(
        at_ms=at_ms,
        total=len(rows),
        matched=len(matched),
        offset=offset,
        rows=matched[offset : offset + limit_of(given, largest=largest)],
        critical=counts["critical"],
        warning=counts["warning"],
        info=counts["info"],
    )


def _text(problem: Problem) -> str:
    """What a filter is looked for in."""
    place = f"{problem.topic}-{problem.partition}" if problem.partition >= 0 else problem.topic
    follows = (each.text for each in problem.consequences)
    return " ".join((problem.kind, problem.what, place, problem.group, problem.log_dir, problem.agent, problem.holds_back, *follows))


# --- the numbers of a good day, from a judged look: what each of them is about, and why it is not known where it is not.


def cluster_numbers(judged: JudgedLook) -> ClusterNumbers:
    """The message."""
    hour = judged.rates.hour_of_all()
    return ClusterNumbers(
        at_ms=judged.at_ms,
        bytes_rates=hour.bytes_rates,
        records_rates=hour.records_rates,
        out_of_sync_hour=hour.out_of_sync,
        lag_hour=list(judged.hours.lag),
        loss_left_hour=list(judged.hours.loss_left_ms),
        full_left_hour=list(judged.hours.full_left_ms),
        **_rates(judged),
        **_of_groups(judged),
        **_disks(judged),
        **_in_sync(judged),
        **_transactions(judged),
    )


def _rates(judged: JudgedLook) -> dict[str, Any]:
    """What is appended now: nothing is where no broker runs, whatever the mean of its logs is."""
    if why := _no_answer(judged):
        return {"rates_why": why}
    look, some = judged.look, judged.look.one_of_each
    idle = np.isin(np.array(look.brokers, np.int64)[some], list(judged.circumstances.idle))
    in_bytes, in_records = (np.where(idle, -1.0, rates(look)[some]) for rates in (judged.rates.bytes_rate, judged.rates.records_rate))
    known = in_bytes >= 0
    if not known.any():
        why = "no broker writes there" if idle.all() else "two looks at the logs show it, some seconds apart"
        return {"rates_why": why if len(some) else "no partition is watched yet"}
    return {"bytes_rate": float(in_bytes[known].sum()), "records_rate": _known_sum(in_records), "rates_missing": int((~known).sum())}


def _known_sum(values: NDArray[np.float64]) -> float:
    known = values >= 0
    return float(values[known].sum()) if known.any() else -1.0


def _of_groups(judged: JudgedLook) -> dict[str, Any]:
    """The worst lag and the next loss of groups that somebody uses."""
    if judged.groups is None:
        why = "nothing is known of consumer groups yet" if judged.unknown or not judged.ready else "no consumer groups are read"
        return {"lag_why": why, "loss_why": why}
    totals, used = judged.groups.totals, _used(judged.groups)
    lag, found = np.where(used, totals.lag, ABSENT), _next_loss(totals, used, _no_answer(judged))
    if (lag >= 0).any():
        found |= {"lag_records": int(lag.max()), "lag_group": totals.names[int(lag.argmax())]}
    else:
        found["lag_why"] = "no lag of a group in use is known" if used.any() else "no consumer group is in use"
    return found


def _no_answer(judged: JudgedLook) -> str:
    """Why nothing is known of now while no agent of a job answers, "" while one does: what was known last is not the whole."""
    around = judged.circumstances
    return "not known while no agent answers" if around.live and around.agents and not around.up else ""


def _next_loss(totals: GroupTotals, used: Flags, no_answer: str) -> dict[str, Any]:
    """The earliest of the groups in use; where no time is known, one that waits for a broker's start, first of those that lose by it."""
    snapshot = totals.snapshot
    at_start = np.isin(totals.number, snapshot.rows.group[snapshot.found.loss_at_start])
    for name, those in (("loss_ms", used), ("loss_start_of", used & at_start), ("loss_start_of", used)):
        values = totals.columns[name]
        some = np.flatnonzero(those & (values >= 0))
        if len(some):
            first = int(some[values[some].argmin()])
            assumed = bool(totals.columns["limits_assumed"][first] > 0)
            return {name: int(values[first]), "loss_group": totals.names[first], "loss_assumed": assumed}
    if no_answer:
        return {"loss_why": no_answer}
    others = int((~used & ((totals.columns["loss_ms"] >= 0) | (totals.columns["loss_start_of"] >= 0))).sum())
    and_others = f"; nobody misses what {format_count(others, 'other group')} will lose" if others else ""
    return {"loss_why": f"no group in use is known to lose anything{and_others}"}


def shown_numbers(judged: JudgedLook) -> ShownNumbers:
    """The numbers of the message that only a judged look shows."""
    groups, disks = _of_groups(judged), _disks(judged)
    return ShownNumbers(
        lag=groups.get("lag_records", ABSENT),
        loss_left_ms=_left(groups.get("loss_ms", ABSENT), judged.at_ms),
        full_left_ms=_left(disks.get("full_ms", ABSENT), judged.at_ms),
    )


def _left(at_ms: int, now_ms: int) -> int:
    return ABSENT if at_ms < 0 else max(0, at_ms - now_ms)


def _used(groups: ListedGroups) -> NDArray[np.bool_]:
    names = groups.totals.names
    return np.fromiter((groups.judged.usage[name].use not in NOBODYS for name in names), np.bool_, len(names))


def _disks(judged: JudgedLook) -> dict[str, Any]:
    circumstances = judged.circumstances
    if not circumstances.full:
        known = any(each.up for each in circumstances.log_dirs)
        found = "no log dir is known to fill up within a year" if known else "no agent has told of a log dir"
        return {"full_why": _no_answer(judged) or found}
    (broker, log_dir), at = min(circumstances.full.items(), key=lambda each: each[1])
    return {"full_ms": round(at * 1000), "full_broker": broker, "full_log_dir": log_dir}


def _in_sync(judged: JudgedLook) -> dict[str, Any]:
    """Of the metadata log no file shows who is in sync."""
    if why := _no_answer(judged):
        return {"sync_why": why}
    look = judged.look
    some = [item for item in look.one_of_each.tolist() if look.topics[item] != METADATA_TOPIC]
    missing = look.out_of_sync[some]
    known = missing >= 0
    if not known.any():
        return {"sync_why": "the metadata log does not show it yet" if some else "no partition is watched yet"}
    return {"out_of_sync": int(missing[known].sum()), "sync_missing": int((~known).sum())}


def _transactions(judged: JudgedLook) -> dict[str, Any]:
    look, some = judged.look, judged.look.one_of_each
    logs = look.view.logs
    counts, starts = logs["hanging_transactions"][some], logs["oldest_open_start_ms"][some]
    found: dict[str, Any] = {
        "hanging": int(counts[counts >= 0].sum()) if (counts >= 0).any() else -1,
        "unjudged": int((logs.open.verdict == TransactionVerdict.UNKNOWN).sum()),
    }
    if (starts >= 0).any():
        item = int(some[np.where(starts >= 0, starts, _FAR).argmin()])
        found |= {"oldest_ms": int(logs["oldest_open_start_ms"][item]), "oldest_topic": look.topics[item]}
        found["oldest_partition"] = int(look.partitions[item])
    return found


_FAR = np.iinfo(np.int64).max
