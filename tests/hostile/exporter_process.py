"""An exporter in a process of its own, over a table that stands still: `python -m tests.hostile.exporter_process LOGS [FILE]`.

It prints its URL, and ends with its standard input.
"""

import sys
from pathlib import Path

from streaming.cluster.view.observer import AgentStatus
from streaming.common import logs
from streaming.pages.site.exporter import Exporter
from tests.view.rows import log, new_observer, new_table, recalled, states


def main() -> None:
    logs.configure("info", "text")
    table = new_table(*(log("a" * 249, number) for number in range(int(sys.argv[1]))))
    table.recalls(1)
    table.set_agents([])
    table.apply(states(recalled(0)))
    observer = new_observer()
    observer.know([AgentStatus(name="a1", up=True)])  # it is ready
    web_config = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    exporter = Exporter("127.0.0.1", 0, table=table, observer=observer, clock=lambda: 1.7e9, healthy=lambda: True, web_config=web_config)
    exporter.start()
    print(exporter.url, flush=True)  # noqa: T201 - for whoever started it
    sys.stdin.read()
    exporter.close()


if __name__ == "__main__":
    main()
