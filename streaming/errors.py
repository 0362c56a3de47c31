"""All errors that segtail raises on purpose.

A message names the file, option or field, and what to do. The command line prints it without a traceback and exits with ``exit_status``.
"""

MOST_QUOTED = 100
"""How many characters of content a message shows."""


class SegtailError(Exception):
    """The base class of every error that a user may see."""

    exit_status = 1


class UsageError(SegtailError):
    """A request of the user is not possible: a bad option, a directory that is no log dir, a port in use."""

    exit_status = 2


class NotYetError(UsageError):
    """Whoever was asked answers, and does not know this yet. Another attempt may succeed."""


class MissingError(UsageError):
    """What is asked for by its name is not there."""


class SettingsError(UsageError):
    """An option is unknown or its value is not valid. Names the option and its source."""


class LogDirError(UsageError):
    """A log dir does not exist, cannot be read, has no ``meta.properties``, or belongs to another cluster."""


class DescriptorsError(LogDirError):
    """No descriptor was free to read a log dir: nothing is known of it."""


class CheckpointError(UsageError):
    """The checkpoint belongs to another cluster or job, or is in use."""


class QueryCheckpointError(SegtailError):
    """A checkpoint of another streaming query cannot be read. Names it, and the file in it."""


class JavaError(UsageError):
    """There is no Java, or it is too old."""


class FormatError(SegtailError):
    """Bytes that do not have Kafka's format.

    Args:
        what: the problem, in words.
        position: byte position in the file, or None if there is none.
    """

    def __init__(self, what: str, position: int | None = None) -> None:
        super().__init__(what if position is None else f"{what} at position {position}")
        self.what = what
        self.position = position


class TooLargeError(FormatError):
    """Content that is larger than this program opens. It need not be damaged."""


class FencedError(SegtailError):
    """Another thread has replaced this thread of the agent, so this one may publish nothing more."""


class IncompleteError(SegtailError):
    """Everything readable was processed, but something could not be read. Names it."""


class AgentError(SegtailError):
    """An agent could not be reached or refused to answer.

    Args:
        what: the problem, in words, with the agent's address.
        reason: one word for it, for metrics: see `streaming.broker.protocol.agent_calls`.
    """

    def __init__(self, what: str, reason: str = "failed") -> None:
        super().__init__(what)
        self.reason = reason


class GoneError(AgentError):
    """What is asked for was deleted or replaced since it was listed; ``reason`` is "gone"."""

    def __init__(self, what: str) -> None:
        super().__init__(what, "gone")


class SameAgentError(AgentError):
    """An address is another one of an agent that takes part already: nothing of it is missing."""


class VersionError(AgentError):
    """The versions of job and agent do not work together. Another attempt changes nothing; ``reason`` is "protocol"."""

    def __init__(self, what: str) -> None:
        super().__init__(what, "protocol")


def quoted(content: object) -> str:
    """Content for a message: escaped, and cut."""
    text = repr(content[: MOST_QUOTED + 1] if isinstance(content, str | bytes) else content)
    return text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}..."
