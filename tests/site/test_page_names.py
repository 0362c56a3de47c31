"""Names on the page: whatever they hold, no tag and no attribute comes out of them, and links to them work."""

from dataclasses import replace
from functools import cache

from hypothesis import example, given
from hypothesis import strategies as st

from streaming.broker.protocol.status_json import Cost, Share
from streaming.common.units import format_name
from streaming.pages.site.page_links import group_link, partition_link, topic_link
from tests.site.page_reading import Page, ask, read
from tests.site.page_world import MadeUpJob, group, partition, site_of, topic, transaction
from tests.tables import each_row

VIEWS = ["/", "/topics", "/brokers", "/disks", "/partitions", "/transactions", "/retention", "/groups", "/cost"]
BIDI = "pay\u202egnp.exe"

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300) | st.text(
    "<>&\"'/%?#;= \t\n\u202e\u2066\x00ab", min_size=1
)


class Named(MadeUpJob):
    """A world in which everything has one name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.partition_rows = [replace(partition(12), topic=name, partition=3, retention_blocked=name)]
        self.transaction_rows = [transaction(topic=name, transactional_id=name, coordinator_state=name, groups=[name], no_command=name)]
        self.topic_rows = [replace(topic(name), cleanup_policy=name)]
        self.group_rows = [group(name, state=name, type=name)]
        self.problem_rows = [replace(each, topic=name, group=name, log_dir=name, agent=name, what=name) for each in self.problem_rows]
        agents = [replace(each, name=name, explanation=name) for each in self.state.agents]
        self.state = replace(self.state, cluster_id=name, verdict=name, freshness=name, doubts=[name], agents=agents)
        self._name = name

    def cost(self) -> Cost:
        return Cost(at_ms=1, bytes=7, topics=[Share(name=self._name, series=1, bytes=1)])


def views_of(name: str) -> list[str]:
    return [*VIEWS, topic_link(name), partition_link(name, 3), group_link(name)]


def shape(page: Page) -> list[tuple[str, list[str]]]:
    """Tags with their attributes' names, but for the places where a name may be broken."""
    return [(each.tag, sorted(each.attributes)) for each in page.elements if each.tag != "wbr"]


@cache
def usual_shapes() -> list[list[tuple[str, list[str]]]]:
    return [shape(read(site_of(Named("plain")), view)) for view in views_of("plain")]


@given(name=NAMES)
@example(name="<script>alert(1)</script>")
@example(name='"><img src=x onerror=alert(1)>')
@example(name="' onmouseover='alert(1)")
@example(name="javascript:alert(1)")
@example(name="{{ 7 * 7 }}{% raw %}")
@example(name="</title><h1>")
@example(name="a/b?c#d%2e&e")
@example(name=BIDI)
@example(name="..")
@example(name=".")
@example(name="\x00\x1b[31m")
def test_no_tag_and_no_attribute_comes_out_of_a_name(name: str) -> None:
    site = site_of(Named(name))
    for view, usual in zip(views_of(name), usual_shapes(), strict=True):
        found = read(site, view)
        assert shape(found) == usual
        assert all(each.isprintable() or each == "\n" for each in found.html)
        for link in found.links():
            assert link == "#main" or (link.startswith("/") and not link.startswith("//"))
            assert link.isascii()
            assert link.isprintable()


@given(name=NAMES)
@example(name=".")
@example(name="..")
@example(name="a%2Fb")
def test_every_link_to_a_name_leads_to_it(name: str) -> None:
    site = site_of(Named(name))
    (to_group,) = {each for each in read(site, "/groups").links() if each.startswith(("/groups/", "/groups?group="))}
    assert read(site, to_group).all("h1")[0].text == format_name(name, 255)
    (to_topic,) = {each for each in read(site, "/topics").links() if each.startswith(("/topics/", "/topics?topic="))}
    assert read(site, to_topic).all("h1")[0].text == format_name(name, 249)
    (to_partition,) = {each for each in read(site, "/retention").links() if each.endswith(("/3", "partition=3"))}
    assert read(site, to_partition).all("h1")[0].text == f"{format_name(name, 249)}-3"


def test_control_and_bidirectional_characters_are_shown_escaped() -> None:
    page = read(site_of(Named(f"{BIDI}\x1b[2J")), "/partitions")
    assert "pay\\u202egnp.exe\\u001b[2J" in page.one("rows").text


@each_row("name", ["<b>", BIDI, "two words", "\u05d0\u05d1", "e\u0301"])
def test_a_name_is_written_as_everywhere(name: str) -> None:
    assert format_name(name) in read(site_of(Named(name)), "/groups").one("rows").text


def test_a_name_that_no_address_holds_is_not_found() -> None:
    site = site_of(MadeUpJob())
    assert ask(site, "/groups/%ff").status == 404
    assert ask(site, "/partitions/a/b").status == 404
    assert ask(site, "/partitions/payments/99999999999").status == 404
    assert ask(site, "/groups/a/b").status == 404
