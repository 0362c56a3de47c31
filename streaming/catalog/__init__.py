"""What is decided of topics, partitions and logs: nothing counts it, the last value wins. Agents tell it, pages join it with the table."""
