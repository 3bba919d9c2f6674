"""The real app on a free port, driven in Chromium.

A page test fails on any exception box, on any console error, and on any request that leaves 127.0.0.1.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
# The headless shell is Chromium without the window: a fifth less work per page.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((p for p in map(shutil.which, BROWSERS) if p), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--process-per-site",  # all tabs in one process, which has compiled Streamlit's scripts before: half the work
    # Room for what is made and thrown away, what was compiled is kept, and only what runs very often is compiled once
    # more to run faster: a fifth of the work of a page.
    "--js-flags=--min-semi-space-size=64 --max-semi-space-size=128 --no-flush-bytecode --interrupt-budget=660000"
    " --invocation-count-for-turbofan=3000",
    # Scripts that arrive are compiled when they are needed, and so found among what was compiled before, instead of
    # beforehand and anew for every tab: a fifth of the work that is left. The other two are what of Playwright's own
    # list, which this one replaces, concerns pages of this machine.
    "--disable-features=ScriptStreaming,PaintHolding,HttpsUpgrades",
]


# How long anything may take before a test gives up (ms). Waiting ends as soon as the thing is there, so patience costs
# nothing on a quiet machine, and a busy one fails no test.
PATIENCE = 240_000
QUESTION = re.compile(r"\?\s*$")  # the title of every page asks one
T = TypeVar("T")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in Path(str(item.fspath)).parts:
            item.add_marker(pytest.mark.browser)
            # A browser can stumble over a busy machine: what fails is tried once more, and the summary names it as
            # rerun. What is broken fails twice.
            item.add_marker(pytest.mark.flaky(reruns=1))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_app(
    home: Path, log: Path, *words: str, port: int | None = None, cwd: Path = ROOT, **environment: str
) -> tuple[subprocess.Popen, str]:
    """Starts the app on a free port with its own workspace; returns when it answers.

    words  what is run after `python -m`, before the port; as README says unless given
    """
    port = port or free_port()
    words = words or ("streamlit", "run", "app.py", "--server.headless", "true")
    command = [sys.executable, "-m", *words, "--port" if words[0] == "fsviz" else "--server.port", str(port)]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, "FSVIZ_HOME": str(home), **environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=1) as answer:
                if answer.status == 200:
                    return process, url
        except OSError:
            time.sleep(0.1)
    process.kill()
    raise RuntimeError(f"The app did not start:\n{log.read_text()}")


@contextmanager
def serving(home: Path, *words: str, **more: Any) -> Iterator[str]:
    """URL of an app that runs on this workspace inside the block; words and more as for `start_app`."""
    process, url = start_app(home, home.parent / "log.txt", *words, **more)
    try:
        yield url
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE / 1000)


@pytest.fixture(scope="session")
def app_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace of `app`."""
    return tmp_path_factory.mktemp("app") / "home"


@pytest.fixture(scope="session")
def app(app_home: Path) -> Iterator[str]:
    """URL of a running app, its workspace empty at first."""
    with serving(app_home) as url:
        yield url


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: 'apt-get install chromium'")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(tmp_path_factory.mktemp("chromium")),
            executable_path=CHROMIUM,
            headless=True,
            args=FLAGS,
            viewport={"width": 1440, "height": 900},
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE)
        anchor = context.pages[0]  # an empty page of the same site, so that its process outlives the tab of a test
        anchor.route("**/*", lambda route: route.fulfill(body="", content_type="text/html"))
        anchor.goto("http://127.0.0.1/")
        yield context
        context.close()


@pytest.fixture
def page(browser, app: str) -> Iterator[object]:
    """A fresh tab; after the test it must show a question, no exception, no console error and no outside request."""
    tab = browser.new_page()
    errors: list[str] = []
    outside: list[str] = []

    def on_console(message) -> None:
        if message.type == "error":
            errors.append(f"{message.text} {(message.location or {}).get('url', '')}")

    def on_request(request) -> None:
        if not request.url.startswith((app, app.replace("http", "ws", 1), "data:", "blob:", "about:")):
            outside.append(request.url)

    tab.on("console", on_console)
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("request", on_request)
    yield tab
    boxes = tab.locator('[data-testid="stException"]').count()
    titles = tab.locator("h1").all_inner_texts()
    tab.close()
    assert all(map(QUESTION.search, titles)), titles
    assert boxes == 0, "an exception box is on the page"
    assert not errors, errors
    assert not outside, outside


def settle(tab) -> None:
    """Waits until the script of the page has run and nothing is marked stale."""
    tab.wait_for_selector('[data-testid="stMainBlockContainer"]')
    tab.wait_for_function(
        """() => {
            const app = document.querySelector('[data-testid="stApp"]');
            return app && app.getAttribute('data-test-script-state') !== 'running'
                && app.getAttribute('data-test-script-state') !== 'initial'
                && !document.querySelector('[data-testid="stSkeleton"]');
        }""",
        polling=100,  # asking at every frame would draw every frame
    )
    tab.wait_for_timeout(150)


def follow(tab, slug: str) -> None:
    """Goes to a page as a reader does: by the bar, and for a second view of a page by the row below it."""
    from fsviz.ui.parts.page import PAGES

    page = PAGES[slug]
    tab.mouse.move(720, 700)  # off what it points at, whose tooltip lies on the menus
    row = tab.locator(".st-key-fsviz_siblings").get_by_role("link", name=page.label, exact=True).locator("visible=true")
    if not page.group:
        tab.get_by_test_id("stTopNavLink").filter(has_text=page.label).first.click()
    elif row.count():
        row.first.click()
    else:
        first = next(p for p in PAGES.values() if p.group == page.group) if page.is_view else page
        tab.get_by_test_id("stTopNavSection").filter(has_text=page.group).click()
        tab.get_by_test_id("stTopNavDropdownLink").filter(has_text=first.label).first.click()
        if page.is_view:
            tab.locator("h1", has_text=first.question).wait_for()
            row.first.click()
    tab.locator("h1", has_text=page.question).wait_for()


def still(locator) -> bytes:
    """Waits until something has stopped moving (a graph that grows into place, a table on a canvas); its picture.

    It has stopped when neither its picture nor its place changes.
    """
    end = time.monotonic() + PATIENCE / 1000
    before, now = None, (locator.screenshot(), locator.bounding_box())
    while before != now:
        assert time.monotonic() < end, "it never came to rest"
        locator.page.wait_for_timeout(200)
        before, now = now, (locator.screenshot(), locator.bounding_box())
    return now[0]


def eventually(tab, check: Callable[[], T]) -> T:
    """Asks again until `check` neither fails nor is False; its value.

    What an act changes is drawn some time after it, and until then the page shows what was there before: a value that
    is read once may be the old one.
    """
    end = time.monotonic() + PATIENCE / 1000
    while True:
        try:
            value = check()
            assert value is not False, "it never came true"
            return value
        except Exception:  # the page may be between two drawings: no element, no number in its text
            if time.monotonic() > end:
                raise
        tab.wait_for_timeout(100)


def insist(act: Callable[[], object], effect, state: str = "visible") -> None:
    """Repeats an act that may fall between two drawings of the page until `effect` is in this state.

    Only for acts that a second time does not take back, such as pointing at something.
    """
    from playwright.sync_api import TimeoutError

    end = time.monotonic() + PATIENCE / 1000
    while True:
        act()
        try:
            return effect.wait_for(state=state, timeout=10_000)
        except TimeoutError:
            assert time.monotonic() < end, "it never had an effect"
