"""Servers that others can reach: started for real, visited in Chromium and by clients that are no browser."""

from __future__ import annotations

import os
import re
import secrets
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from fsviz.sharing import REFUSAL
from tests.browser.conftest import PATIENCE, eventually, serving, settle

WORD = f"a word for the tests {secrets.token_hex(8)}"  # of these tests alone: another run at the same time has its own
FORBIDDEN = (
    "Save",
    "Start",
    "Cancel",
    "Resume",
    "Delete",
    "Remove",
    "Extract",
    "Import",
    "Upload",
    "Browse",
    "Download and",
)


# --- clients that are no browser ---------------------------------------------------------------------------------


def dial(url: str, **headers: str) -> ClientConnection:
    origin = headers.pop("Origin", None)
    address = url.replace("http", "ws", 1) + "/_stcore/stream"
    host = headers.pop("Host", None)
    more = {"additional_headers": headers, "max_size": None, "open_timeout": PATIENCE / 1000}
    if host is None:
        return connect(address, origin=origin, **more)
    port = int(url.rpartition(":")[2])
    wire = socket.create_connection(("127.0.0.1", port))
    return connect(f"ws://{host}/_stcore/stream", sock=wire, **more)


@contextmanager
def visiting(url: str, page: str = "", **headers: str) -> Iterator[tuple[str, str]]:
    """A page opened without a browser: the session's id and the text of the page."""
    with dial(url, **headers) as line:
        ask = BackMsg()
        ask.rerun_script.page_name = page
        line.send(ask.SerializeToString())
        elements, session, kind = [], "", None
        while kind != "script_finished":
            message = ForwardMsg.FromString(line.recv(timeout=PATIENCE / 1000))
            kind = message.WhichOneof("type")
            if kind == "new_session":
                session = message.new_session.initialize.session_id
            elif kind == "delta":
                elements.append(str(message.delta.new_element))
        yield session, "\n".join(elements)


def forbidden(page_text: str) -> list[str]:
    """Labels of the page's buttons that visitors may not press."""
    labels = re.findall(r'\bbutton {(?:.|\n)*?label: "([^"]*)"', page_text)
    return [label for label in labels if label.startswith(FORBIDDEN)]


def upload(url: str, session: str) -> int:
    """The status of an upload, sent as the browser would."""
    with urllib.request.urlopen(f"{url}/_stcore/health", timeout=PATIENCE / 1000) as answer:
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
    body = b'--x\r\nContent-Disposition: form-data; name="f"; filename="f.zip"\r\n\r\nhello\r\n--x--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=x", "Cookie": cookie}
    headers["X-Xsrftoken"] = cookie.partition("=")[2].strip('"')
    request = urllib.request.Request(f"{url}/_stcore/upload_file/{session}/1", body, headers, method="PUT")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE / 1000) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.fixture(scope="module")
def outside() -> Iterator[tuple[str, list[bytes]]]:
    """A listener that plays the way out of this computer, and the requests that it received."""
    requests: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def listen() -> None:
        while True:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            with line:
                requests.append(line.recv(1000))

    threading.Thread(target=listen, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", requests
    listener.close()


@pytest.fixture(scope="module")
def open_server(tmp_path_factory, outside) -> Iterator[str]:
    """Plain Streamlit on every network, without a word about visitors."""
    words = ("streamlit", "run", "app.py", "--server.headless", "true", "--server.address", "0.0.0.0")
    ways = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), outside[0])
    with serving(tmp_path_factory.mktemp("open") / "home", *words, **ways, no_proxy="127.0.0.1") as url:
        yield url


def test_an_open_server_without_a_rule_shows_one_sentence(open_server: str, browser) -> None:
    for path in ("add_images", "runs"):  # all that is sent
        with visiting(open_server, path) as (_, page_text):
            assert "without a rule" in page_text and "Path of a folder" not in page_text, path
            assert not forbidden(page_text), path
    for path in ("", "add_images?do=Import+features"):  # all that is shown
        tab = browser.new_page()
        tab.goto(f"{open_server}/{path}")
        tab.get_by_text("started without a rule for visitors").wait_for()
        settle(tab)
        main = tab.locator('[data-testid="stMain"]')
        eventually(tab, lambda read=main.inner_text: read().removeprefix("🔒").strip() == REFUSAL)
        assert tab.locator('[data-testid="stPageLink"]').count() == 0
        tab.close()


