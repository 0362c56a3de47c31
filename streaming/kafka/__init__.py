"""What Kafka writes: formats, batches as columns, the logs of group coordinators. Bytes in, values out."""
