"""What the numbers mean. Rows in, rows out: no Spark, no files, no clock."""
