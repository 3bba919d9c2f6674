"""Full use after a login, with an OpenID Connect provider of the tests' own."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.browser.conftest import free_port, serving, settle

SECRETS = """
[auth]
redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
cookie_secret = "a text that is long enough to sign cookies with"
client_id = "fsviz"
client_secret = "nobody knows"
server_metadata_url = "{provider}/.well-known/openid-configuration"
"""


class Provider(ThreadingHTTPServer):
    """Lets everybody in at once, under the e-mail address that `email` says."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Desk)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.key = RSAKey.generate_key(2048, {"kid": "tests"})
        self.email = ""
        self.nonce = ""


class Desk(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path == "/authorize":
            query = {name: values[0] for name, values in parse_qs(address.query).items()}
            self.server.nonce = query.get("nonce", "")
            self.send_response(302)
            self.send_header("Location", f"{query['redirect_uri']}?{urlencode({'code': 'x', 'state': query['state']})}")
            self.end_headers()
        elif address.path == "/keys":
            self._say({"keys": [self.server.key.as_dict(private=False)]})
        else:
            places = {"authorization": "authorize", "token": "token"}
            self._say(
                {f"{name}_endpoint": f"{self.server.url}/{place}" for name, place in places.items()}
                | {"issuer": self.server.url, "jwks_uri": f"{self.server.url}/keys"}
                | {"id_token_signing_alg_values_supported": ["RS256"], "response_types_supported": ["code"]}
                | {"subject_types_supported": ["public"]}
            )

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        now = int(time.time())
        claims = {"iss": self.server.url, "sub": self.server.email, "aud": "fsviz", "iat": now, "exp": now + 3600}
        claims |= {"nonce": self.server.nonce, "email": self.server.email, "email_verified": True}
        token = jwt.encode({"alg": "RS256", "kid": "tests"}, claims, self.server.key)
        self._say({"access_token": "x", "token_type": "Bearer", "expires_in": 3600, "id_token": token})

    def _say(self, answer: dict) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    server = Provider()
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


@pytest.fixture(scope="module")
def url(tmp_path_factory, provider: Provider) -> Iterator[str]:
    """A server for looking; who logs in with an address of the school may do more."""
    home: Path = tmp_path_factory.mktemp("login")
    (home / ".streamlit").mkdir()
    port = free_port()
    (home / ".streamlit" / "secrets.toml").write_text(SECRETS.format(port=port, provider=provider.url))
    words = ("fsviz", "app", "--no-browser", "--share", "--login", "*@school.edu")
    with serving(home / "workspace", *words, port=port, HOME=str(home)) as server_url:
        yield server_url


def log_in(tab, url: str) -> None:
    tab.context.clear_cookies()
    tab.goto(f"{url}/add_images")  # a page that draws nothing
    settle(tab)
    tab.get_by_role("button", name="Unlock editing").click()
    tab.get_by_role("button", name="Log in").click()
    tab.wait_for_url(re.compile(rf"^{re.escape(url)}/?(\?|$)"))  # back from the provider, on the first page
    settle(tab)


def test_who_logs_in_with_an_admitted_address_gets_full_use(url: str, provider: Provider, browser) -> None:
    provider.email = "Teacher@School.edu"
    tab = browser.new_page()
    log_in(tab, url)
    tab.get_by_text("Logged in: editing unlocked").wait_for()
    settle(tab)
    tab.get_by_role("link", name="Add your images").click()
    tab.get_by_text("A zip with a folder per class").first.wait_for()
    tab.get_by_role("button", name="Log out").click()
    tab.get_by_text("Read-only: no uploads").wait_for()
    tab.close()


def test_others_are_let_in_by_the_provider_but_only_look(url: str, provider: Provider, browser) -> None:
    provider.email = "somebody@school.edu.example"
    tab = browser.new_page()
    log_in(tab, url)
    tab.get_by_text("Read-only: no uploads").wait_for()
    settle(tab)
    tab.get_by_role("button", name="Unlock editing").click()
    tab.get_by_text("this account may not edit").wait_for()
    assert tab.get_by_role("link", name="Add images").count() == 0
    tab.close()
