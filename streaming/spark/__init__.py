"""What runs in Spark: the data source, the query, and the job in the driver that keeps them alive."""
