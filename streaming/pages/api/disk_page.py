"""The answer about disks to a query of `DISK_PATH`, whoever knows them: a job, or a reading of log dirs."""

from streaming.broker.protocol.disk_json import BY, DiskAnswer
from streaming.cluster.usage.disk_answer import DiskContents, answer_of
from streaming.errors import UsageError
from streaming.pages.api.paging import TOPIC, filter_of, limit_of, offset_of, parameters_of, topics_of


def disk_page(disks: DiskContents, query: str, largest: int) -> DiskAnswer:
    """The log dirs, with the rows that a query asks for.

    Raises:
        UsageError: a parameter is not understood; the sentence names it.
    """
    given = parameters_of(query, ("by", TOPIC, "filter", "offset", "limit"))
    by, topics = given.get("by", BY[0]), topics_of(query)
    if by not in BY:
        raise UsageError(f"by is one of {', '.join(BY)}")
    if topics and by == "kind":
        raise UsageError("by kind there are no rows of a topic: which kinds of files a topic has is not known")
    limit = limit_of(given, largest=largest)
    return answer_of(disks, by, limit, offset=offset_of(given), topics=topics, text=filter_of(given))
