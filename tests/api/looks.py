"""What a request of the API looks at, made of a table."""

from dataclasses import replace
from typing import Any

from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.verdicts.group_judge import judge_groups
from streaming.cluster.view.table import Table
from streaming.cluster.view.view import view
from streaming.pages.api.judged_look import JudgedLook
from streaming.pages.api.look import Look
from streaming.pages.api.state import State
from tests.group_snapshots import snapshot_of
from tests.view.rows import log, new_table
from tests.worlds.problems import NOW_MS, agent, well
from tests.worlds.problems import around as around_agents
from tests.worlds.transactions import MS


def state(table: Table) -> State:
    snapshot = table.snapshot(MS / 1000)
    shown = view(snapshot)
    judged = JudgedLook(look=Look(shown, snapshot), circumstances=Circumstances(view=shown, topics=snapshot.topic_names, now_ms=MS))
    return State(lambda: judged)


def judged(table: Table, at_ms: int = NOW_MS, **more: Any) -> JudgedLook:
    snapshot = table.snapshot(at_ms / 1000)
    look = Look(view(snapshot), snapshot)
    groups = judge_groups(snapshot_of(now_ms=at_ms), at_ms)
    of = around_agents(agent(well(appended_ms=at_ms)), table=table, groups=groups)
    return JudgedLook(look=look, circumstances=replace(of, view=look.view, now_ms=at_ms), **more)


def fine() -> Table:
    return new_table(log())
