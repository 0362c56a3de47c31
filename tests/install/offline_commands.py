"""The commands that need no extra, each with arguments for the log dirs that a broker left."""

from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data"
_BROKER = DATA / "log_dirs" / "overdue" / "n1"
PLACES = {"log_dirs": f"{_BROKER / 'd0'},{_BROKER / 'd1'}", "segments": str(DATA / "logs" / "transactions" / "pay-0")}
WITH_EXTRA = frozenset({"demo", "mcp", "run", "warm-up"})


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a command: ``{log_dirs}``, ``{segments}`` and ``{scratch}`` in its arguments are filled in, `prints` is in its output."""

    arguments: str
    prints: str
    statuses: tuple[int, ...] = (0,)

    def filled(self, scratch: Path | str, places: dict[str, str] = PLACES) -> list[str]:
        """The arguments, with these places and a folder to write into."""
        return self.arguments.format(scratch=scratch, **places).split()


USES = {
    "advise": Use("advise --log-dirs {log_dirs}", "in their last segments, as of Java's producer", (0, 3, 4)),
    "agent": Use("agent --log-dirs {log_dirs} --listen 127.0.0.1:0 --name n1 --child", "127.0.0.1:"),
    "changes": Use("changes --log-dirs {log_dirs}", "What admins did is known since", (3,)),
    "completion": Use("completion bash", "complete -o nosort -F _segtail_completion segtail"),
    "config": Use("config", "log_dirs:"),
    "count": Use("count --log-dirs {log_dirs}", "1,353 data records in 7 partitions"),
    "disk": Use("disk --log-dirs {log_dirs}", "replicas", statuses=(0, 3, 4)),
    "doctor": Use(  # whether a broker runs whose files have just been copied is not known
        "doctor --log-dirs {log_dirs} --checkpoint {scratch}/checkpoint --listen 127.0.0.1:0", "only Spark needs Java", statuses=(0, 3, 4)
    ),
    "dump": Use("dump {segments} --verify", "everything is whole, "),
    "export": Use("export alerts {scratch}/alerts", "files written to"),
    "groups": Use("groups --log-dirs {log_dirs}", "no consumer groups are known"),
    "page": Use("page --log-dirs {log_dirs} --listen 127.0.0.1:0 --child", "segtail: the page is at http://127.0.0.1:"),
    "restart-check": Use("restart-check --log-dirs {log_dirs}", "Whether broker 1 may be started now is not known", (3, 4)),
    "retention": Use("retention --log-dirs {log_dirs}", "7 partitions", (0, 3)),
    "runbook": Use("runbook GroupStopped", "## Mitigation"),
    "top": Use("top --log-dirs {log_dirs}", "verdict: ", (3, 4)),
    "topics": Use("topics --log-dirs {log_dirs}", "5 topics, 6 partitions, "),
    "transactions": Use("transactions --log-dirs {log_dirs}", "0 open, 0 hanging"),
    "why": Use("why --log-dirs {log_dirs} nobody", "there is no group nobody", (2,)),
}
"""Every command but those of the extra: a new one gets a line here (tests/test_architecture.py compares)."""

MOUNTED = {"log_dirs": "/kafka/log_dirs/overdue/n1/d0,/kafka/log_dirs/overdue/n1/d1", "segments": "/kafka/logs/transactions/pay-0"}
TRIED = {name: use for name, use in USES.items() if name != "agent"}
OFFLINE = "".join(f"s=0; segtail {' '.join(use.filled('/tmp', MOUNTED))} || s=$?; echo {name} $s\n" for name, use in TRIED.items())


def answers(out: str) -> None:
    """Every offline command has answered, and there was no Java that could have helped."""
    for name, use in TRIED.items():
        assert use.prints in out
        assert any(f"{name} {status}\n" in out for status in use.statuses), out
    assert "Traceback" not in out
