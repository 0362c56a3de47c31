"""Draws the page and ``segtail top`` of a simulated broker in a headless Chromium: ``python -m tests.pictures.site``."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from streaming.pages.api.state import State
from tests.pictures.screen import screen_html
from tests.site.browser import Browser, browsing, served
from tests.site.simulated_page import page_of, simulated_state

OUT = Path(__file__).resolve().parents[2] / "docs" / "pictures"
WIDTH, HEIGHT = 1280, 1180
VIEWS = {"page": ("/", HEIGHT), "group": ("/groups/audit-export", 985)}
"""The path of a picture's view, and its height in pixels."""

SCHEMES = ("light", "dark")
SCREEN = (112, 28)
"""Columns and lines of the terminal."""


def main() -> int:
    """Draw the pictures; 2 where a program is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.pictures.site", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the pictures (%(default)s)")
    given = parser.parse_args()
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if missing:
        sys.stderr.write(f"pictures need {', '.join(missing)} (Debian: apt-get install chromium chromium-driver)\n")
        return 2
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        state = simulated_state(Path(folder))
        with browsing() as browser:
            _page(browser, state, given.out)
            _top(browser, state, Path(folder), given.out)
    return 0


def _page(browser: Browser, state: State, out: Path) -> None:
    with served(page_of(state)) as browser.base:
        for name, (path, height) in VIEWS.items():
            browser.resize(WIDTH, height)
            for scheme in SCHEMES:
                browser.media(prefers_color_scheme=scheme)
                browser.open(path)
                browser.run("document.documentElement.style.overflow = 'hidden'")  # no scroll bar in the picture
                _save(browser, out / f"{name}-{scheme}.png")


def _top(browser: Browser, state: State, folder: Path, out: Path) -> None:
    file = folder / "top.html"
    file.write_text(screen_html(state, *SCREEN), encoding="utf-8")
    browser.base = file.as_uri()
    browser.open("")
    browser.resize(*browser.run("return ['Width', 'Height'].map((side) => Math.ceil(document.querySelector('pre')[`offset${side}`]))"))
    _save(browser, out / "top.png")


def _save(browser: Browser, path: Path) -> None:
    if not browser.driver.save_screenshot(str(path)):
        raise SystemExit(f"{path} could not be written")
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    sys.exit(main())
