"""Screenshots of each section of the essay, which are kept for people to look at."""

import base64
import os
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("selenium.webdriver", reason="selenium is absent")
from selenium.webdriver.support.ui import WebDriverWait

from tests.in_browser import narrow, scheme

pytestmark = pytest.mark.medium

TEXT = "one two three four"
WIDTHS = (1300, 380)
HEIGHT = 32_000  # The whole page, because a screenshot beyond the screen is slow.


def test_sections_fit_on_the_screen(shared_live, tmp_path):
    """Writes the screenshots to $T2T_REPRO_SCREENSHOTS or a folder of pytest."""
    page = shared_live.page
    folder = Path(os.environ.get("T2T_REPRO_SCREENSHOTS", tmp_path))
    print(f"screenshots: {folder}")
    try:
        for width in WIDTHS:
            with narrow(page, width, HEIGHT):
                page.get("about:blank")
                page.get(f"{shared_live.address}#text={quote(TEXT)}")
                WebDriverWait(page, 60).until(is_drawn)
                assert page.execute_script("return innerWidth") == width
                for wished in ("light", "dark"):
                    scheme(page, wished)
                    photograph(page, folder, f"{wished}-{width}")
    finally:
        scheme(page, "light")


def is_drawn(page):
    drawn = "return document.getElementById('essay').dataset.drawn"
    return page.execute_script(drawn) == TEXT


def photograph(page, folder, suffix):
    """Writes a picture of each section; asserts that none is wider than the page."""
    areas = page.execute_script(
        "return [...document.querySelectorAll('#essay section')].map((section) => {"
        "  const { left, top, width, height } = section.getBoundingClientRect();"
        "  return [section.id, { x: left + scrollX, y: top + scrollY, width, height }];"
        "})"
    )
    assert len(areas) == 12
    for name, area in areas:
        assert area["x"] + area["width"] <= page.execute_script("return innerWidth")
        picture = page.execute_cdp_cmd(
            "Page.captureScreenshot", {"clip": area | {"scale": 1}}
        )
        (folder / f"{name}-{suffix}.png").write_bytes(base64.b64decode(picture["data"]))
    sizes = "const { scrollWidth, scrollHeight } = document.documentElement;"
    sizes += "return [scrollWidth <= innerWidth, scrollHeight <= innerHeight]"
    assert page.execute_script(sizes) == [True, True]
