"""The one tree of errors that segtail raises on purpose.

A message names the file, option or field and says what to do; the command line prints it without a traceback and exits with
``exit_status``.
"""


class SegtailError(Exception):
    """Root of every error that a user may see."""

    exit_status = 1


class UsageError(SegtailError):
    """What the user asked for cannot be done as asked: a bad option, a log dir that is none, a port in use."""

    exit_status = 2


class SettingsError(UsageError):
    """An option is unknown or its value is not valid. Names the option and where it came from."""


class LogDirError(UsageError):
    """A log dir does not exist, cannot be read, has no ``meta.properties``, or belongs to another cluster."""


class CheckpointError(UsageError):
    """The checkpoint belongs to another cluster or job, or is in use."""


class JavaError(UsageError):
    """No Java, or one that is too old."""


class FormatError(SegtailError):
    """Bytes that are not what Kafka writes.

    Args:
        what: what is wrong, in words.
        position: byte position in the file, or None where there is none.
    """

    def __init__(self, what: str, position: int | None = None) -> None:
        super().__init__(what if position is None else f"{what} at position {position}")
        self.what = what
        self.position = position


class JournalError(SegtailError):
    """The journal is damaged, of another version or of another cluster."""


class JournalBusyError(JournalError):
    """Another agent holds the journal."""


class FencedError(SegtailError):
    """A thread of the agent was replaced by another one and may not write into the journal any more."""


class IncompleteError(SegtailError):
    """All that could be read was processed, and something could not be read. Names it."""


class AgentError(SegtailError):
    """An agent could not be reached or refused to answer.

    Args:
        what: what happened, in words, with the agent's address.
        reason: one word for it, for metrics: see `streaming.agent.trouble`.
    """

    def __init__(self, what: str, reason: str = "failed") -> None:
        super().__init__(what)
        self.reason = reason


class VersionError(AgentError):
    """Job and agent are of versions that do not understand each other. Asking again changes nothing; ``reason`` is "protocol"."""

    def __init__(self, what: str) -> None:
        super().__init__(what, "protocol")
