"""The options of the data source."""

from pathlib import Path

import pytest

from streaming.errors import UsageError
from streaming.spark.client.address_lookup import NO_FILES, ClientFiles
from streaming.spark.source.job_options import parse_options
from tests.tables import each_row


def test_defaults() -> None:
    options = parse_options({"agents": "a:1"})
    assert (options.addresses(), options.address_file, options.consumer, options.start_from) == (("a:1",), None, "", "active")
    assert (options.files, options.cluster_id) == (NO_FILES, "")
    assert (options.shards, options.max_bytes, options.wait_ms) == (64, 2 << 30, 0)


def test_names_are_taken_in_any_case_and_addresses_with_spaces() -> None:
    options = parse_options({"AGENTS": " a:1, b:2 ,", "Max_Bytes": "7"})
    assert (options.addresses(), options.max_bytes) == (("a:1", "b:2"), 7)


def test_files_are_named_by_their_paths() -> None:
    given = {"agent_ca": "/tls/ca.pem", "agent_cert": "/tls/job.pem", "agent_key": "/tls/job.key", "agent_token_file": "/token"}
    files = parse_options({"agents": "https://a:1", **given}).files
    assert files == ClientFiles(ca=Path("/tls/ca.pem"), cert=Path("/tls/job.pem"), key=Path("/tls/job.key"), token_file=Path("/token"))


def test_behind_a_name_there_is_tls_where_a_ca_is_named() -> None:
    agents = {"agents": "dns:///localhost:8815,https://a:1"}
    assert "127.0.0.1:8815" in parse_options(agents).addresses()
    assert "https://127.0.0.1:8815/localhost" in parse_options({**agents, "agent_ca": "/ca.pem"}).addresses()


@each_row(
    ("name", "value"),
    [
        ("shards", "0"),
        ("shards", "-1"),
        ("shards", "many"),
        ("max_bytes", "1.5"),
        ("max_bytes", "\N{SUPERSCRIPT TWO}"),
        ("max_bytes", "0"),
        ("wait_ms", ""),
        ("start_from", "noon"),
        ("agnets", "a:1"),
        ("agents", "grpc://a:1"),
        ("agents", "dns://a:1"),
        ("agents", "http:///a:1"),
        ("agents", "http://a"),
        ("agents", "http://a:0"),
    ],
)
def test_an_option_that_is_not_right_is_named(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name):
        parse_options({"agents": "a:1", name: value})


@pytest.mark.parametrize("given", [{}, {"agents": " , "}])
def test_without_an_agent_it_says_what_is_missing(given: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="needs the option agents"):
        parse_options(given)


def test_an_address_file_is_read_at_every_look(tmp_path: Path) -> None:
    file = tmp_path / "address"
    options = parse_options({"agents": "a:1", "address_file": str(file)})
    assert options.addresses() == ("a:1",)
    file.write_text("")
    assert options.addresses() == ("a:1",)
    file.write_text("b:2\n")
    assert options.addresses() == ("a:1", "b:2")
