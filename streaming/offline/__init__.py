"""A single look at log dirs, of one broker or several: the same events, rules, table and view as a job's, in one process without Spark."""
