"""The rules that give the numbers their meaning. Rows in, rows out: no Spark, no files, no clock."""
