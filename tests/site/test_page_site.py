"""The page's views as they are sent, without a browser."""

import gzip
import re
from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from streaming.broker.protocol.listing_json import DEFAULT_LIMIT
from streaming.common.web.messages import SECURED, HttpRequest
from streaming.pages.api.state import State
from streaming.pages.listings.declared_lists import GROUP_PARTITIONS
from streaming.pages.site import page_site
from streaming.pages.site.detail_views import hour_charts, marks
from streaming.pages.site.page_site import ASSETS, PageSite, static_path
from tests.site.page_reading import Page, ask, read
from tests.site.page_world import ABORT, ADVICE, NOW, PROBLEMS, MadeUpJob, group, minutes, partition, site_of, starting
from tests.tables import each_row

VIEWS = [
    "/",
    "/topics",
    "/topics/payments",
    "/brokers",
    "/disks",
    "/search?q=a",
    "/partitions",
    "/transactions",
    "/retention",
    "/groups",
    "/events",
    "/cost",
    "/runbooks",
    "/runbooks/TransactionHanging",
    "/partitions/payments/3",
    "/groups/billing",
    "/groups/nobody",
    "/partitions?sort=colour",
]
LISTS = ["/topics", "/partitions", "/transactions", "/retention", "/groups", "/brokers"]
FIRST_LOAD_BYTES = 100_000


@pytest.fixture(scope="module")
def site() -> PageSite:
    return site_of(MadeUpJob())


def test_a_target_that_is_no_path_is_none_of_the_pages(site: PageSite) -> None:
    for path in ("*", "", "x", "//", "/x/y"):
        assert site.answer(HttpRequest(path=path, query="", client="", user_agent="", accept="", gzip=False, host="")) is None


def view(site: PageSite, address: str) -> Page:
    return Page(ask(site, address).body.decode(), address)


def rows(page: Page) -> list[str]:
    """The heads of a table's rows."""
    return [each.text.strip() for each in page.all("th") if each.attributes["scope"] == "row"]


def test_what_is_wrong_is_stated_first_with_what_since_when_what_it_holds_back_and_the_command(site: PageSite) -> None:
    page = read(site, "/")
    assert page.one("verdict").text == MadeUpJob().state.verdict
    assert page.one("fresh").text == MadeUpJob().state.freshness
    stated = [each.text for each in page.all("li") if "problem" in each.attributes.get("class", "")]
    assert len(stated) == len(PROBLEMS)
    for problem, text in zip(PROBLEMS, stated, strict=True):
        assert problem.what in text
        assert problem.holds_back in text
        assert (problem.command or problem.no_command) in text
    assert "Since 3h 12m ago" in stated[0]
    assert page.one("problem-0").text == ABORT


def test_what_has_changed_is_below_the_problems_with_the_way_to_all_of_it(site: PageSite) -> None:
    page = read(site, "/")
    table = page.one("changes").text
    for words in (
        "5m ago",
        "began (info)",
        "3 times since 50m ago",
        "ended (warning)",
        "Topic orders is under-replicated, after 9m",
        "election",
    ):
        assert words in table
    assert "All 11 changes" in page.one("more-changes").text
    assert "restart" in read(site, "/events").one("rows").text
    assert "Changes since 2025-11-13T01:13:20Z" in read(site, "/events").html
    assert read(site, "/events?filter=orders").one("rows").text.count("orders") == 2
    assert "No change matches" in read(site, "/events?filter=nothing").one("rows").text


def test_an_incident_can_be_copied_as_markdown(site: PageSite) -> None:
    text = read(site, "/").one("problem-0-text").text
    assert text.startswith("**critical: A transaction of producer 4012 in payments-3 hangs")
    assert f"```sh\n{ABORT}\n```" in text


def test_while_no_change_is_known_that_is_stated() -> None:
    site = site_of(MadeUpJob(event_rows=()))
    assert "No change is known." in read(site, "/").one("changes").text
    assert "once it has read everything that was on the disks" in read(site, "/events").html


def test_what_waits_for_the_start_of_a_broker_has_no_time_on_any_page() -> None:
    job = MadeUpJob(
        partition_rows=[replace(partition(0), next_deletion_ms=-1, next_deletion_start_of=3)],
        group_rows=[group("billing", loss_start_of=3)],
    )
    site = site_of(job)
    for path in ("/partitions", "/retention", "/groups"):
        assert "after broker 3 starts" in read(site, path).html, path


