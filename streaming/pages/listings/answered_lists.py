"""The lists that have a path of their own, by their names: what answers, page, terminal and documents go through."""

from streaming.pages.listings.group_list import GROUPS
from streaming.pages.listings.partition_list import BROKERS, PARTITIONS, RETENTION, TOPICS
from streaming.pages.listings.problem_list import EVENTS, PROBLEMS
from streaming.pages.listings.transaction_list import TRANSACTIONS

LISTS = {each.name: each for each in (PROBLEMS, EVENTS, PARTITIONS, TRANSACTIONS, RETENTION, TOPICS, BROKERS, GROUPS)}
