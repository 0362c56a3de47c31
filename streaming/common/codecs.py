"""Kafka's compression codecs by their ids."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""Names of the codec ids 0 to 4 (attributes bits 0-2, `CompressionType`)."""
