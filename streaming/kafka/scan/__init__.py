"""The scan: finds, checks and sums many batches at once, as numpy columns. It reads by `streaming.kafka.formats`, and knows no files."""
