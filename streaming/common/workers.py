"""One-time work of a Python worker of Spark, so that its later tasks are cheap."""

import gc
from functools import cache


@cache
def freeze_imports() -> None:
    """Exclude everything imported so far from garbage collection, for the rest of this process.

    PySpark's daemon collects garbage after every task (``pyspark/daemon.py``), over all objects of all modules, 20 ms each time. Objects
    that are alive at the first call are never freed. So call it after a task has imported what it needs, and before it has read anything
    large.
    """
    gc.collect()
    gc.freeze()
