"""Streaming queries of others, as their checkpoints show them: Structured Streaming commits nothing to Kafka."""
