"""Parsers for Kafka's formats: bytes in, values out. No files, no clock, no Spark, no network."""
