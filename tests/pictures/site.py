"""Draws the page of a simulated broker in a headless Chromium, light and dark: ``python -m tests.pictures.site``."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.site.browser import browsing, served
from tests.site.simulated_page import simulated_site

OUT = Path(__file__).resolve().parents[2] / "docs" / "pictures"
WIDTH, HEIGHT = 1280, 1180
SCHEMES = ("light", "dark")


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
    with tempfile.TemporaryDirectory() as folder, served(simulated_site(Path(folder))) as address, browsing() as browser:
        browser.base = address
        browser.resize(WIDTH, HEIGHT)
        for scheme in SCHEMES:
            browser.media(prefers_color_scheme=scheme)
            browser.open("/")
            browser.run("document.documentElement.style.overflow = 'hidden'")  # no scroll bar in the picture
            path = given.out / f"page-{scheme}.png"
            if not browser.driver.save_screenshot(str(path)):
                raise SystemExit(f"{path} could not be written")
            sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
