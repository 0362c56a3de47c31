"""Two segtails that watch one cluster count once: of what both export under one `job` label a query takes one."""

import re

_VECTOR = re.compile(
    r"(?P<function>\b(?:rate|increase|deriv|last_over_time)\()?"
    r"\bsegtail_(?!query_|scrape_|series_|build_|start_)\w+\{[^}]*\}(?:\[[^\]]*\])?(?: @ end\(\))?(?(function)\))"
)
"""What a cluster's metric is read by. The families left out are of one process, and differ between the two."""

_IS_ONE = re.compile(r"(?:\b(?:max|min)(?:\s+(?:by|without)\s+\([^)]*\))?\s*\(|\b(?:and|unless)\s+on\s+\([^)]*\)\s+)$")
"""What stands before a vector of which it does not matter how many there are."""


def one_of_a_pair(query: str) -> str:
    """The query with the larger value of a pair for each of its vectors, as the alerts have it."""
    return _VECTOR.sub(lambda found: _one(query, found), query)


def _one(query: str, found: re.Match[str]) -> str:
    before = _IS_ONE.search(query[: found.start()])
    alone = before and (not before[0].endswith("(") or query[found.end() :].lstrip().startswith(")"))
    return found[0] if alone else f"max without (instance, pod) ({found[0]})"