def test_an_open_server_takes_no_files(open_server: str) -> None:
    with visiting(open_server) as (session, page_text):
        assert "without a rule" in page_text
        assert upload(open_server, session) == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost:3000", "null"])
def test_other_web_pages_cannot_connect_and_nobody_is_asked(open_server: str, outside, origin: str) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        dial(open_server, Origin=origin)
    with visiting(open_server, Origin=open_server) as (session, _):  # its own pages can
        assert session
    assert outside[1] == []  # neither at the start nor now


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},  # a name of somebody else that leads to this computer
        {"X-Forwarded-For": "203.0.113.9"},  # a proxy in front of a server of one's own
        {"Forwarded": "for=203.0.113.9"},
        {"Via": "1.1 proxy.example"},
        {"X-Forwarded-Proto": "https"},
        {"X-Forwarded-Server": "proxy.example"},
        {"X-Client-IP": "203.0.113.9"},
        {"CF-Connecting-IP": "203.0.113.9"},
    ],
)
def test_a_server_of_ones_own_is_for_this_computer_alone(app: str, headers: dict[str, str]) -> None:
    with visiting(app, "add_images", **headers) as (session, page_text):
        assert "without a rule for visitors" in page_text and "Path of a folder" not in page_text
        assert upload(app, session) == 403


def test_on_this_computer_everything_is_there(app: str) -> None:
    with visiting(app, "sample_tasks") as (_, page_text):
        assert forbidden(page_text) and "file_uploader {" in page_text
    with visiting(app, "add_images") as (session, page_text):
        assert "Path of a folder" in page_text
        assert upload(app, session) == 204
    answer = urllib.request.urlopen(app, timeout=PATIENCE / 1000)
    assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'self'"


def converse(line: ClientConnection, page: str, **widgets: str | bool) -> list:
    """Runs a page with these values of widgets, by their id; returns what it drew. A button is True."""
    ask = BackMsg()
    ask.rerun_script.page_name = page
    for name, value in widgets.items():
        kind = "trigger_value" if isinstance(value, bool) else "string_value"
        ask.rerun_script.widget_states.widgets.add(id=name, **{kind: value})
    line.send(ask.SerializeToString())
    deltas, kind = [], None
    while kind != "script_finished":
        answer = ForwardMsg.FromString(line.recv(timeout=PATIENCE / 1000))
        kind = answer.WhichOneof("type")
        if kind == "delta":
            deltas.append(answer.delta)
    return deltas


def tell(url: str, message: str, **headers: str) -> list[str]:
    """Sends the server a message that no page needs; returns the kinds of its answers until it answers a heartbeat."""
    with dial(url, **headers) as line:
        first, beat = BackMsg(), BackMsg()
        setattr(first, message, True)
        beat.app_heartbeat = True
        line.send(first.SerializeToString())
        line.send(beat.SerializeToString())
        kinds = []
        while "heartbeat_ack" not in kinds:
            kinds.append(ForwardMsg.FromString(line.recv(timeout=PATIENCE / 1000)).WhichOneof("type"))
        return kinds


def n_computed(url: str) -> int:
    """The number of results on the page Learn that were computed, not cached: each has a spinner while it lasts."""
    with dial(url) as line:
        deltas = converse(line, "learn")
    assert "Question:" in str(deltas)
    return sum(delta.WhichOneof("type") == "new_transient" for delta in deltas)


def test_who_started_the_server_may_empty_its_caches_and_nobody_through_a_proxy(app: str) -> None:
    n_computed(app)
    assert n_computed(app) == 0
    tell(app, "clear_cache", Via="1.1 proxy.example")
    assert n_computed(app) == 0
    tell(app, "clear_cache")
    assert n_computed(app) > 0


# --- shared with a password --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """A server for looking, with a password for more; and the folder it may read."""
    folder = tmp_path_factory.mktemp("shared")
    words = ("fsviz", "app", "--address", "0.0.0.0", "--no-browser", "--share", "--password", "--folder", str(folder))
    with serving(tmp_path_factory.mktemp("share") / "home", *words, FSVIZ_PASSWORD=WORD) as url:
        yield url, folder


def test_visitors_may_look_and_change_nothing(shared) -> None:
    """Read from what the server sends, all that a browser could show; tests/ui/test_access.py walks every page."""
    for path in ("", "sample_tasks", "runs", "add_images"):
        with visiting(shared[0], path) as (_, page_text):
            assert "Read-only: no uploads" in page_text, path
            assert "exception {" not in page_text, path
            assert not forbidden(page_text), path
            assert "file_uploader {" not in page_text and "add_images" not in page_text, path


