"""What Kafka writes: bytes in, values out. No files, no clock, no Spark, no network."""
