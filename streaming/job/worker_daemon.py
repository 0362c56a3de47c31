"""Spark's Python daemon, as PySpark's own, but for what its workers import: that is there before they are forked, once for all of them.

PySpark imports after the fork, because libraries start threads: by `ENVIRON` these start none. Spark is told of it by
``spark.python.daemon.module``, and starts ``python -m MODULE pyspark.worker`` for the workers of tasks.
"""

import gc
import importlib

from pyspark import daemon

ENVIRON = {
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # of an allocator that pyarrow brings along, whether or not it is used
    "OPENBLAS_NUM_THREADS": "1",  # numpy starts threads for linear algebra, of which there is none here
    # each thread that allocates would have an arena of its own, whose memory no other thread can use
    "MALLOC_ARENA_MAX": "2",
}
"""What its environment must hold from the start, and the JVM's may."""

SHARED = ("pyspark.worker", "streaming.query.processor", "streaming.source.stream")
"""What tasks import."""


def load() -> None:
    """Import what workers share; no collection of garbage looks at it, before the fork or after."""
    for module in SHARED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    load()
    daemon.manager()
