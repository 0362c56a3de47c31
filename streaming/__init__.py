"""segtail: a Spark Structured Streaming tail of Kafka's active log segments."""

__version__ = "0.1.0"