def test_the_search_finds_topics_groups_transactional_ids_and_brokers(site: PageSite) -> None:
    page = read(site, "/search?q=orders")
    assert page.all("h1")[0].text == "Found for orders"
    assert {"/topics/orders", "/transactions?filter=orders-etl-1"} <= {*page.links()}
    assert [each.text for each in page.all("h2")] == ["Topics", "Open transactions"]
    assert "Nothing here has that in its name" in read(site, "/search?q=nosuch").html
    assert "Write a part of a name" in read(site, "/search").html
    assert "filter is longer" in read(site, f"/search?q={'a' * 301}", HTTPStatus.BAD_REQUEST).html
    unread = read(site_of(MadeUpJob(group_rows=None)), "/search?q=o")
    assert "Nothing is known of consumer groups yet." in unread.html


@each_row(
    ("text", "address"),
    [
        ("clic", "/topics/clicks"),
        ("BILL", "/groups/billing"),
        ("orders-etl", "/transactions?filter=orders-etl-1"),
        ("2", "/brokers?filter=broker+2+"),
        (" clicks ", "/topics/clicks"),
    ],
)
def test_the_search_goes_straight_to_the_only_match(text: str, address: str) -> None:
    answer = ask(site_of(MadeUpJob()), f"/search?{urlencode({'q': text})}")
    assert (answer.status, answer.headers["Location"]) == (HTTPStatus.SEE_OTHER, f".{address}")


def test_a_topic_has_its_groups_and_partitions_and_leads_to_them(site: PageSite) -> None:
    page = read(site, "/topics/payments")
    assert page.all("h1")[0].text == "payments"
    assert "transaction hanging" in page.one("facts").text
    assert "held" in page.one("readers").text
    assert "/topics/payments?sort=size_bytes&order=desc" in page.links()
    assert {"/groups/billing", "/partitions/payments/3"} <= {*page.links()}
    assert all("payments" in each for each in rows(page)[1:])
    assert "No groups are read." in read(site_of(MadeUpJob(group_rows=None)), "/topics/payments").html
    assert "No partition of such a topic" in read(site, "/topics/nosuch", HTTPStatus.NOT_FOUND).html


def test_disks_begin_with_what_cannot_be_read_and_is_full_first(site: PageSite) -> None:
    page = read(site, "/disks")
    assert rows(page)[:3] == ["/var/lib/kafka/data-1", "/var/lib/kafka/data-2", "/var/lib/kafka/data-1"]
    text = page.one("dirs").text
    assert text.index("cannot be read") < text.index("in 9h") < text.index("not within a year")
    assert rows(read(site, "/disks?filter=data-2"))[:1] == ["/var/lib/kafka/data-2"]
    assert "by partition" in page.one("by").text


def test_what_a_problem_is_about_leads_to_its_view(site: PageSite) -> None:
    links = {*read(site, "/").links()}
    assert {"/brokers?filter=broker+1+", "/disks?filter=%2Fvar%2Flib%2Fkafka%2Fdata-2", "/brokers?filter=broker-3%3A8815"} <= links


def test_where_no_group_is_known_that_is_stated_once(site: PageSite) -> None:
    page = read(site_of(MadeUpJob(group_rows=None)), "/groups")
    assert "Nothing is known of consumer groups yet." in page.one("rows").text
    assert "No consumer group" not in page.html
    assert "none of 0" not in page.html
    assert "No consumer groups are known." in read(site_of(MadeUpJob(group_rows=[])), "/groups").one("rows").text


def test_how_old_the_data_of_each_agent_is(site: PageSite) -> None:
    text = read(site, "/").one("agents").text
    for word in (
        "broker-1:8815",
        "nothing",
        "broker-2:8815",
        "It reads a backlog.",
        "4s",
        "8.6 MiB",
        "down",
        "nobody listens there: is it running?",
    ):
        assert word in text


def test_without_problems_that_is_what_is_stated() -> None:
    world = MadeUpJob(problem_rows=())
    world.state = replace(world.state, severity="", critical=0, warning=0, info=0, verdict="Nothing is wrong")
    page = read(site_of(world), "/")
    assert page.one("verdict-badge").text == "fine"
    assert "Nothing is wrong that can be seen here." in page.one("problems").text


