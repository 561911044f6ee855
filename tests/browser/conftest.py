"""One browser for all these tests, and pages opened in it."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from fairsieve.report.page import write_page

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_SECONDS = 20


def find_browser():
    """The browser's program and its driver's, or what is missing."""
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    driver = shutil.which("chromedriver")
    if browser and driver:
        return browser, driver
    reason = f"needs {'chromedriver' if browser else 'Chromium'} on the path (see .ci/run)"
    if os.environ.get("FAIRSIEVE_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    return pytest.skip(reason)


@pytest.fixture(scope="session")
def driver():
    program, driver_program = find_browser()
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for switch in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{switch}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_program))
    yield found
    found.quit()


class Page:
    """A document, opened."""

    def __init__(self, driver, path):
        self.driver = driver
        self.path = path

    def open(self):
        """Load it, and wait for its charts."""
        self.driver.get_log("performance")
        self.driver.get_log("browser")
        self.show()
        self.driver.get(self.path.as_uri())
        self.wait_for("return document.documentElement.dataset.ready")
        return self

    def show(self, *, width=1280, scheme="light"):
        """On a wide screen or a narrow one, light or dark, and without smooth scrolling (clicks would miss)."""
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        emulated = {"features": [{"name": name, "value": value} for name, value in features.items()]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", emulated)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def wait_for(self, condition):
        """Until a script returns something true."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not (found := self.run(condition)):
            assert time.monotonic() < until, f"waited in vain: {condition}; console: {self.console()}"
            time.sleep(0.02)
        return found

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def texts(self, selector):
        """The texts of all elements that a selector finds."""
        found = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)"
        return self.run(found, selector)

    def console(self):
        """What the console said since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """Addresses asked for since the page was opened, but its own and what it carries in itself."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sending = [each["params"] for each in events if each["method"] == "Network.requestWillBeSent"]
        sent = [each["request"]["url"] for each in sending]
        assert self.path.as_uri() in sent  # else the log did not listen
        return [url for url in sent if not url.startswith((self.path.as_uri(), "data:", "blob:"))]

    def column(self, table, i):
        """The first texts of a column's visible cells."""
        return self.run(
            "return [...document.querySelectorAll(`#table-${arguments[0]} tbody tr:not([hidden])`)]"
            ".map((row) => row.cells[arguments[1]])"
            ".map((cell) => { const marks = [...cell.querySelectorAll('wbr')]; marks.forEach((mark) => mark.remove());"
            " cell.normalize(); return cell.firstChild.textContent; })",
            table,
            i,
        )


@pytest.fixture(scope="session")
def make_page(driver, tmp_path_factory):
    """Write a document and open it."""

    def make(document):
        path = Path(tmp_path_factory.mktemp("page")) / "page.html"
        write_page(document, path)
        return Page(driver, path).open()

    return make
