"""Spark's data source: offsets, admission, planning, reading."""