def test_a_job_that_is_still_reading_says_so() -> None:
    world = MadeUpJob()
    assert "starting" not in {each.attributes.get("id") for each in read(site_of(world), "/partitions").elements}
    world.state = starting(world.state)
    for path in ("/partitions", "/groups/nobody"):
        page = view(site_of(world), path)
        assert page.one("verdict").text == "starting Reading the disks: 41 %, 82.0 MiB of 197.0 MiB, 12s left"
        assert "not complete yet" in page.one("starting").text
    page = read(site_of(world), "/")
    assert page.one("verdict-box").attributes["class"] == "verdict starting"
    assert page.one("verdict-badge").text == "starting"
    assert "watched" not in page.html
    world.problem_rows = ()
    assert read(site_of(world), "/").one("problems").text == "Nothing is known to be wrong so far."


def test_nothing_watches_log_dirs_that_were_read() -> None:
    world = MadeUpJob()
    assert "watched" in read(site_of(world), "/").one("watched").text
    world.state = replace(world.state, live=False)
    page = read(site_of(world), "/")
    assert page.one("watched").text.endswith(" read.")
    assert not [each for each in page.all("table") if each.attributes.get("id") == "agents"]


def test_other_views_say_whose_problems_they_count(site: PageSite) -> None:
    assert read(site, "/groups/billing").one("verdict").text.endswith(" in the cluster")


def test_problems_are_chosen_by_severity_through_links(site: PageSite) -> None:
    page = read(site, "/")
    (link,) = [each for each in page.links() if "severity=warning" in each]
    chosen = read(site, link)
    assert [each.attributes["class"] for each in chosen.all("li") if "problem" in each.attributes.get("class", "")] == [
        "problem warning"
    ] * 2


@pytest.mark.parametrize("path", LISTS)
def test_every_head_sorts_by_a_link_and_turns_around(site: PageSite, path: str) -> None:
    first = read(site, path)
    heads = [each for each in first.all("a") if "sort=" in each.attributes["href"]]
    assert heads
    for head in heads:
        address = head.attributes["href"]
        asked = parse_qs(urlsplit(address).query)
        page = read(site, address)
        (sorted_head,) = [each for each in page.all("th") if "aria-sort" in each.attributes]
        assert sorted_head.attributes["aria-sort"] == {"asc": "ascending", "desc": "descending"}[asked["order"][0]]
        assert sorted_head.text.startswith(head.text.rstrip(" ↑↓"))
        (back,) = [each for each in page.links() if each.startswith(f"{path}?sort={asked['sort'][0]}&") and "&offset=" not in each]
        assert parse_qs(urlsplit(back).query)["order"] != asked["order"]


def pages(site: PageSite, address: str) -> Iterator[Page]:
    while address:
        page = read(site, address)
        yield page
        address = next((each.attributes["href"] for each in page.all("a") if each.attributes.get("rel") == "next"), "")


def test_pages_follow_each_other_by_links_with_sort_and_filter_kept(site: PageSite) -> None:
    found = list(pages(site, "/partitions?sort=topic&order=asc&filter=A"))
    assert [len(rows(page)) for page in found] == [DEFAULT_LIMIT, 10]
    names = [name for page in found for name in rows(page)]
    assert names == sorted({f"{topic}-{number}" for topic in ("audit", "payments") for number in range(30)}, key=_by_topic)
    assert "51 to 60 of 60 that match, of 120" in found[1].one("steps").text
    (back,) = [each.attributes["href"] for each in found[1].all("a") if each.attributes.get("rel") == "prev"]
    assert rows(read(site, back)) == names[:DEFAULT_LIMIT]


def _by_topic(name: str) -> tuple[str, int]:
    topic, number = name.split("-")
    return topic, int(number)


@pytest.mark.parametrize("path", LISTS)
def test_a_form_filters_and_keeps_what_was_asked(site: PageSite, path: str) -> None:
    sort = {"/groups": "group", "/brokers": "broker"}.get(path, "topic")
    page = read(site, f"{path}?filter=bill&sort={sort}&order=asc")
    form = next(each for each in page.all("form") if each.attributes["class"] == "filter")
    assert (form.attributes["method"], form.attributes["action"]) == ("get", path)
    (field,) = [each for each in page.all("input") if each.attributes["type"] == "search" and each.attributes["name"] != "q"]
    assert (field.attributes["name"], field.attributes["value"]) == ("filter", "bill")
    assert {each.attributes["name"] for each in page.all("select")} == {"sort", "order"}


