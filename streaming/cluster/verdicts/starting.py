"""What a job that starts is at, in a sentence: one neutral state, until everything that was on the disks is counted."""

from streaming.cluster.view.start_progress import StartProgress, StartStep
from streaming.common.formatting import format_duration, format_size

_STEPS = {
    StartStep.AGENTS: "Starting: no agent has answered yet",
    StartStep.SPARK: "Starting Spark, which counts what is on the disks",
    StartStep.READING: "Reading the disks",
    StartStep.COUNTING: "Counting what was on the disks",
}


def start_sentence(start: StartProgress) -> str:
    """The first sentence of a job that starts, without a period: what it does, how far that is, and for how long it will take."""
    return f"{_STEPS[start.step]}{_how_far(start)}"


def _how_far(start: StartProgress) -> str:
    done, whole = start.done_bytes, start.all_bytes
    if whole <= 0:
        return f": {format_size(done)} so far" if done > 0 else ""
    if done < 0:
        return f": {format_size(whole)} are read"
    left = f", {format_duration(max(1.0, start.left_s))} left" if start.left_s > 0 else ""
    share = f"{100 * done // whole} %, " if done else ""  # while nothing is done, more is still found
    return f": {share}{format_size(done)} of {format_size(whole)}{left}"
