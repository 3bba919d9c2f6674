"""The server around the pages: what it refuses before any page runs, and where a page finds it.

Streamlit decides by itself whether another web page may connect, and asks an outside address for its own before it
says no; it also takes files for any session, whether or not a page asked for them, and lets every visitor empty the
caches of all. And a page that is opened by its own address looks for the server below that address first, which fails
twice in the console.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, PlainTextResponse
from streamlit import cli_util, config, file_util
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime.runtime_util import get_max_widget_state_size_bytes
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server import server_util

from fsviz import sharing
from fsviz.errors import FsvizError
from fsviz.shipped import ROOT
from fsviz.ui.parts import access

_FIRST_PAGE_SECONDS = 4
_SLOW = ("scipy.stats",)  # intervals
_UPLOADS = "/_stcore/upload_file/"
# What the page in a browser has to tell the server. The rest (such as clear_cache, which empties the caches of all
# visitors, and load_git_info, which names branch and files) is for whoever started it.
_NEEDED = {"rerun_script", "stop_script", "app_heartbeat", "file_urls_request", "backend_operation_request"}
_PAGES = {path.stem for path in (ROOT / "pages").glob("*.py")}
# The folder of the page's address, whatever stands before it on the way through a proxy.
_WHERE = '<script>window.__streamlit = {BACKEND_BASE_URL: new URL("./", location.href).href}</script>'


class Doorkeeper:
    """Refuses connections from other web pages, files for sessions that may not upload any, and what visitors may not
    tell the server.

    No other site may show the app in a frame either: a click there would be a click here.
    """

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = Headers(scope=scope) if scope["type"] != "lifespan" else Headers()
        if scope["type"] == "websocket" and not _is_own_page(headers.get("origin"), headers.get("host")):
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "websocket" and not access.is_owner(headers):
            receive = _of_visitors(receive)
        if scope["type"] == "http":
            _, matched, rest = scope["path"].partition(_UPLOADS)
            if matched and scope["method"] == "PUT" and not access.takes_files_of(rest.partition("/")[0]):
                await PlainTextResponse("This visitor may not upload files.", 403)(scope, receive, send)
                return
            send = _framed_by_itself(send)
            if scope["method"] == "GET" and _is_page(scope["path"]):
                await HTMLResponse(_page(), headers={"cache-control": "no-cache"})(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _is_own_page(origin: str | None, host: str | None) -> bool:
    """Whether a connection comes from a page of the app; what is not a browser names no origin."""
    return origin is None or not config.get_option("server.enableCORS") or urlsplit(origin).netloc == host


def _is_page(path: str) -> bool:
    """Whether an address is that of a page other than the first, which finds the server by itself."""
    base = str(config.get_option("server.baseUrlPath")).strip("/")
    return path.removeprefix(f"/{base}" if base else "").removeprefix("/") in _PAGES


@cache
def _page() -> str:
    """Streamlit's page, told where its server is."""
    page = (Path(file_util.get_static_dir()) / "index.html").read_text(encoding="utf-8")
    return page.replace("<head>", f"<head>{_WHERE}", 1)


def _of_visitors(receive: Any) -> Any:
    """The messages of a visitor's page, without those that no page needs."""

    async def needed() -> Any:
        while True:
            message = await receive()
            if message["type"] != "websocket.receive" or _is_needed(message.get("bytes")):
                return message

    return needed


def _is_needed(content: bytes | None) -> bool:
    """Whether a message is one that pages send; Streamlit itself refuses what is too long or cannot be read."""
    if content is None or len(content) > get_max_widget_state_size_bytes():
        return True
    try:
        return BackMsg.FromString(content).WhichOneof("type") in _NEEDED
    except DecodeError:
        return True


def _framed_by_itself(send: Any) -> Any:
    async def with_rule(message: Any) -> None:
        if message["type"] == "http.response.start":
            rule = (b"content-security-policy", b"frame-ancestors 'self'")
            message = {**message, "headers": [*message.get("headers", []), rule]}
        await send(message)

    return with_rule


@asynccontextmanager
async def lifespan(_: Any) -> AsyncIterator[None]:
    """Opens the browser, as Streamlit does for apps without a doorkeeper.

    What takes seconds to import or to compile, and pages need sooner or later, comes meanwhile: first what the first
    page asks for, the rest when that page is there. A server that refuses everybody needs none of it.
    """
    screen = sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if screen and not config.get_option("server.headless"):
        address = config.get_option("server.address")
        cli_util.open_browser(server_util.get_url(address if sharing.is_loopback(address) else "localhost"))
    first = threading.Thread(target=_look, daemon=True)
    later = threading.Timer(_FIRST_PAGE_SECONDS, _warm_up, [first])
    later.daemon = True
    if access.may_be_visited():
        first.start()
        later.start()
    yield
    later.cancel()


def _look() -> None:
    """Prepares what the first page shows: the records of all pages, images, then what separates the two tasks."""
    from fsviz.ui.parts import caching, shell
    from fsviz.ui.parts.page import PAGES

    len(PAGES)
    logging.getLogger(get_script_run_ctx.__module__).setLevel(logging.ERROR)  # warns of a page that nobody looks at
    with suppress(FsvizError):  # the page says why
        _ = caching.look(shell.load_dataset(shell.DEFAULT_DATASET)).causes


def _warm_up(first: threading.Thread) -> None:
    first.join()
    for name in _SLOW:
        importlib.import_module(name)
    from fsviz.analyses import semantic_sampling
    from fsviz.studies import causes, confusion

    semantic_sampling.warm_up()
    confusion.warm_up()
    causes.warm_up()


MIDDLEWARE = (Middleware(Doorkeeper),)