def test_who_uses_the_groups_that_were_chosen_is_kept_by_links_and_form(site: PageSite) -> None:
    page = read(site, "/groups?use=in_use,unknown&filter=b")
    heads = [each.attributes["href"] for each in page.all("a") if "sort=" in each.attributes.get("href", "")]
    assert heads
    assert all("use=in_use%2Cunknown" in each and "filter=b" in each for each in heads)
    assert ("use", "in_use,unknown") in [(each.attributes["name"], each.attributes.get("value")) for each in page.all("input")]


def test_a_page_beyond_the_end_says_that_it_holds_nothing(site: PageSite) -> None:
    page = read(site, "/partitions?offset=5000")
    assert "none of 120" in page.one("steps").text
    (back,) = [each.attributes["href"] for each in page.all("a") if each.attributes.get("rel") == "prev"]
    assert len(rows(read(site, back))) == DEFAULT_LIMIT


@pytest.mark.parametrize(
    ("address", "stated"),
    [
        ("/partitions?sort=colour", "sort is not one of broker, topic"),
        ("/partitions?order=up", "order is neither asc nor desc."),
        ("/partitions?offset=-1", "offset is not a whole number from 0 to 1,000,000,000."),
        ("/retention?offset=1e3", "offset is not a whole number from 0 to 1,000,000,000."),
        ("/?severity=bad", "severity is not one of"),
        ("/groups?use=used", "use is not one or more of in_use, unattended,"),
        ("/?filter=%ff", "not UTF-8"),
        ("/?" + "&".join("a=1" for _ in range(50)), "too many"),
        ("/groups/billing?sort=colour", "sort is not one of topic, partition, committed"),
        ("/partitions?topic=.&partition=x", "partition is not a number from 0 on, of 13 digits at most."),
    ],
)
def test_what_cannot_be_asked_is_named(site: PageSite, address: str, stated: str) -> None:
    assert stated in view(site, address).html.replace("&#39;", "'")
    assert ask(site, address).status == HTTPStatus.BAD_REQUEST


@each_row(
    ("address", "there"),
    [
        ("/?colour=red", "severity, filter, offset"),
        ("/partitions?colour=red", "sort, order, filter"),
        ("/topics/payments?colour=red", "sort, order, offset"),
        ("/partitions/payments/3?colour=red", "there are none"),
        ("/groups?group=billing&colour=red", "group, sort, order, offset"),
        ("/disks?colour=red", "by, filter, offset"),
        ("/events?colour=red", "filter, offset"),
        ("/search?q=a&colour=red", "there are q"),
        ("/cost?colour=red", "there are none"),
        ("/runbooks?colour=red", "there are none"),
    ],
)
def test_a_parameter_that_a_view_does_not_have_is_named_as_by_the_api(address: str, there: str) -> None:
    html = read(site_of(MadeUpJob()), address, HTTPStatus.BAD_REQUEST).html
    assert "&#39;colour&#39; is no parameter here" in html
    assert there in html


def test_what_is_not_there_is_stated_with_a_way_on(site: PageSite) -> None:
    for address in ("/partitions/nothing/0", "/groups/nobody", "/partitions/payments"):
        page = read(site, address, HTTPStatus.NOT_FOUND)
        assert page.all("h1")[0].text == "Not there"
        assert "/groups" in page.links()


def test_a_job_has_metrics_and_their_cost_in_reach_and_log_dirs_that_were_read_have_neither(site: PageSite) -> None:
    assert {"/metrics", "/cost"} <= set(read(site, "/").links())
    unscraped = PageSite(cast(State, MadeUpJob()), None)
    assert {"/metrics", "/cost"}.isdisjoint(read(unscraped, "/").links())
    assert "known of a running job alone" in read(unscraped, "/cost", HTTPStatus.SERVICE_UNAVAILABLE).html


def test_what_is_none_of_the_pages_is_left_to_others(site: PageSite) -> None:
    def answered(path: str) -> bool:
        return site.answer(HttpRequest(path=path, client="", user_agent="", accept="", gzip=False)) is not None

    assert [
        path
        for path in ("/metrics", "/api/v1/status", "/-/ready", "/static/site.py", "/static/../page_site.py", "/cost/x")
        if answered(path)
    ] == []


