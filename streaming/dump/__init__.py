"""What stands in Kafka's files, as rows for people and programs: tables out of values, text out of tables. No Spark."""
