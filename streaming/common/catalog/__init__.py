"""The catalog: decided values of topics, partitions and logs. They are not counted: the last value wins.

Agents send the catalog; a page joins it with the table.
"""