def test_a_partition_shows_its_hour_its_segments_and_who_holds_it_open(site: PageSite) -> None:
    page = read(site, "/partitions/payments/3")
    titles = [each.text for each in page.all("title")[1:]]
    assert "Bytes a second, from 59m ago to now: at most 175.8 KiB/s, now 93.9 KiB/s" in titles
    assert "Log end offset and last stable offset, from 59m ago to now: 980,000 offsets apart now" in titles
    assert any(each.startswith("By size: 12 segments") and "2 beyond the limit" in each for each in titles)
    assert "hanging, stuck" in page.one("transactions").text
    assert ABORT in page.one("transactions").text
    assert ADVICE[1:] in page.one("transactions").text
    listed = read(site, "/transactions")
    assert ADVICE[1:] in listed.one("rows").text
    assert "Listed are only transactions open for longer than 1m; 4 are younger." in listed.html
    assert "3 more transactions that are only counted." in listed.html
    assert "leader" in page.one("replicas").text


def test_of_a_partition_of_which_little_is_known_that_is_shown() -> None:
    world = MadeUpJob()
    blank = replace(partition(12), rates=[], bytes_rate=-1.0, last_append_ms=-1, size_bytes=-1)
    detail = world.partition("payments", 3)
    assert detail is not None
    world.partition = lambda topic, number: replace(  # type: ignore[method-assign]
        detail, row=blank, retention=None, transactions=[], problems=[], segments=[], minutes=[], replicas=[]
    )
    page = read(site_of(world), "/partitions/payments/3")
    assert "Nothing is known of the last hour yet." in page.one("charts").text
    assert "No segment is known." in page.one("segments").text


def test_a_line_of_one_minute_is_no_line() -> None:
    assert len(hour_charts(minutes(), NOW)) == 3
    assert hour_charts(minutes()[:1], NOW) == []


def test_each_minute_of_a_chart_is_there_in_words_and_what_is_not_known_says_so() -> None:
    sizes, counts, offsets = hour_charts([*minutes()[:21], replace(minutes()[21], log_end_offset=-1)], NOW)
    assert [len(each.points) for each in (sizes, counts, offsets)] == [22] * 3
    assert sizes.points[0] == "01:14Z: 117.2 KiB/s"
    assert (sizes.points[-1], counts.points[0]) == ("01:35Z: not known", "01:14Z: 240/s")
    assert offsets.points[0] == "01:14Z: end 8,812,344, stable 8,812,344"
    assert offsets.points[-1] == "01:35Z: end not known, stable 9,012,344"


@each_row(
    ("low", "high", "unit", "least", "texts"),
    [
        (0.0, 180_000.0, 1024, 1.0, ["0", "51200", "102400", "153600"]),
        (0.0, 3_900.0, 1024, 1.0, ["0", "1024", "2048", "3072"]),
        (0.0, 360.0, 1000, 0.1, ["0", "100", "200", "300"]),
        (0.0, 0.4, 1000, 0.1, ["0", "0.1", "0.2", "0.3", "0.4"]),
        (8_812_344.0, 8_812_347.0, 1000, 1.0, ["8812344", "8812345", "8812346", "8812347"]),
        (8_812_344.0, 9_992_344.0, 1000, 1.0, ["9000000", "9500000"]),
        (0.0, 0.0, 1000, 1.0, ["0"]),
    ],
)
def test_lines_across_a_chart_are_at_round_values(low: float, high: float, unit: int, least: float, texts: list[str]) -> None:
    found = marks(low, high, lambda value: f"{value:.10g}", unit=unit, least=least)
    assert [each.text for each in found] == texts
    heights = [float(each.y.removesuffix("%")) for each in found]
    assert heights == sorted(heights, reverse=True)
    assert all(1 <= each <= 99 for each in heights)
    assert [each.below for each in found] == [each < 12 for each in heights]


def test_a_group_shows_why_it_does_not_go_on_and_the_command(site: PageSite) -> None:
    page = read(site, "/groups/billing")
    assert "What is wrong with it" in page.html, "some of it goes on all the same"
    assert "Held up by a transaction of producer 4012" in page.one("problems").text
    assert "kafka-transactions.sh" in page.one("verdict-0").text
    assert rows(page)[:2] == ["payments-3", "payments-7"]
    assert rows(read(site, "/groups/billing?sort=verdict&order=desc"))[-1] == "payments-3"
    assert rows(read(site, "/groups/billing?sort=lag_records_read_committed"))[0] == "payments-7"
    assert rows(read(site, "/groups/billing?sort=topic&order=asc"))[0] == "payments-0"


