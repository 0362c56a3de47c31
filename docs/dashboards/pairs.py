"""Two segtails that watch one cluster count once: of what both export under one `job` label a query takes one."""

import re

_VECTOR = re.compile(
    r"(?P<function>\b(?:rate|increase|deriv|last_over_time)\()?"
    r"\bsegtail_(?!query_|scrape_|series_|build_|start_)\w+\{[^}]*\}(?:\[[^\]]*\])?(?: @ end\(\))?(?(function)\))"
)
"""What a cluster's metric is read by. The families left out are of one process, and differ between the two."""

_IS_ONE = re.compile(r"(?:\b(?:max|min)(?:\s+(?:by|without)\s+\([^)]*\))?\s*\(|\b(?:and|unless)\s+on\s+\([^)]*\)\s+)$")
"""What stands before a vector of which it does not matter how many there are."""


OF_A_TARGET = "instance, pod, namespace, service, container, endpoint"
"""Labels that tell one segtail from another: Prometheus's own, and those that its operator gives targets of several namespaces."""

_JOIN = re.compile(r"\bon \((?P<key>[^)]*)\)\s+group_left \([^)]*\)\s+(?P<info>max by \([^)]*\)\s+\([^()]*\))")
"""A join with an info series, on whose labels a pair may differ for a moment: then a match would fail, and all of its table."""


def one_of_a_pair(query: str) -> str:
    """The query with the larger value of a pair for each of its vectors, and one info series for each key of a join."""
    joined = _JOIN.sub(lambda found: found[0].replace(found["info"], f"topk by ({found['key']}) (1, {found['info']})"), query)
    return _VECTOR.sub(lambda found: _one(joined, found), joined)


def _one(query: str, found: re.Match[str]) -> str:
    before = _IS_ONE.search(query[: found.start()])
    alone = before and (not before[0].endswith("(") or query[found.end() :].lstrip().startswith(")"))
    return found[0] if alone else f"max without ({OF_A_TARGET}) ({found[0]})"
