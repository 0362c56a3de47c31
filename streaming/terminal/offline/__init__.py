"""Reads the log dirs of one or several brokers once, with the events, rules, table and view of a job, in one process without Spark."""
