"""Makes recordings anew from a live Kafka: `python -m tests.recorded [WORLD ...]`, all of them where none is named."""

import tempfile
import time
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import click

from tests.broker.install import UnavailableError, class_path
from tests.recorded.archive import packing
from tests.recorded.making import Making
from tests.recorded.recordings import DATA, WORLDS, archive, describe, module
from tests.recorded.script import digests


@click.command()
@click.argument("worlds", nargs=-1, metavar="[WORLD]...")
def record(worlds: tuple[str, ...]) -> None:
    """Make these worlds on a live Kafka, or all, and keep them in tests/data/recorded."""
    unknown = sorted({*worlds} - {*WORLDS})
    if unknown:
        raise click.UsageError(f"there is no world {', '.join(unknown)}; there are {', '.join(WORLDS)}")
    DATA.mkdir(exist_ok=True)
    for world, versions in WORLDS.items():
        for version in versions if not worlds or world in worlds else ():
            _record(world, version, DATA)
    size = sum(path.stat().st_size for path in DATA.glob("*.tar.zst"))
    click.echo(f"All recordings together take {size / 1e6:.1f} MB. Now run tests/recorded, and commit tests/data/recorded.")


def _record(world: str, version: str, data: Path) -> None:
    click.echo(f"{world}: starts Kafka {version}, whose jars are fetched if they are not there yet, and runs {module(world)}")
    started = time.monotonic()
    packed, made_by = archive(world, version, data), digests(module(world))
    recorded = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        class_path(version)
        with tempfile.TemporaryDirectory(prefix=f"record-{world}-") as scratch, packing(packed) as packer:
            making = Making(version=version, directory=Path(scratch), packer=packer)
            import_module(module(world)).make(making)
            making.finish()
    except UnavailableError as error:
        raise click.ClickException(f"{world} cannot be recorded: {error}") from error
    describe(world, version, made_by=made_by, recorded=recorded, asked=making.asked, data=data)
    click.echo(f"{world}: {packed.name}, {packed.stat().st_size / 1e3:.0f} kB, after {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    record()