def test_a_visitor_does_not_empty_the_caches_of_all(shared) -> None:
    url, _ = shared
    n_computed(url)
    assert n_computed(url) == 0
    assert tell(url, "clear_cache") == tell(url, "load_git_info") == ["heartbeat_ack"]
    assert tell(url, "set_run_on_save") == ["heartbeat_ack"]  # else it says that its settings changed
    assert n_computed(url) == 0


def guess(url: str, word: str, **headers: str) -> str:
    """The answer of the page to a password sent by a client that is no browser."""
    with dial(url, **headers) as line:
        elements = [delta.new_element for delta in converse(line, "add_images")]  # a page that draws nothing
        field = next(e.text_input.id for e in elements if e.text_input.label == "Password")
        button = next(e.button.id for e in elements if e.button.label == "Unlock")
        return str(converse(line, "add_images", **{field: word, button: True}))


def test_wrong_passwords_count_whatever_address_is_claimed(shared) -> None:
    """Nobody named a proxy when the server was started, so no header says where a visitor comes from."""
    answers = [guess(shared[0], "a wrong word", **{"X-Forwarded-For": f"203.0.113.{n}"}) for n in range(6)]
    assert ["Wrong password" in answer for answer in answers] == [True] * 5 + [False]
    assert "Too many wrong passwords" in answers[5]


def test_a_visitor_sees_no_way_to_change_a_page_and_files_are_taken_from_the_unlocked_alone(shared, browser) -> None:
    url, _ = shared
    tab = browser.new_page()
    tab.goto(f"{url}/sample_tasks")
    tab.get_by_text("Read-only: no uploads").wait_for()
    settle(tab)
    expect(tab.locator("h1")).to_have_count(1)
    labels = [text.strip() for text in tab.get_by_role("button").all_inner_texts()]
    assert labels and not [label for label in labels if label.startswith(FORBIDDEN)]
    assert tab.locator("input[type=file]").count() == 0
    assert tab.get_by_role("link", name="Add images").count() == 0
    with visiting(url, "add_images") as (session, page_text):
        assert "cannot save datasets" in page_text
        assert upload(url, session) == 403
    tab.get_by_role("button", name="Unlock editing").click()
    tab.get_by_label("Password", exact=True).fill(WORD)
    tab.get_by_role("button", name="Unlock", exact=True).click()
    tab.get_by_text("Editing unlocked").wait_for()
    settle(tab)
    tab.get_by_text("Import a testbed").click()
    content = {"name": "tasks.csv", "mimeType": "text/csv", "buffer": b"task,labels\n"}
    tab.locator("input[type=file]").set_input_files(content)
    tab.get_by_text("tasks.csv").first.wait_for()
    tab.close()


def test_the_password_opens_one_session_and_no_other(shared, browser) -> None:
    url, folder = shared
    tab, second_tab = browser.new_page(), browser.new_page()
    for page in (tab, second_tab):
        page.goto(f"{url}/add_images")  # a page that draws nothing
        settle(page)
        page.get_by_role("button", name="Unlock editing").click()
    tab.get_by_label("Password", exact=True).fill("a wrong word")
    tab.get_by_role("button", name="Unlock", exact=True).click()
    tab.get_by_text("Wrong password").wait_for()
    settle(tab)
    tab.get_by_label("Password", exact=True).fill(WORD)
    tab.get_by_role("button", name="Unlock", exact=True).click()
    tab.get_by_text("Editing unlocked").wait_for()
    settle(tab)
    tab.get_by_role("link", name="Add images").click()
    field = tab.get_by_role("textbox", name="Path of a folder")
    field.fill("/etc/passwd")
    field.press("Enter")
    tab.get_by_text("must lie in a folder").wait_for()
    expect(tab.locator('[data-testid="stMain"]')).to_contain_text(str(folder))
    second_tab.reload()
    second_tab.get_by_text("Read-only: no uploads").wait_for()
    second_tab.close()
    tab.close()


def test_the_password_is_nowhere_to_be_read(shared) -> None:
    """Neither in the arguments nor in the environment of any process that runs now."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("there is no /proc here")
    mine = str(os.getpid())
    for process in Path("/proc").glob("[0-9]*"):
        for kind in ("cmdline", "environ"):
            try:
                assert process.name == mine or WORD.encode() not in (process / kind).read_bytes(), (process, kind)
            except OSError:
                continue
