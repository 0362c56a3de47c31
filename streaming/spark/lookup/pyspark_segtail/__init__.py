"""Makes ``format("segtail")`` known to PySpark: no import and no ``register()``.

PySpark looks for data sources in the top-level modules whose names begin with ``pyspark_``. So an install has this package beside
``streaming``, and a checkout has this folder on its path. Every Spark session of this Python imports it, whatever it reads: it imports
little, and where it cannot import even that, it hinders no session.
"""

import logging

try:
    from streaming.spark.source.datasource import SegtailDataSource as DefaultSource
except ImportError as error:  # such as another distribution whose package is called "streaming"
    logging.getLogger(__name__).warning('format("segtail") cannot be used here: %s', error)
else:
    __all__ = ["DefaultSource"]
