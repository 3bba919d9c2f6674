"""The rule for visitors: how it is passed on, who is local, passwords, attempts, folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsviz import sharing
from fsviz.errors import BadInput
from fsviz.sharing import Attempts, Sharing


@pytest.mark.parametrize(
    "rule",
    [
        Sharing(),
        Sharing(look=True),
        Sharing(password="00:ff", folders=(Path("/srv/a b"), Path("/srv/c"))),
        Sharing(look=True, login=("*@school.edu", "me@home.org")),
        Sharing(login=("*",)),
    ],
)
def test_the_rule_survives_the_environment(rule: Sharing) -> None:
    assert sharing.from_environment(rule.to_environment()) == rule
    assert rule.on == (rule != Sharing())


def test_sharing_can_be_set_by_hand() -> None:
    assert sharing.from_environment({"FSVIZ_SHARE": "yes"}).look
    assert not any(sharing.from_environment({"FSVIZ_SHARE": value}).on for value in ("", "0", "false", "no"))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "localhost", "LOCALHOST:8501", "[::1]:80", "127.0.0.1:1"])
def test_this_computer(host: str) -> None:
    assert sharing.is_loopback(host)


@pytest.mark.parametrize(
    "host",
    (
        *(None, "", "0.0.0.0", "[::]", "192.168.1.5:8501", "10.0.0.1", "2130706433", "unix:///tmp/socket", "evil:x"),
        *("localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example"),
    ),
)
def test_not_this_computer(host: str | None) -> None:
    assert not sharing.is_loopback(host)


@pytest.mark.parametrize(
    "name",
    (
        *("Forwarded", "Via", "X-Forwarded-For", "x-forwarded-proto", "X-Forwarded-Host", "X-Forwarded-Server"),
        *("X-Forwarded", "X-Real-IP", "X-Client-IP", "True-Client-IP", "CF-Connecting-IP", "X-Cluster-Client-Ip"),
        *("X-Original-URL", "X-Envoy-External-Address", "Cdn-Loop", "X-Request-Id", "Remote-Addr", "X-Scheme"),
    ),
)
def test_a_request_that_a_proxy_passed_on(name: str) -> None:
    assert sharing.is_forwarded(["Host", name])


def test_a_request_of_a_browser_itself() -> None:
    names = "Host Connection Upgrade Origin Pragma Cache-Control User-Agent Accept Accept-Encoding Accept-Language "
    names += "Cookie DNT Priority Referer Sec-WebSocket-Key Sec-WebSocket-Version Sec-WebSocket-Extensions "
    names += "Sec-WebSocket-Protocol Sec-Fetch-Site Sec-CH-UA Upgrade-Insecure-Requests If-None-Match Authorization"
    assert not sharing.is_forwarded(names.split())


@pytest.mark.parametrize("proxies", [{}, {"FORWARDED_ALLOW_IPS": ""}, {"FORWARDED_ALLOW_IPS": "*"}])
def test_where_a_visitor_comes_from_is_believed_of_named_proxies_alone(proxies: dict[str, str]) -> None:
    clients = {sharing.client_of(f"203.0.113.{n}", ["X-Forwarded-For"], proxies) for n in range(9)}
    assert len(clients) == 1 and not clients & {"", "203.0.113.1"}
    assert sharing.client_of("203.0.113.1", ["Host"], proxies) == "203.0.113.1"
    names = {"FORWARDED_ALLOW_IPS": "127.0.0.1"}
    assert sharing.client_of("203.0.113.1", ["X-Forwarded-For"], names) == "203.0.113.1"
    assert sharing.client_of(None, ["Host"], names) == ""


def test_a_password_is_known_by_its_hash_alone() -> None:
    saved = sharing.hash_password("correct horse ünï")
    assert sharing.is_password("correct horse ünï", saved)
    assert not any(
        sharing.is_password(wrong, saved) for wrong in ("", "correct horse", "CORRECT HORSE ÜNÏ", "x" * 10**6)
    )
    assert "horse" not in saved and sharing.hash_password("correct horse ünï") != saved  # salted
    assert not any(sharing.is_password("", nonsense) for nonsense in ("", ":", "zz:zz", "00:"))
    with pytest.raises(BadInput, match="at least 8 characters"):
        sharing.hash_password("short")


def test_five_wrong_passwords_a_minute_for_one_client() -> None:
    attempts = Attempts(each=5, all=7)
    assert [attempts.take("a", now) for now in range(5)] == [0.0] * 5
    assert attempts.take("a", 5.0) == 55.0  # until the first one is a minute old
    assert attempts.take("b", 5.0) == 0.0
    assert attempts.take("a", 60.0) == 0.0
    assert attempts.take("a", 60.5) == 0.5  # refused ones do not count


def test_wrong_passwords_of_everybody_count_together() -> None:
    attempts = Attempts(each=5, all=7)
    assert [attempts.take(f"client {n}", 10.0) for n in range(7)] == [0.0] * 7
    assert attempts.take("another", 12.0) == 58.0


def test_who_knew_the_password_starts_anew() -> None:
    attempts = Attempts(each=1)
    attempts.take("a", 0.0)
    attempts.forgive("a")
    assert attempts.take("a", 0.0) == 0.0


@pytest.mark.parametrize(
    ("user", "patterns", "admitted"),
    [
        ({"email": "Ann@School.edu"}, ("*@school.edu",), True),
        ({"email": "ann@school.edu", "email_verified": False}, ("*@school.edu",), False),
        ({"email": "ann@school.edu.evil.example"}, ("*@school.edu",), False),
        ({}, ("*@school.edu",), False),
        ({}, ("*",), True),
        ({"email": "bob@home.org"}, ("*@school.edu", "bob@home.org"), True),
    ],
)
def test_who_is_admitted_after_a_login(user: dict, patterns: tuple[str, ...], admitted: bool) -> None:
    assert sharing.is_admitted(user, patterns) is admitted


def test_paths_stay_inside_the_named_folders(tmp_path: Path) -> None:
    pets, birds, secret = (tmp_path / name for name in ("pets", "birds", "secret"))
    for folder in (pets, birds, secret):
        (folder / "inner").mkdir(parents=True)
    (pets / "link").symlink_to(secret)
    (pets / "neighbour").symlink_to(birds)
    both = (pets, birds)
    assert sharing.path_in_folders(str(birds / "inner"), both) == birds / "inner"
    (birds / "owl").mkdir()
    assert sharing.path_in_folders("owl", both) == birds / "owl"  # taken from the folder that has it
    assert sharing.path_in_folders(str(pets), both) == pets
    assert sharing.path_in_folders("neighbour/inner", both) == birds / "inner"  # a link into another named folder
    assert (
        sharing.path_in_folders("~", both) == pets / "~"
    )  # a name like any other: the server's own home is nobody's business
    reports = set()
    outside = (str(secret), str(tmp_path), f"{pets}-more", "/etc/passwd", "/", "link", "link/inner", "../secret", "\0")
    for text in outside:
        with pytest.raises(BadInput, match="must lie in a folder") as error:
            sharing.path_in_folders(text, (pets,))
        reports.add(str(error.value).replace(repr(text), ""))
    assert len(reports) == 1  # the same for what is there and what is not
    with pytest.raises(BadInput, match="none was"):
        sharing.path_in_folders(str(pets), ())
