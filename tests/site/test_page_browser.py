"""The page in a real Chromium: seen, opened, copied, by keyboard, in the dark, on a small screen, and while it changes."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from tests.limits import SECONDS
from tests.ports import free_ports
from tests.serving import answering
from tests.site.browser import Browser, browsing, served
from tests.site.page_process import page_process, stripping_proxy
from tests.site.page_world import ABORT, MadeUpJob, site_of, starting
from tests.site.simulated_page import simulated_site

pytestmark = [pytest.mark.programs, pytest.mark.slow, pytest.mark.xdist_group("browser")]

VIEWS = [
    "/",
    "/partitions",
    "/transactions",
    "/retention",
    "/topics",
    "/topics/payments",
    "/brokers",
    "/disks",
    "/search?q=a",
    "/groups",
    "/cost",
    "/partitions/payments/3",
    "/groups/billing",
    "/groups/nobody",
]
WIDTHS = (320, 400, 640, 800, 960, 1100, 1280, 1920)
REFRESH = "refresh()"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsing() as started:
        yield started


@pytest.fixture(scope="module")
def world() -> MadeUpJob:
    return MadeUpJob()


@pytest.fixture(scope="module")
def address(world: MadeUpJob) -> Iterator[str]:
    with served(site_of(world)) as found:
        yield found


@pytest.fixture
def browser(chromium: Browser, address: str) -> Browser:
    chromium.base = address
    chromium.media(prefers_color_scheme="light")
    chromium.resize(1280)
    chromium.console()
    return chromium


def selected(browser: Browser) -> str:
    return str(browser.run("return getSelection().toString()"))


def test_the_stuck_transaction_is_seen_opened_and_its_command_copied(browser: Browser) -> None:
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    browser.open("/")
    first = browser.find(".problem")
    assert "hangs" in first.text
    first.find_element("link text", "partition payments-3").click()
    browser.wait_for("location.pathname == '/partitions/payments/3'")
    assert browser.find("h1").text == "payments-3"
    browser.find("#transactions button").click()
    browser.wait_for("[...document.querySelectorAll('button')].some((each) => each.textContent == 'Copied')")
    copied = browser.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], (e) => arguments[0](String(e)))")  # type: ignore[no-untyped-call]
    assert copied == ABORT
    assert browser.console() == []


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(simulated_site(tmp_path_factory.mktemp("broker"))) as found:
        yield found


def test_of_a_simulated_broker_the_hanging_transaction_is_seen_opened_and_copied(chromium: Browser, simulated: str) -> None:
    chromium.base = simulated
    chromium.resize(1280)
    chromium.console()
    chromium.open("/")
    assert "critical" in chromium.find("#verdict").text
    hanging = next(each for each in chromium.every(".problem") if "no coordinator will end it" in each.text)
    hanging.find_element("link text", "partition invoices-0").click()
    chromium.wait_for("location.pathname == '/partitions/invoices/0'")
    assert "hanging" in chromium.find("#transactions").text
    chromium.run("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    chromium.find("#transactions button").click()
    chromium.wait_for("window.copied")
    copied = str(chromium.run("return window.copied"))
    assert copied.startswith("kafka-transactions.sh --bootstrap-server 127.0.0.1:9092 abort --topic invoices --partition 0 --start-offset ")
    chromium.open("/transactions")
    assert "stuck" in chromium.find("#rows").text
    chromium.open("/retention?filter=mobile")
    assert "future timestamp" in chromium.find("#rows").text
    chromium.open("/groups/invoice-mailer")
    assert "Held up by a transaction" in chromium.find("#problems").text
    assert chromium.console() == []


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/topics/invoices",
        "/brokers",
        "/disks",
        "/partitions",
        "/transactions",
        "/retention",
        "/groups",
        "/groups/ledger",
        "/partitions/invoices/0",
    ],
)
def test_of_a_simulated_broker_axe_finds_nothing(chromium: Browser, simulated: str, path: str) -> None:
    chromium.base = simulated
    chromium.resize(1280)
    for scheme in ("light", "dark"):
        chromium.media(prefers_color_scheme=scheme)
        chromium.open(path)
        assert chromium.accessibility_faults() == []


def test_without_a_clipboard_the_command_is_selected(browser: Browser) -> None:
    browser.open("/")
    browser.run("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    browser.find(".problem button").click()
    browser.wait_for("['Copied', 'Selected'].includes(document.querySelector('.problem button').textContent)")
    assert selected(browser) == ABORT


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", VIEWS)
def test_axe_finds_nothing(browser: Browser, path: str, scheme: str) -> None:
    browser.media(prefers_color_scheme=scheme)
    browser.open(path)
    assert browser.run(f"return matchMedia('(prefers-color-scheme: {scheme})').matches")
    assert browser.accessibility_faults() == []
    browser.resize(320)
    assert browser.accessibility_faults() == []


@pytest.mark.parametrize("path", VIEWS)
def test_nothing_has_to_be_scrolled_sideways_at_any_width(browser: Browser, path: str) -> None:
    browser.open(path)
    for width in WIDTHS:
        browser.resize(width)
        wide, there = browser.run("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert wide <= there, f"{wide} of {there} pixels at a width of {width}"
        reaching = browser.run("return [...document.querySelectorAll('.around')].filter(t => t.scrollWidth > t.clientWidth).map(t => t.id)")
        assert reaching == [], f"tables reach beyond their place at a width of {width}"
    assert [each for each in browser.console() if "404" not in each] == []


def test_on_a_phone_the_first_problem_is_in_sight(browser: Browser) -> None:
    browser.resize(390, 844)
    browser.open("/")
    problem, height = browser.run("return [document.querySelector('.problem').getBoundingClientRect().top, innerHeight]")
    assert problem < height
    assert browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_where_it_gets_narrow_columns_go_first_and_rows_are_cards_only_below_640_pixels(browser: Browser) -> None:
    heads = "return [...document.querySelectorAll('#rows thead th')].filter(each => each.checkVisibility()).map(each => each.innerText)"
    browser.open("/partitions")
    shown = {}
    for width in (640, 768, 1180, 1920):
        browser.resize(width)
        shown[width] = browser.run(heads)
        assert browser.run("return getComputedStyle(document.querySelector('#rows td')).display") == "table-cell"
        lines = "return [...document.querySelectorAll('#rows tbody th bdi')].map(each => each.getClientRects().length)"
        assert set(browser.run(lines)) == {1}, f"a name is broken at a width of {width}"
    assert [each.split()[0] for each in shown[640]] == ["Partition", "Verdict", "Bytes/s", "Records/s"]
    assert len(shown[640]) < len(shown[768]) < len(shown[1180]) < len(shown[1920])
    assert all(shown[1920][: len(some)] == some for some in shown.values())
    browser.resize(630)
    assert browser.run("return getComputedStyle(document.querySelector('#rows tbody tr')).display") == "grid"
    left = (
        "return [...document.querySelector('#rows tbody tr').children].filter(each => each.checkVisibility()).map(each => each.offsetLeft)"
    )
    assert len(set(browser.run(left))) == 3
    browser.open("/transactions")
    for width in (320, 640, 1180):
        browser.resize(width)
        code, button = browser.find("#rows .command code"), browser.find("#rows .command button")
        assert code.size["width"] > 180
        assert (button.location["y"] > code.location["y"] + 20) == (width <= 640)


def test_a_very_long_name_does_not_widen_the_page(chromium: Browser) -> None:
    world, name = MadeUpJob(), "a" * 249
    world.partition_rows = [replace(world.partition_rows[12], topic=name), *world.partition_rows]
    world.transaction_rows = [replace(world.transaction_rows[0], topic=name, transactional_id=name, groups=[name] * 3)]
    world.problem_rows = [replace(world.problem_rows[0], topic=name, group=name, what=name, command=f"kafka --topic {name}")]
    world.group_rows = [replace(each, group=name) for each in world.group_rows or ()][:1]
    with served(site_of(world)) as address:
        chromium.base = address
        for path in ("/", "/partitions", "/transactions", "/retention", "/groups", f"/partitions/{name}/3", f"/groups/{name}"):
            chromium.open(path)
            for width in WIDTHS:
                chromium.resize(width)
                assert chromium.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth"), (path, width)


def test_everything_is_reached_by_keyboard_and_the_focus_shows(browser: Browser) -> None:
    browser.open("/")
    browser.press(Keys.TAB)
    assert browser.driver.switch_to.active_element.text == "Skip to the content"
    assert browser.focus_shows()
    browser.press(Keys.ENTER)
    browser.wait_for("location.hash == '#main'")
    browser.tab_to("focus.textContent == '2 warnings'")
    browser.tab_to("focus.matches('.problem code')")
    assert browser.focus_shows()
    browser.tab_to("focus.matches('.problem button.copy')")
    assert browser.focus_shows()
    browser.press(Keys.SPACE)
    browser.wait_for("['Copied', 'Selected'].includes(document.querySelector('.problem button').textContent)")


def test_a_slash_leads_to_the_search_and_the_only_match_is_opened(browser: Browser) -> None:
    browser.open("/partitions")
    browser.press("/")
    assert browser.run("return document.activeElement.id") == "search"
    browser.press("a/", *["\ue003"] * 2, "clicks", Keys.ENTER)
    browser.wait_for("location.pathname == '/topics/clicks'")
    assert browser.find("h1").text == "clicks"
    assert browser.console() == []


def test_a_table_is_sorted_filtered_and_paged_by_keyboard(browser: Browser) -> None:
    browser.open("/partitions")
    browser.tab_to("focus.textContent.startsWith('Size')")
    browser.press(Keys.ENTER)
    browser.wait_for("document.querySelector('th[aria-sort]')?.textContent.startsWith('Size')")
    browser.tab_to("focus.name == 'filter'")
    browser.press("orders", Keys.ENTER)
    browser.wait_for("document.querySelector('.steps')?.textContent.includes('1 to 30 of 30 that match, of 120')")
    assert browser.find("th[aria-sort]").text.startswith("Size")
    assert all("orders" in each.text for each in browser.every("tbody th"))
    browser.open("/partitions")
    browser.tab_to("focus.rel == 'next'")
    browser.press(Keys.ENTER)
    browser.wait_for("document.querySelector('.steps')?.textContent.includes('51 to 100 of 120')")


def test_a_view_is_asked_for_again_and_only_the_verdict_is_read_aloud(browser: Browser, world: MadeUpJob) -> None:
    before = world.state
    browser.open("/")
    browser.run("window.kept = document.getElementById('verdict'); document.querySelector('#problem-1').focus()")
    try:
        world.state = replace(before, verdict="All is well again", severity="", critical=0, freshness="Now")
        browser.run(REFRESH)
        browser.wait_for("document.getElementById('verdict').textContent == 'All is well again'")
    finally:
        world.state = before
    assert browser.run("return window.kept == document.getElementById('verdict')")
    assert browser.find("#fresh").text == "Now"
    assert browser.find("#verdict-box").get_attribute("class") == "verdict fine"
    assert browser.driver.title.startswith("All is well again")
    assert browser.run("return document.activeElement.id") == "problem-1"
    assert [each.get_attribute("id") for each in browser.every("[aria-live]")] == ["verdict"]
    assert browser.console() == []


READING = "document.querySelector('.reading output')?.textContent"


def test_a_chart_is_read_by_pointer_and_keyboard_in_words_that_came_with_it(browser: Browser) -> None:
    browser.open("/partitions/payments/3")
    pointer = ActionChains(browser.driver)
    sizes, counts = (str(browser.find(f"#chart-{key}").get_attribute("data-points")).split("|") for key in ("bytes", "records"))
    pointer.move_to_element(browser.find("#chart-bytes")).perform()
    assert browser.run(f"return {READING}") in sizes[29:31]
    pointer.move_to_element(browser.find("h1")).perform()
    assert browser.run(f"return {READING}") is None
    browser.tab_to("focus.id == 'chart-records'")
    assert browser.focus_shows()
    shown = []
    for keys in ("", Keys.LEFT, Keys.RIGHT * 2, Keys.HOME, Keys.LEFT):
        browser.press(*keys)
        shown.append(browser.run(f"return {READING}"))
    assert shown == [counts[place] for place in (-1, -2, -1, 0, 0)]
    assert browser.accessibility_faults() == []
    browser.run("document.getElementById('charts').kept = true")
    browser.run(REFRESH)
    browser.wait_for("!document.getElementById('charts').kept")
    assert browser.run(f"return [document.activeElement.id, {READING}]") == ["chart-records", counts[0]]
    browser.press(Keys.ESCAPE)
    assert browser.run(f"return {READING}") is None
    assert browser.console() == []


ON = "document.getElementById('band').classList.contains('on')"
GREYED = "getComputedStyle(document.querySelector('.badge')).color == getComputedStyle(document.querySelector('.fresh')).color"


def band(browser: Browser) -> str:
    return str(browser.run("return document.getElementById('band').innerText"))


def not_current(browser: Browser, why: str, *, asks: bool = True) -> None:
    """Waits until the view says that it is not current, and sees that nothing of it looks alive.

    ``asks``: it is told to ask now, and does not wait for the end of its interval.
    """
    if asks:
        browser.run(REFRESH)
    browser.wait_for(f"document.getElementById('band').innerText.startsWith('Not current: {why} ')")  # it may be on for another reason
    assert browser.run(f"return {ON}")
    assert band(browser).startswith(f"Not current: {why} since 02:13:20Z, ")
    assert "What is below was so then." in band(browser)
    assert browser.run(f"return {GREYED}")
    assert browser.find("#band-words").get_attribute("role") == "status"
    browser.run(
        "window.aged = document.getElementById('band-age').textContent; window.words = document.getElementById('band-words').firstChild"
    )
    browser.wait_for("window.aged != document.getElementById('band-age').textContent")  # the age goes on
    assert browser.run("return window.words == document.getElementById('band-words').firstChild")  # and is read aloud once


def current(browser: Browser) -> None:
    browser.run(REFRESH)
    browser.wait_for(f"!{ON}")
    assert not browser.run(f"return {GREYED}")
    assert band(browser) == ""


def test_a_page_of_a_job_that_is_frozen_ended_or_in_error_never_looks_alive(chromium: Browser) -> None:
    (port,) = free_ports(1)
    chromium.resize(1280)
    chromium.media(prefers_color_scheme="light")
    wrong_clock = chromium.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WRONG_CLOCK})
    try:
        with page_process(port) as page:
            chromium.base = page.url
            chromium.open("/")
            assert chromium.run("return Date.now() - NOW()") > 200_000_000
            assert band(chromium) == ""
            page.freeze()
            not_current(chromium, "the job does not answer", asks=False)
            assert chromium.accessibility_faults() == []
            page.thaw()
            current(chromium)
        not_current(chromium, "the job does not answer")
        chromium.media(prefers_color_scheme="dark")
        assert chromium.accessibility_faults() == []
        with answering(lambda _: (503, b"busy"), port):
            not_current(chromium, "the answer is an error, 503,")
        with answering(lambda _: (200, b"<p>Please sign in</p>"), port):
            not_current(chromium, "something else answers in place of the job")
        with page_process(port):
            current(chromium)
    finally:
        chromium.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", wrong_clock)
        chromium.console()


WRONG_CLOCK = """
const Real = Date, NOW = Real.now.bind(Real), ahead = 3 * 86_400_000;
Date = class extends Real {
  constructor(...given) { if (given.length) super(...given); else super(NOW() + ahead); }
  static now() { return NOW() + ahead; }
};
"""


def test_a_job_that_starts_is_in_no_severity_s_colour_and_its_view_follows_when_it_is_ready(chromium: Browser) -> None:
    world = MadeUpJob()
    before, world.state = world.state, starting(world.state)
    with served(site_of(world)) as chromium.base:
        for path in ("/", "/groups"):
            for scheme in ("light", "dark"):
                chromium.media(prefers_color_scheme=scheme)
                chromium.open(path)
                assert "Reading the disks: 41 %, 82.0 MiB of 197.0 MiB, 12s left" in chromium.find("#verdict").text
                assert chromium.accessibility_faults() == []
        chromium.open("/")
        assert chromium.find("#verdict-box").get_attribute("class") == "verdict starting"
        world.state = before
        chromium.run(REFRESH)
        chromium.wait_for("document.getElementById('watched')")
        assert chromium.find("#verdict-badge").text == "critical"
        world.state = replace(before, not_current="No agent answers: a1")
        chromium.run(REFRESH)
        chromium.wait_for(ON)
        assert band(chromium) == "Not current: no agent answers: a1."
        assert chromium.run(f"return {GREYED}")
        assert chromium.accessibility_faults() == []
        world.state, world.group_rows = before, None
        chromium.open("/groups/billing")
        world.group_rows = MadeUpJob().group_rows
        chromium.run(REFRESH)
        chromium.wait_for("document.querySelector('h1').textContent == 'billing'")  # what was not known yet is in the place of that


def test_behind_a_proxy_that_takes_a_prefix_away_everything_is_reached(chromium: Browser, address: str) -> None:
    chromium.console()
    with stripping_proxy(address, "/ops/segtail") as chromium.base:
        chromium.open("/")
        assert chromium.run("return getComputedStyle(document.querySelector('.verdict')).borderLeftWidth") == "6px"
        chromium.find(".problem").find_element("link text", "partition payments-3").click()
        chromium.wait_for("location.pathname == '/ops/segtail/partitions/payments/3'")
        chromium.run(REFRESH)
        chromium.driver.find_element("link text", "Groups").click()
        chromium.wait_for("location.pathname == '/ops/segtail/groups'")
        chromium.find("main input[type=search]").send_keys("billing", Keys.ENTER)
        chromium.wait_for("location.search.includes('filter=billing')")
        assert chromium.run("return location.pathname") == "/ops/segtail/groups"
        chromium.driver.find_element("link text", "This as JSON")
        links = chromium.run("return [...document.querySelectorAll('[href], [src], [action]')].map((e) => e.href || e.src || e.action)")
        assert [each for each in links if not each.startswith(f"{chromium.base}/")] == []
    assert chromium.console() == []


def test_updates_can_be_paused_and_the_view_says_how_old_it_is(browser: Browser) -> None:
    browser.open("/")
    browser.find(".pause").click()
    assert browser.find(".pause").get_attribute("aria-pressed") == "true"
    assert browser.find(".pause").text == "Updates are paused"
    assert band(browser).startswith("Updates are paused: this was so at 02:13:20Z, ")
    browser.wait_for("document.getElementById('band-age').textContent.includes('2s')")
    assert browser.accessibility_faults() == []
    browser.find(".pause").click()
    browser.wait_for(f"!{ON}")


def test_without_a_script_it_works_the_same(browser: Browser) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open("/partitions")
        browser.driver.find_element("link text", "Size").click()
        assert browser.driver.find_element("css selector", "th[aria-sort]").text.startswith("Size")
        assert not browser.driver.find_element("css selector", ".pause").is_displayed()
        browser.open("/")
        assert "kafka-transactions.sh" in browser.driver.find_element("css selector", ".problem code").text
        assert not browser.driver.find_element("css selector", ".problem button").is_displayed()
        browser.find("#search").send_keys("clicks", Keys.ENTER)
        WebDriverWait(browser.driver, SECONDS).until(lambda driver: driver.current_url.endswith("/topics/clicks"))
        browser.open("/")
        assert "30" in browser.driver.page_source.split('http-equiv="refresh" content="')[1][:2]
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_less_motion_and_print_are_heard(browser: Browser) -> None:
    browser.media(prefers_reduced_motion="reduce")
    browser.open("/")
    assert browser.run("return getComputedStyle(document.querySelector('nav a')).transitionDuration") == "0s"
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not browser.find("nav").is_displayed()
        assert browser.find(".problem code").is_displayed()
        assert not browser.find(".problem button").is_displayed()
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
