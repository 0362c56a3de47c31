"""What a running job costs, from /proc: CPU and memory of the driver, the JVM, its Python workers and the agent."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
PARTS = ("driver", "jvm", "workers", "agent")


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds so far, resident bytes and bytes written to disks so far, by part of the job.

    Of a page that several processes share each has its part. What ended processes wrote is not counted.
    """

    cpu_seconds: dict[str, float]
    resident_bytes: dict[str, int]
    written_bytes: dict[str, int]


@dataclass(frozen=True, slots=True)
class Held:
    """What a process of a job's holds in memory. Of a page that several processes share each has its part."""

    name: str
    proportional_bytes: int


@dataclass(frozen=True, slots=True)
class Holdings:
    """What one process holds: memory and open files."""

    proportional_bytes: int
    descriptors: int


def holdings(process: int) -> Holdings:
    """Of the process with this id."""
    return Holdings(_proportional_bytes(process), len(os.listdir(f"/proc/{process}/fd")))


def held(driver: int) -> list[Held]:
    """All processes of the job whose driver has this process id."""
    found = list[Held]()
    for process, part in _processes(driver):
        with suppress(FileNotFoundError, ProcessLookupError):  # ended meanwhile
            found.append(Held(_name(process, part), _proportional_bytes(process)))
    return found


def _name(process: int, part: str) -> str:
    """A Python worker's is its module's; the daemon that forks the workers of a kind is their parent."""
    words = Path(f"/proc/{process}/cmdline").read_text().split("\0")
    if part != "workers" or "-m" not in words:
        return part
    *_, kind = [word for word in words if word]
    forked = Path(f"/proc/{_stat(process)[1]}/cmdline").read_text().split("\0") == words
    return f"worker: {kind}" if forked or "daemon" not in words[words.index("-m") + 1] else f"daemon: {kind}"


def cpu_seconds(processes: Iterable[int]) -> float:
    """Of these processes so far, with their children that have ended."""
    return sum(sum(map(int, _stat(process)[11:15])) for process in processes) / _TICKS


class Meter:
    """CPU of a job until its end. Who ends between two looks keeps what it had at the first."""

    def __init__(self, driver: int) -> None:
        self._driver = driver
        self._spent: dict[int, float] = {}

    def check(self) -> float:
        """Look at all its processes. Returns the CPU seconds of them so far, those that have ended among them."""
        for process, _ in _processes(self._driver):
            with suppress(FileNotFoundError, ProcessLookupError):
                self._spent[process] = sum(map(int, _stat(process)[11:13])) / _TICKS
        return sum(self._spent.values())


def usage(driver: int) -> Usage:
    """The job whose driver has this process id. The CPU of children that have ended counts for who waited for them."""
    cpu = dict.fromkeys(PARTS, 0.0)
    resident = dict.fromkeys(PARTS, 0)
    written = dict.fromkeys(PARTS, 0)
    for process, part in _processes(driver):
        try:
            stat = _stat(process)
            memory, wrote = _proportional_bytes(process), _written_bytes(process)
        except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
            continue
        own, ended = sum(map(int, stat[11:13])), sum(map(int, stat[13:15]))
        cpu[part] += own / _TICKS
        cpu["workers" if part == "jvm" else part] += ended / _TICKS
        resident[part] += memory
        written[part] += wrote
    return Usage(cpu, resident, written)


def _stat(process: int) -> list[str]:
    """The fields of ``stat`` behind the command's name: state first."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def _proportional_bytes(process: int) -> int:
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0  # a zombie has none


def _written_bytes(process: int) -> int:
    fields = dict(line.split(": ") for line in Path(f"/proc/{process}/io").read_text().splitlines())
    return int(fields["write_bytes"]) - int(fields["cancelled_write_bytes"])


def _processes(driver: int) -> Iterator[tuple[int, str]]:
    """All processes of the job whose driver has this process id, and which part of it each is."""
    children, waiting = _children(), [(driver, "driver")]
    while waiting:
        process, part = waiting.pop()
        yield process, part
        waiting += [(child, _part(child, part)) for child in children.get(process, ())]


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                found.setdefault(int(_stat(int(entry))[1]), []).append(int(entry))
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def _part(process: int, parent: str) -> str:
    if parent != "driver":
        return "workers" if parent == "jvm" else parent
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return parent
    return "agent" if b"agent" in words else "jvm" if words[0].endswith(b"java") else parent
