"""Raises the limit on open files: the agent holds one for each log, so it takes as many as the system allows."""

import logging
import resource

log = logging.getLogger(__name__)

WANTED = 1 << 20
"""More than any broker has logs. A limit of "infinity" cannot be set on every system."""

FEW = 16_384


def raise_limit() -> int:
    """Raise the soft limit on open files to the hard one and return the new limit. Logs if a large broker may need more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    if soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    if limit < FEW:
        log.warning(
            "few files may be open: raise LimitNOFILE (ulimit -Hn) above the number of partitions on this host", extra={"limit": limit}
        )
    return limit
