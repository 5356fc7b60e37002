"""What the tests in a browser share."""

from contextlib import contextmanager

HOSTILE = "<img src=x onerror=alert(1)>"
TEXT = f"one two </script><b>three</b> {HOSTILE}"


def scheme(browser, value):
    """Sets what a person wishes: "light" or "dark"."""
    features = [{"name": "prefers-color-scheme", "value": value}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@contextmanager
def narrow(browser, width):
    """Lays pages out for a width in pixels; a window cannot be as narrow as a phone."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def at(page, name):
    """Returns the element with an id."""
    return page.find_element("id", name)
