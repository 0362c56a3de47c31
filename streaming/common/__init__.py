"""What all parts share: options, rows, small tools that know neither Kafka nor Spark."""
