"""Writes genuine Kafka log dirs, for the demo and for tests. It is in the wheel because `segtail demo` needs no broker by it."""
