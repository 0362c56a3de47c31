"""What import-linter cannot say: what a command imports when it runs, who may import a part of a foreign package, what is pinned."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import streaming
from streaming.terminal.cli.app import COMMANDS
from tests.install.offline_commands import USES, WITH_EXTRA
from tests.tables import each_row

PACKAGE = Path(streaming.__file__).parent
ROOT = Path(__file__).resolve().parents[1]


def _room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[1 if len(parts) > 2 or parts[0] == "common" else 0].removesuffix(".py")


def _files(*parts: str) -> list[Path]:
    """The package's files that hold one of these texts. To find them first is quicker than to parse them all."""
    return [path for path in PACKAGE.rglob("*.py") if any(part in path.read_text(encoding="utf-8") for part in parts)]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["config"]])
def test_a_command_without_a_job_starts_without_spark(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from streaming.terminal.cli.app import segtail\n"
        "segtail.main(sys.argv[1:], standalone_mode=False)\n"
        "heavy = {'pyspark', 'py4j', 'pandas', 'pyarrow', 'numpy'} & {name.partition('.')[0] for name in sys.modules}\n"
        "sys.exit(f'imported {sorted(heavy)}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_command_is_tried_without_the_extra_or_needs_it() -> None:
    assert set(COMMANDS) == USES.keys() | WITH_EXTRA, "tests/install/offline_commands.py"


LOGS = ROOT / "tests" / "data" / "logs" / "transactions" / "pay-0"


@each_row(
    ("arguments", "heavy"),
    [
        (["--verify"], {"pyarrow", "pandas", "pydantic"}),
        (["--summary"], {"pyarrow", "pandas", "pydantic"}),
        (["--records", "--format", "json"], {"pyarrow", "pandas", "pydantic"}),
        (["--format", "csv"], {"pyarrow", "pandas", "pydantic"}),
        (["--format", "arrow"], {"pandas", "pydantic"}),
        (["--format", "parquet"], {"pydantic"}),
    ],  # a set has another order in each process
)
def test_a_dump_imports_no_spark_and_little_else(arguments: list[str], heavy: set[str]) -> None:
    """It is over before Spark, or even a large library, would be there."""
    code = (
        "import sys\n"
        "from streaming.terminal.cli.app import segtail\n"
        "status = segtail.main(sys.argv[1:], standalone_mode=False)\n"
        f"heavy = {heavy | {'pyspark', 'py4j', 'watchdog', 'rich'}!r} & {{name.partition('.')[0] for name in sys.modules}}\n"
        "sys.exit(f'imported {sorted(heavy)}' if heavy else status)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, "dump", str(LOGS), *arguments], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_nothing_is_taken_from_a_module_of_tests() -> None:
    """What two of them need has a module of its own. A test itself may be imported: one is run again in a copy of the code."""
    of_a_module = r"(from|import) tests\S*\.test_\w+\b(?! import test_)"
    taken = re.compile(rf"^ *({of_a_module}|from tests(\.(?!test_)\w+)* import .*\btest_)", re.MULTILINE)
    modules = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}
    assert [str(path.relative_to(ROOT)) for path, text in modules.items() if taken.search(text)] == []


def test_times_and_sizes_for_people_are_written_in_one_module() -> None:
    """Kafka's own files have times in another form, which the simulator writes."""
    by_hand = {"strftime", "isoformat", "filesize"}
    names = {
        _room(path)
        for path in _files(*by_hand)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in by_hand)
        or (isinstance(node, ast.ImportFrom) and by_hand & set((node.module or "").split(".")))
    }
    assert names == {"units", "simulator"}


@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-java.txt"])
def test_the_lock_pins_what_the_project_asks_for(lock: str) -> None:
    content = (ROOT / lock).read_text(encoding="utf-8")
    pins = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^ ]+) \\$", content, re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    if lock == "requirements.txt":
        asked = (
            project["project"]["dependencies"] + project["project"]["optional-dependencies"]["spark"] + project["dependency-groups"]["dev"]
        )
    else:
        asked = project["project"]["optional-dependencies"]["java"]
    requirements = [Requirement(line) for line in asked]
    pinned = [pins.get(canonicalize_name(each.name)) for each in requirements]
    assert [str(each) for each, pin in zip(requirements, pinned, strict=True) if pin is None or pin not in each.specifier] == []


_NAME = r"[a-z0-9]+(?:[-._][a-z0-9]+)*"
LOCK_LINE = re.compile(
    rf"""{_NAME}==(?:[0-9]+!)?[0-9][a-z0-9.+]*[ ]\\                    # a pin
    | [ ]{{4}}--hash=sha256:[0-9a-f]{{64}}(?:[ ]\\)?       # what it has to be
    | [ ]{{4}}\#[ ](?:via|(?:via|[ ])[ ](?:-r[ ]-|-c[ ]requirements\.txt|{_NAME}))  # who asks for it
    """,
    re.VERBOSE,
)


