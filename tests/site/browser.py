"""A real Chromium that looks at the page: what a person sees, presses and hears, and what the console says."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from importlib.resources import files
from time import monotonic
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from streaming.common.web.gate import Gate
from streaming.common.web.messages import HttpRequest, Response
from streaming.common.web.server import Server
from streaming.pages.site.page_site import PageSite
from tests.limits import SECONDS
from tests.tools import require_tool


class Browser:
    """One window. ``base``: the address of the site that paths are of."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver
        self.base = ""
        self._axe = files("selenium_axe_python").joinpath("axe-core", "axe.min.js").read_text(encoding="utf-8")

    def open(self, path: str) -> None:
        self.driver.get(self.base + path)

    def media(self, **features: str) -> None:
        """Sets what a page may ask for, such as ``prefers_color_scheme="dark"``."""
        given = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": given})

    def resize(self, width: int, height: int = 900) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)  # type: ignore[no-untyped-call]

    def find(self, css: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def every(self, css: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def wait_for(self, script: str) -> None:
        """Waits until a script returns something true."""
        WebDriverWait(self.driver, SECONDS, 0.05).until(lambda _: self.run(f"return {script}"))

    def press(self, *keys: str) -> None:
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def tab_to(self, script: str) -> None:
        """Presses Tab until the focus is where a script about ``focus`` says, a hundred times at most; each stop has to be visible."""
        for _ in range(100):
            self.press(Keys.TAB)
            if self.run(f"const focus = document.activeElement; return {script}"):
                return
        raise AssertionError(f"Tab does not lead to {script}")

    def focus_shows(self) -> bool:
        return bool(
            self.run("const s = getComputedStyle(document.activeElement); return s.outlineStyle != 'none' && s.outlineWidth != '0px'")
        )

    def accessibility_faults(self) -> list[str]:
        """What axe-core finds; it is run as the developer tools run code, so that the page's policy stays as it is."""
        self.run(self._axe)
        found = self.driver.execute_async_script(  # type: ignore[no-untyped-call]
            "const done = arguments[0]; axe.run({resultTypes: ['violations']}).then(done, (error) => done({error: String(error)}))"
        )
        assert "error" not in found, found
        assert found["passes"]
        return [f"{each['id']}: {node['html']} {node.get('failureSummary', '')}" for each in found["violations"] for node in each["nodes"]]

    def console(self) -> list[str]:
        """What the console says since it was last asked."""
        return [json.dumps(entry) for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]


@contextmanager
def browsing() -> Iterator[Browser]:
    """A Chromium of its own, without a screen."""
    chromium, driver = require_tool("chromium"), require_tool("chromedriver")
    options = ChromeOptions()
    options.binary_location = str(chromium)
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = Chrome(options=options, service=Service(str(driver)))
    try:
        yield Browser(started)
    finally:
        started.quit()


@contextmanager
def served(site: PageSite) -> Iterator[str]:
    """The address of a server that has only the page."""

    def answer(request: HttpRequest) -> Response:
        return site.answer(request) or Response(status=HTTPStatus.NOT_FOUND, body=b"not found\n")

    gate = Gate(None)
    server = Server("127.0.0.1", 0, answer, gate, monotonic)
    server.start("page")
    try:
        yield f"http://127.0.0.1:{server.address[1]}"
    finally:
        server.close()
