"""Sharing rule of a server: who may look, who gets full use, and which folders paths may lead to.

`fsviz app` writes it into the environment of the app that it starts, which reads it there at every page.
A password is never kept, only its scrypt hash.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import ip_address
from pathlib import Path
from threading import Lock
from urllib.parse import urlsplit

from fsviz.errors import BadInput

MIN_PASSWORD = 8
PROXIES = "FORWARDED_ALLOW_IPS"  # the proxies that are believed where a visitor comes from, as the web server reads it
# Headers that a proxy adds or passes on; a browser that asks by itself sends none of them.
_OF_A_PROXY = re.compile(
    r"forwarded|via|cdn-loop|proxy-.*|x-forwarded.*|x-(proxy|original|rewrite|envoy|azure|arr|appengine|remote|auth)-?.*"
    r"|(.*-)?(client|real|connecting|remote)-?(ip|addr)|x-scheme|x-request-id|x-amzn-trace-id|x-cloud-trace-context",
    re.IGNORECASE,
)
LOOK, PASSWORD, LOGIN, FOLDERS = "FSVIZ_SHARE", "FSVIZ_PASSWORD_HASH", "FSVIZ_LOGIN", "FSVIZ_FOLDERS"
PAGES = "FSVIZ_PAGES"
REFUSAL = (
    "This server can be reached from other computers, but was started without a rule for visitors. Stop it, then start "
    "it with 'fsviz app --share' (visitors may look), with '--password' (who knows it may do everything), or "
    "for this computer alone: without an address, and not behind a proxy."
)


@dataclass(frozen=True)
class Sharing:
    """The rule for visitors; without one (`on` is false) only this computer is served, and everything is allowed.

    look      anybody may look
    password  hash of the password that gives full use, "" for none
    login     patterns of the e-mail addresses that get full use after Streamlit's login; None without login
    folders   where paths that a visitor with full use types may lead
    pages     slugs of the pages that are shown, () for all; full use of a shared server shows the others too
    """

    look: bool = False
    password: str = ""
    login: tuple[str, ...] | None = None
    folders: tuple[Path, ...] = ()
    pages: tuple[str, ...] = ()

    @property
    def on(self) -> bool:
        return self.look or bool(self.password) or self.login is not None

    def to_environment(self) -> dict[str, str]:
        variables = {LOOK: "1" if self.look else "", PASSWORD: self.password}
        variables[LOGIN] = "" if self.login is None else " ".join(self.login or ("*",))
        return variables | {FOLDERS: os.pathsep.join(map(str, self.folders)), PAGES: ",".join(self.pages)}


def from_environment(environment: Mapping[str, str]) -> Sharing:
    login = environment.get(LOGIN, "").split()
    folders = filter(None, environment.get(FOLDERS, "").split(os.pathsep))
    look = environment.get(LOOK, "").lower() not in ("", "0", "false", "no")
    pages = tuple(filter(None, map(str.strip, environment.get(PAGES, "").split(","))))
    return Sharing(look, environment.get(PASSWORD, ""), tuple(login) or None, tuple(map(Path, folders)), pages)


def is_loopback(host: str | None) -> bool:
    """Whether an address, or a Host header (with its port), means this computer and nothing else."""
    try:
        name = (urlsplit(f"//{host or ''}").hostname or "").rstrip(".")
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def is_forwarded(headers: Iterable[str]) -> bool:
    """Whether the names of a request's headers show that a proxy passed it on."""
    return any(_OF_A_PROXY.fullmatch(name) for name in headers)


def client_of(address: str | None, headers: Iterable[str], environment: Mapping[str, str]) -> str:
    """The client whose wrong passwords are counted together: an address, or all behind unnamed proxies.

    The web server believes a proxy on this computer unless told otherwise, and anybody here can claim to be one.
    """
    if is_forwarded(headers) and environment.get(PROXIES, "").strip() in ("", "*"):
        return "forwarded"
    return address or ""


def hash_password(password: str) -> str:
    if len(password) < MIN_PASSWORD:
        raise BadInput(
            f"The password must have at least {MIN_PASSWORD} characters. Got {len(password)}. Choose a longer one."
        )
    salt = secrets.token_bytes(16)
    return f"{salt.hex()}:{_scrypt(password, salt).hex()}"


def is_password(password: str, stored: str) -> bool:
    """Whether `kept` is the hash of this password; takes as long for a near miss as for nonsense."""
    salt, _, key = stored.partition(":")
    try:
        return hmac.compare_digest(_scrypt(password[:1000], bytes.fromhex(salt)), bytes.fromhex(key))
    except ValueError:
        return False


def _scrypt(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode("utf-8", "replace"), salt=salt, n=2**14, r=8, p=1)


class Attempts:
    """Counts wrong passwords: at most `each` of one client and `all` of everybody within so many seconds."""

    def __init__(self, each: int = 5, all: int = 60, within: float = 60.0) -> None:
        self.each, self.all, self.within = each, all, within
        self._attempts: list[tuple[float, str]] = []
        self._lock = Lock()

    def take(self, client: str, now: float) -> float:
        """Counts one attempt and answers 0, or does not count it and answers how many seconds to wait."""
        with self._lock:
            self._attempts = [attempts for attempts in self._attempts if now - attempts[0] < self.within]
            of_client = [attempts for attempts in self._attempts if attempts[1] == client]
            for attempts, limit in ((of_client, self.each), (self._attempts, self.all)):
                if len(attempts) >= limit:
                    return attempts[-limit][0] + self.within - now
            self._attempts.append((now, client))
            return 0.0

    def forgive(self, client: str) -> None:
        """The client knew the password."""
        with self._lock:
            self._attempts = [attempt for attempt in self._attempts if attempt[1] != client]


def is_admitted(user: Mapping[str, object], patterns: tuple[str, ...]) -> bool:
    """Whether a visitor who logged in is one of those meant; an address that nobody checked counts for nothing."""
    if patterns == ("*",):
        return True
    address = str(user.get("email") or "").lower()
    return user.get("email_verified") not in (False, "false") and any(fnmatchcase(address, p.lower()) for p in patterns)


def path_in_folders(text: str, folders: tuple[Path, ...]) -> Path:
    """The path behind a text, refused when it leads out of all of these folders, directly or through a link.

    The answer is the same for what is there and what is not: nobody learns what else the computer holds.
    """
    paths: list[Path] = []
    for folder in folders:
        with suppress(OSError, RuntimeError, ValueError):
            path = (folder / text).resolve()
            if any(path.is_relative_to(root.resolve()) for root in folders):
                paths.append(path)
    if paths:
        return next((path for path in paths if path.exists()), paths[0])
    raise BadInput(
        "On a shared server a path must lie in a folder that was named when it was started: "
        f"{', '.join(map(str, folders)) or 'none was'}. Got {text[:160]!r}. Move the images there, or upload a zip."
    )
