"""Spark's part: the keyed state around the rules."""
