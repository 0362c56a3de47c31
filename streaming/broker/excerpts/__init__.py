"""Excerpts of segments for people's Spark sessions: found on disk, and scanned into batches, ranges and transactions."""
