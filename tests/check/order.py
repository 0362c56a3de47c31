"""Which modules of tests begin first, in a run of several processes."""

LONGEST = (
    "operations/test_day",
    "broker/test_kills",
    "broker/test_transactions",
    "broker/test_public_streams",
    "cluster/test_cluster",
    "broker/test_groups_replicated",
    "broker/test_monitoring",
    "faults/test_kill",
)
"""They would be a tail of minutes alone if they did not."""
