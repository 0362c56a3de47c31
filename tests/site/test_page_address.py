"""Where people reach the page: in its commands, and in the metrics from which alerts take it."""

import socket

import pytest

from streaming.common.settings import Settings
from streaming.errors import SettingsError
from streaming.pages.site.exporter import Exporter, page_address
from streaming.terminal.configuration import load
from tests.tables import each_row
from tests.view.rows import new_observer, new_table


@each_row(
    ("host", "encrypted", "address"),
    [
        ("127.0.0.1", False, "http://127.0.0.1:9712"),
        ("192.0.2.1", True, "https://192.0.2.1:9712"),
        ("2001:db8::1", False, "http://[2001:db8::1]:9712"),
        ("kafka-1.example.org", False, "http://kafka-1.example.org:9712"),
        ("0.0.0.0", False, f"http://{socket.gethostname()}:9712"),
        ("::", True, f"https://{socket.gethostname()}:9712"),
        ("fe80::1%eth0", False, ""),
    ],
)
def test_a_page_has_the_address_that_it_listens_on_or_the_name_of_its_host(host: str, encrypted: bool, address: str) -> None:
    assert page_address(host, 9712, encrypted=encrypted) == address


@pytest.mark.parametrize("given", ["", "https://segtail.example.org"])
def test_an_exporter_says_where_its_page_is(given: str) -> None:
    observer = new_observer()
    exporter = Exporter("127.0.0.1", 0, table=new_table(), observer=observer, clock=lambda: 0.0, healthy=lambda: True, public_url=given)
    exporter.start()
    try:
        host, port = exporter.address
        expected = given or f"http://{host}:{port}"
        (family,) = [each for each in observer.families({}, 0.0).collect() if each.name == "segtail_page_info"]
        assert [(each.labels, each.value) for each in family.samples] == [({"url": expected}, 1)]
    finally:
        exporter.close()


@each_row(
    ("written", "kept"),
    [
        ("", ""),
        ("https://segtail.example.org", "https://segtail.example.org"),
        ("https://segtail.example.org/", "https://segtail.example.org"),
        ("http://[::1]:9712", "http://[::1]:9712"),
    ],
)
def test_an_address_of_the_page_is_taken(written: str, kept: str) -> None:
    assert load(None, {"SEGTAIL_PUBLIC_URL": written}, {}).public_url == kept
    assert Settings(public_url=written).public_url == kept


@each_row(
    "written", ["segtail.example.org", "http://a/b", "http://a'b", "http://$(id)", "http://a b", "ftp://a", "http://u:p@a", "http://a\nb"]
)
def test_an_address_that_a_shell_would_take_for_more_is_refused(written: str) -> None:
    with pytest.raises(SettingsError, match=r"public_url takes an address such as http://HOST:PORT"):
        load(None, {"SEGTAIL_PUBLIC_URL": written}, {})
