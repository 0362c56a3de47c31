"""The refusals of an HTTP server, for metrics."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCounts:
    """``cuts``: connections that were cut before their end; ``refusals``: requests that were refused because there was too much to do;
    ``failures``: changes of the web config file that could not be used.
    """

    cuts: int
    refusals: int
    failures: int
