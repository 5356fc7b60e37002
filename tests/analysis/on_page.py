"""What the tests in a browser share."""

HOSTILE = "<img src=x onerror=alert(1)>"
TEXT = f"one two </script><b>three</b> {HOSTILE}"


def scheme(browser, value):
    """Sets what a person wishes: "light" or "dark"."""
    features = [{"name": "prefers-color-scheme", "value": value}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def at(page, name):
    """Returns the element with an id."""
    return page.find_element("id", name)
