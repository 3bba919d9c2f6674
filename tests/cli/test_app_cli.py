"""The command that starts the dashboard: what it refuses before anything listens, and what it hands over."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from fsviz import sharing
from fsviz.cli import app, build_parser
from tests.cli.calling import fails

ROOT = Path(__file__).resolve().parent.parent.parent


def parsed(*words: str):
    return build_parser().parse_args(["app", *words])


def test_pages_are_named_by_their_addresses(capsys) -> None:
    assert app.rule_of(parsed("--pages", "learn, images,learn")).pages == ("learn", "images")
    assert not app.rule_of(parsed("--pages", "learn")).on
    assert "Did you mean 'images'" in fails(capsys, "app", "--pages", "imges")
    assert "at least one page" in fails(capsys, "app", "--pages", ",")


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.20", "some.host.example", ""])
def test_an_open_address_needs_a_rule_for_visitors(capsys, address: str) -> None:
    message = fails(capsys, "app", "--address", address)
    assert "--share" in message and "--password" in message
    assert app.rule_of(parsed("--address", address, "--share")).look


def test_alone_on_this_computer_nothing_is_asked() -> None:
    args = parsed("--port", "8599", "--no-browser")
    assert app.rule_of(args) == sharing.Sharing()
    words = app.command(args)
    assert words[1:5] == ["-m", "streamlit", "run", str(ROOT / "app.py")]
    assert words[5:] == ["--server.address", "127.0.0.1", "--server.port", "8599", "--server.headless", "true"]


def test_the_password_comes_from_a_file_or_the_environment(monkeypatch, tmp_path: Path, capsys) -> None:
    monkeypatch.setenv("FSVIZ_PASSWORD", "from the environment")
    assert sharing.is_password("from the environment", app.rule_of(parsed("--password")).password)
    (tmp_path / "secret").write_text("from a file \n")
    monkeypatch.setenv("FSVIZ_PASSWORD_FILE", str(tmp_path / "secret"))
    assert sharing.is_password("from a file ", app.rule_of(parsed("--password")).password)
    monkeypatch.setenv("FSVIZ_PASSWORD_FILE", str(tmp_path / "absent"))
    assert "cannot be read" in fails(capsys, "app", "--password")
    (tmp_path / "secret").write_text("short\n")
    monkeypatch.setenv("FSVIZ_PASSWORD_FILE", str(tmp_path / "secret"))
    assert "at least 8" in fails(capsys, "app", "--password")


def test_a_password_is_no_argument(capsys) -> None:
    with pytest.raises(SystemExit):
        parsed("--password", "hunter22")
    assert "unrecognized arguments" in capsys.readouterr().err


def ask_on_a_terminal(*typed: str) -> str:
    """Output of the command when these lines are typed on its terminal."""
    ours, theirs = pty.openpty()
    code = (
        "from fsviz.cli import app, build_parser\nfrom fsviz.sharing import is_password\n"
        "rule = app.rule_of(build_parser().parse_args(['app', '--password']))\n"
        "print(is_password('typed by hand', rule.password))"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FSVIZ_PASSWORD")}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    os.close(theirs)
    message = b""
    for line in typed:
        while not message.endswith(b": "):  # what is typed before the question is thrown away
            letter = process.stdout.read(1)
            assert letter, message
            message += letter
        os.write(ours, f"{line}\n".encode())
        message += b"\n"
    message += process.communicate(timeout=120)[0]
    os.close(ours)
    return message.decode()


def test_the_password_is_asked_for_on_a_terminal() -> None:
    assert "True" in ask_on_a_terminal("typed by hand", "typed by hand")
    assert "differ" in ask_on_a_terminal("typed by hand", "typed by foot")


def test_without_a_terminal_the_file_is_named(capsys, monkeypatch) -> None:
    monkeypatch.delenv("FSVIZ_PASSWORD", raising=False)
    monkeypatch.delenv("FSVIZ_PASSWORD_FILE", raising=False)
    assert "FSVIZ_PASSWORD_FILE" in fails(capsys, "app", "--password")


def test_folders_are_checked_and_resolved(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("FSVIZ_PASSWORD", "long enough")
    (tmp_path / "pets").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "pets")
    rule = app.rule_of(parsed("--password", "--folder", str(tmp_path / "link"), "--folder", str(tmp_path)))
    assert rule.folders == (tmp_path / "pets", tmp_path)
    assert str(tmp_path / "pets") in app.describe(rule)
    assert "a folder that is there" in fails(capsys, "app", "--password", "--folder", str(tmp_path / "absent"))
    assert "full use" in fails(capsys, "app", "--share", "--folder", str(tmp_path))


def test_a_login_needs_its_settings(capsys, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(app, "ROOT", tmp_path)
    message = fails(capsys, "app", "--login")
    assert "streamlit[auth]" in message or "secrets.toml" in message
