"""Writes genuine Kafka log dirs, for the demo and for tests."""