@each_row("lock", ["requirements.txt", "requirements-build.txt", "requirements-run.txt", "requirements-agent.txt", "requirements-java.txt"])
def test_the_lock_holds_pins_and_hashes_alone_so_it_names_no_place_to_get_them_from(lock: str) -> None:
    content = (ROOT / lock).read_text(encoding="utf-8")
    assert [line for line in content.splitlines() if not LOCK_LINE.fullmatch(line)] == []
    assert "//" not in content


@each_row(
    "line",
    [
        "--an-option somewhere",
        "--an-option=somewhere",
        "    --an-option somewhere",
        "name @ file:///a/b",
        "name==1.0",
        "name==1.0 --an-option somewhere \\",
        "name==1.0 ; marker \\",
        "    --hash=sha256:12 \\",
        "    --hash=md5:" + "0" * 64,
        "    --hash=sha256:" + "0" * 64 + " --an-option",
        "    # from https://host/name",
        "    # via -r other.txt",
        "-r other.txt",
        "./name",
        "",
    ],
)
def test_no_other_line_is_of_a_lock(line: str) -> None:
    assert not LOCK_LINE.fullmatch(line)


LOOSE = {
    "common/log_positions.py: encode": "JSON that Spark keeps and hands back",
    "spark/source/offsets.py: Offset": "JSON that Spark keeps and hands back",
}
"""What takes any values, or hands them on by their names alone; a type checker sees no mistake in them."""


def _is_loose(annotation: ast.expr | None) -> bool:
    return annotation is not None and any(f"{kind}[str, Any]" in ast.unparse(annotation) for kind in ("dict", "Mapping"))


def _loose(tree: ast.AST, *, public: bool = True) -> Iterator[str]:
    """Parameters that take anything, and what other modules may see that is a dict of anything."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments, rest = node.args, node.args.kwarg
            if rest is not None and rest.annotation is not None and ast.unparse(rest.annotation) == "Any":
                yield f"{node.name}(**{rest.arg})"
            if public and not node.name.startswith("_"):
                every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                yield from (f"{node.name}({each.arg})" for each in every if _is_loose(each.annotation))
                yield from [node.name] if _is_loose(node.returns) else []
            yield from _loose(node, public=False)
        elif isinstance(node, ast.ClassDef):
            yield from _loose(node, public=public and not node.name.startswith("_"))
        elif isinstance(node, ast.AnnAssign | ast.Assign) and public:
            names = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            types = node.annotation if isinstance(node, ast.AnnAssign) else node.value
            yield from (ast.unparse(name) for name in names if _is_loose(types) and not ast.unparse(name).startswith("_"))
        else:
            yield from _loose(node, public=public)


def test_what_rooms_hand_to_each_other_has_a_type() -> None:
    files = {path: ast.parse(path.read_text(encoding="utf-8")) for path in _files("Any")}
    assert {f"{path.relative_to(PACKAGE)}: {name}" for path, tree in files.items() for name in _loose(tree)} == set(LOOSE)


def test_only_one_module_spells_the_names_of_checkpoints() -> None:
    names = re.compile(r"""["'](?:[a-z-]+-checkpoint|bootstrap\.checkpoint)["']""")
    spelled = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if names.search(path.read_text(encoding="utf-8"))}
    # a type of file by its content has a name too, as Kafka calls the one, and options are no files
    assert spelled - {"broker/disk/kafka_files.py", "spark/job/job.py", "terminal/cli/group_source.py"} == {"kafka/formats/names.py"}


def _late(path: Path) -> Iterator[str]:
    """Loggers and constants of a module that stand below a definition of it that they do not need."""
    defined: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and defined:
            names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            if names & defined:
                defined |= names  # what needs it may stand below, too
            else:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}"


def test_loggers_and_constants_stand_above_what_is_defined() -> None:
    assert [late for path in PACKAGE.rglob("*.py") for late in _late(path)] == []


def test_kafka_s_layout_is_known_in_kafka_alone() -> None:
    """Everything that Kafka writes is big-endian: who reads such numbers elsewhere knows a position inside of Kafka's bytes."""
    jvm = "spark/job/jvm.py"  # the port of Py4J's gateway
    found = {
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in _files('"big"', '">')
        if path.relative_to(PACKAGE).parts[0] not in ("kafka", "simulator") and str(path.relative_to(PACKAGE)) != jvm
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and (node.value == "big" or re.fullmatch(r">[a-zA-Z0-9]+", node.value))
    }
    assert found == set()
