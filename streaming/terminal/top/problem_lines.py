"""A problem in detail."""

from streaming.broker.protocol.status_json import Problem
from streaming.common.formatting import format_name
from streaming.pages.listings.list_cells import Times, place
from streaming.terminal.top.labelled_text import DetailLine, all_labelled, command_lines, title


def problem_lines(problem: Problem, times: Times, width: int) -> list[DetailLine]:
    """Everything about a problem, with its command."""
    return [
        *title(problem.what, width),
        DetailLine(""),
        *all_labelled(
            (
                ("severity", problem.gravity),
                ("since", times.both(problem.since_ms) if problem.since_ms >= 0 else ""),
                ("due", _due(problem.deadline_ms, times)),
                ("holds back", problem.holds_back),
                *(("follows", text) for text in _following(problem)),
                ("partition", place(problem.topic, problem.partition) if problem.topic and problem.partition >= 0 else ""),
                ("topic", format_name(problem.topic) if problem.topic and problem.partition < 0 else ""),
                ("group", format_name(problem.group) if problem.group else ""),
                ("broker", str(problem.broker) if problem.broker >= 0 else ""),
                ("log dir", problem.log_dir),
                ("agent", problem.agent),
                ("runbook", f"segtail runbook {problem.runbook}" if problem.runbook else ""),
            ),
            width,
        ),
        DetailLine(""),
        *command_lines(problem.command, problem.no_command, width),
    ]


def _due(at_ms: int, times: Times) -> str:
    if at_ms < 0:
        return ""
    return times.both(at_ms) if at_ms > times.now_ms else times.deadline(at_ms)


def _following(problem: Problem) -> list[str]:
    """What follows from it, a text for each group or other thing."""
    more = [f"and {problem.more_consequences:,} more"] if problem.more_consequences else []
    return [*(f"{each.severity}: {each.text}" for each in problem.consequences), *more]


def problem_list(problems: list[Problem], times: Times, width: int) -> list[DetailLine]:
    """The incidents of one thing, each with its command."""
    lines: list[DetailLine] = []
    for each in (root for root in problems if not root.because):
        since = f", since {times.of(each.since_ms)}" if each.since_ms >= 0 else ""
        lines += title(f"{each.gravity}: {each.what}{since}", width)
        lines += all_labelled([("holds back", each.holds_back), *(("follows", text) for text in _following(each))], width)
        lines += command_lines(each.command, each.no_command, width)
    return lines
