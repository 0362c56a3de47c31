"""Shows the content of Kafka's files as rows for people and programs: tables from values, text from tables. No Spark."""
