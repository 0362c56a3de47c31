"""The states of a log's tail and every transition between them: what is not in the table does not happen.

A tail answers four questions, and is in one state for each of them. Each cause belongs to one question. `streaming.broker.watcher.tail`
holds the states and is the only module that changes them; docs/internals/watcher.md has the same table in prose.
"""

from enum import StrEnum


class TailState(StrEnum):
    """One answer to one of the four questions. A tail begins as watched or remembered, available, reading, and in backlog."""

    # where is its directory?
    REMEMBERED = "remembered"  # only the cursor of an earlier process is known: the directory could not be read yet
    WATCHED = "watched"  # the cursor is somewhere in the files of this directory
    LEAVING = "leaving"  # the directory was renamed or removed: what is left of it is read
    GONE = "gone"  # it is not watched any more, or another tail has taken its place

    # is its log dir available?
    AVAILABLE = "available"
    AWAY = "away"  # its log dir is unavailable: no call into it may be made

    # what stands after its cursor?
    READING = "reading"  # as far as is known, there are batches after the cursor
    WAITING = "waiting"  # the leader of the leader epoch after the cursor is not known yet
    SUSPECT = "suspect"  # the bytes after the cursor are no batch; they may be one in a moment
    HELD = "held"  # by its cursor, something else has to be published before the log is read on
    STOPPED = "stopped"  # the log is not read on; the cursor contains the reason

    # how is it read?
    BACKLOG = "backlog"  # there is, or was, more to read than what is read at once
    LIVE = "live"  # its end was reached, and it grows while it is watched


class Cause(StrEnum):
    """The cause of a step from one state to another."""

    DIRECTORY_LEFT = "directory left"  # it was renamed to `-delete` or `-stray`, or is not listed any more
    DIRECTORY_BACK = "directory back"  # it is listed under its own name again
    LET_GO = "let go"  # nothing more can be read of it, or another tail takes its place

    LOG_DIR_LOST = "log dir lost"
    LOG_DIR_BACK = "log dir back"

    LEADER_UNKNOWN = "leader unknown"
    LEADER_KNOWN = "leader known"  # the metadata names it, or it was waited for long enough
    NO_BATCH = "no batch"
    SOUND = "sound"  # a batch is there after all, or the log ends there
    FILE_CLOSED = "file closed"  # what was seen after the cursor has to be seen again
    HOLD = "hold"
    RELEASE = "release"
    STOP = "stop"
    READ_ON = "read on"  # the flaw is gone, or the cursor is after it

    END_REACHED = "end reached"
    FAR_BEHIND = "far behind"  # it has grown faster than it is read
    SENT_BACK = "sent back"  # to a job's beginning, or because its directory has left


def step(state: TailState, cause: Cause) -> TailState:
    """The state that a cause leads to. Raises `TransitionError` if it leads nowhere."""
    after = TRANSITIONS.get((state, cause))
    if after is None:
        raise TransitionError(f"a log that is {state} has no transition for: {cause}")
    return after


TRANSITIONS = {
    (TailState.REMEMBERED, Cause.LET_GO): TailState.GONE,
    (TailState.WATCHED, Cause.DIRECTORY_LEFT): TailState.LEAVING,
    (TailState.WATCHED, Cause.LET_GO): TailState.GONE,
    (TailState.LEAVING, Cause.DIRECTORY_BACK): TailState.WATCHED,
    (TailState.LEAVING, Cause.LET_GO): TailState.GONE,
    # ---
    (TailState.AVAILABLE, Cause.LOG_DIR_LOST): TailState.AWAY,
    (TailState.AWAY, Cause.LOG_DIR_BACK): TailState.AVAILABLE,
    # ---
    (TailState.READING, Cause.LEADER_UNKNOWN): TailState.WAITING,
    (TailState.READING, Cause.NO_BATCH): TailState.SUSPECT,
    (TailState.READING, Cause.HOLD): TailState.HELD,
    (TailState.READING, Cause.STOP): TailState.STOPPED,
    (TailState.WAITING, Cause.LEADER_KNOWN): TailState.READING,
    (TailState.WAITING, Cause.NO_BATCH): TailState.SUSPECT,
    (TailState.WAITING, Cause.FILE_CLOSED): TailState.READING,
    (TailState.WAITING, Cause.HOLD): TailState.HELD,
    (TailState.WAITING, Cause.STOP): TailState.STOPPED,
    (TailState.SUSPECT, Cause.SOUND): TailState.READING,
    (TailState.SUSPECT, Cause.LEADER_UNKNOWN): TailState.WAITING,
    (TailState.SUSPECT, Cause.FILE_CLOSED): TailState.READING,
    (TailState.SUSPECT, Cause.HOLD): TailState.HELD,
    (TailState.SUSPECT, Cause.STOP): TailState.STOPPED,
    (TailState.HELD, Cause.RELEASE): TailState.READING,
    (TailState.HELD, Cause.STOP): TailState.STOPPED,
    (TailState.STOPPED, Cause.READ_ON): TailState.READING,
    # ---
    (TailState.BACKLOG, Cause.END_REACHED): TailState.LIVE,
    (TailState.LIVE, Cause.FAR_BEHIND): TailState.BACKLOG,
    (TailState.LIVE, Cause.SENT_BACK): TailState.BACKLOG,
}


class TransitionError(RuntimeError):
    """A cause that the table does not have for a state: an error of this program."""