def test_groups_with_a_problem_come_first_and_nothing_known_is_stated() -> None:
    assert rows(read(site_of(MadeUpJob()), "/groups"))[0].startswith("ETL/nightly")
    assert "Nothing is known of consumer groups yet." in read(site_of(MadeUpJob(group_rows=None)), "/groups").html
    assert ask(site_of(MadeUpJob(group_rows=None)), "/groups/billing").status == 503


def test_what_is_not_known_comes_last_in_either_order() -> None:
    world = MadeUpJob(group_rows=[group("a", lag_bytes=-1), group("b", lag_bytes=5), group("c", lag_bytes=9)])
    for order, names in (("asc", ["b", "c", "a"]), ("desc", ["c", "b", "a"])):
        assert [each[0] for each in rows(read(site_of(world), f"/groups?sort=lag_bytes&order={order}"))] == names


@pytest.mark.parametrize("path", VIEWS)
def test_nothing_is_inline_and_nothing_comes_from_elsewhere(site: PageSite, path: str) -> None:
    page = view(site, path)
    assert page.all("style") == []
    scripts = [{"src": static_path(name), "defer": ""} for name in ("site.js", "readings.js")]
    assert [each.attributes for each in page.all("script")] == scripts
    for element in page.elements:
        assert not {name for name in element.attributes if name == "style" or name.startswith("on")}
        for name in ("href", "src", "action"):
            assert element.attributes.get(name, "/").startswith(("/", "#"))
    assert not re.search(r"(?<!xmlns=\")https?://", page.html)


@pytest.mark.parametrize("path", VIEWS)
def test_tables_say_what_they_are_and_ids_are_unique(site: PageSite, path: str) -> None:
    page = view(site, path)
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(each.attributes.get("scope") in ("col", "row") for each in page.all("th"))
    ids = [each.attributes["id"] for each in page.elements if "id" in each.attributes]
    assert len(ids) == len(set(ids))
    assert len(page.all("h1")) == 1
    live = [each for each in page.elements if "aria-live" in each.attributes]
    assert [each.attributes["id"] for each in live] == ["verdict"]


@pytest.mark.parametrize("path", VIEWS)
def test_every_link_is_answered(site: PageSite, path: str) -> None:
    for link in view(site, path).links():
        if link not in ("#main", "/metrics", "/-/healthy", "/-/ready") and not link.startswith("/api/v1/"):
            assert ask(site, link).status == HTTPStatus.OK, link


def test_a_first_load_is_small() -> None:
    many = [replace(PROBLEMS[number % 5], partition=number) for number in range(1000)]
    site = site_of(MadeUpJob(problem_rows=many, partition_rows=[partition(number) for number in range(10_000)]))
    assets = sum(len(ask(site, f"/static/{name}").body) for name in ASSETS)
    sizes = {path: len(ask(site, path).body) + assets for path in VIEWS}
    assert {path: size for path, size in sizes.items() if size > FIRST_LOAD_BYTES} == {}


def test_every_answer_keeps_out_what_comes_from_elsewhere(site: PageSite) -> None:
    policy = {
        *("default-src 'none'", "style-src 'self'", "script-src 'self'", "img-src 'self'", "connect-src 'self'", "form-action 'self'"),
        *("base-uri 'none'", "frame-ancestors 'none'"),
    }
    for path in (*VIEWS, *(static_path(name) for name in ASSETS)):
        headers = ask(site, path).headers
        assert set(headers["Content-Security-Policy"].split("; ")) == policy
        assert (SECURED | headers)["Cache-Control"] == ("private, max-age=31536000, immutable" if "/static/" in path else "no-store")


def test_an_asset_has_another_path_when_its_content_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    before = static_path("site.css")
    monkeypatch.setattr(page_site, "_content", lambda name: b"other")
    assert static_path("site.css") != before


def test_a_view_is_packed_for_those_who_can_unpack_it(site: PageSite) -> None:
    for path in ("/partitions", "/static/site.css"):
        answer = site.answer(HttpRequest(path=path, client="", user_agent="", accept="", gzip=True))
        assert answer is not None
        assert answer.gzip
        assert gzip.decompress(answer.body) == ask(site, path).body


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_partitions_of_a_group_can_be_sorted_by_whatever_is_declared(site: PageSite, order: str) -> None:
    for name in GROUP_PARTITIONS.sortable:
        read(site, f"/groups/billing?sort={name}&order={order}")
