"""app: the dashboard, for this computer alone or shared with others."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from fsviz import sharing
from fsviz.cli import add_command, names, progress
from fsviz.errors import BadInput, UnknownName
from fsviz.shipped import INSTALLED, ROOT

GIVEN, FILE = "FSVIZ_PASSWORD", "FSVIZ_PASSWORD_FILE"


def register(commands: argparse._SubParsersAction) -> None:
    parser = add_command(commands, "app", run_app, str, "Start the dashboard.")
    parser.add_argument(
        "--port", type=int, default=None, metavar="N", help="Port (default: the first free one from 8501)."
    )
    parser.add_argument(
        "--address",
        default="127.0.0.1",
        help="Address to listen on (default: this computer only); 0.0.0.0 is every network, see --share.",
    )
    parser.add_argument("--no-browser", action="store_true", help="Do not open a browser.")
    parser.add_argument(
        "--share", action="store_true", help="Read-only for visitors: no paths, uploads, runs, deleting or saving."
    )
    parser.add_argument(
        "--password",
        action="store_true",
        help=f"Full use for visitors who know the password, which is typed or read from {FILE} or {GIVEN}.",
    )
    parser.add_argument(
        "--login",
        nargs="*",
        metavar="ADDRESS",
        help="Full use for visitors who log in (OpenID Connect, set up in .streamlit/secrets.toml); with addresses, "
        "such as '*@school.edu', only for these.",
    )
    parser.add_argument(
        "--folder",
        action="append",
        default=[],
        metavar="PATH",
        help="Folder that visitors with full use may read; may be repeated.",
    )
    parser.add_argument(
        "--pages",
        metavar="NAMES",
        help="Pages to show, with commas between, such as 'learn,images'; the others are hidden.",
    )


def run_app(args: argparse.Namespace) -> NoReturn:
    rule = rule_of(args)
    environment = {name: value for name, value in os.environ.items() if name not in (GIVEN, FILE)}
    words = command(args)
    if rule.on:
        progress(f"fsviz: {describe(rule)}")
    if rule.pages:
        progress(f"fsviz: pages shown: {', '.join(rule.pages)}.")
    sys.stdout.flush()
    os.chdir(ROOT)
    os.execve(words[0], words, environment | _home() | rule.to_environment())


def rule_of(args: argparse.Namespace) -> sharing.Sharing:
    """The permissions of visitors; refused when others could come and nothing was said about them."""
    if args.login is not None:
        _check_login()
    rule = sharing.Sharing(
        args.share,
        sharing.hash_password(_password()) if args.password else "",
        None if args.login is None else tuple(args.login) or ("*",),
        tuple(_folder(text) for text in args.folder),
        _pages(args.pages),
    )
    if not rule.on and not sharing.is_loopback(args.address):
        raise BadInput(
            f"--address {args.address} exposes the dashboard to other computers. Add --share (read-only) or --password."
        )
    if rule.folders and not (rule.password or rule.login):
        raise BadInput(
            "--folder names what may be read with full use. Give --password or --login too, or leave it out."
        )
    return rule


def command(args: argparse.Namespace) -> list[str]:
    """The words that start the server, wherever this command is given."""
    words = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py"), "--server.address", args.address]
    words += ["--server.port", str(args.port)] if args.port is not None else []
    return words + (["--server.headless", "true"] if args.no_browser else [])


def describe(rule: sharing.Sharing) -> str:
    """The rule for whoever starts the server."""
    rule_text = "visitors may look" if rule.look else "visitors see nothing"
    keys = [*(["the password"] if rule.password else []), *(["a login"] if rule.login else [])]
    if keys:
        where = f", with paths below {', '.join(map(str, rule.folders))}" if rule.folders else ", without paths"
        rule_text += f"; {' or '.join(keys)} gives full use{where}"
    return rule_text + ". Put it behind a proxy with TLS before it leaves your own network: see docs/how-to/sharing.md."


def _password() -> str:
    """The password, from a file, the environment or the terminal; never an argument, which other users could see."""
    try:
        if os.environ.get(FILE):
            return Path(os.environ[FILE]).read_text(encoding="utf-8").strip("\r\n")
    except (OSError, ValueError) as error:
        raise BadInput(f"The password file {os.environ[FILE]} ({FILE}) cannot be read ({error}).") from None
    if os.environ.get(GIVEN):
        return os.environ[GIVEN]
    if not sys.stdin.isatty():
        raise BadInput(f"There is no terminal to ask for the password on. Put it into a file and name it in {FILE}.")
    password = getpass.getpass("Password for full use: ")
    if getpass.getpass("The same again: ") != password:
        raise BadInput("The two passwords differ. Start again.")
    return password


def _folder(text: str) -> Path:
    folder = Path(text).expanduser().resolve()
    if not folder.is_dir() or os.pathsep in str(folder):
        raise BadInput(f"--folder must be a folder that is there, without {os.pathsep!r} in its name. Got {text}.")
    return folder


def _pages(text: str | None) -> tuple[str, ...]:
    """The pages to show, by the names of their addresses."""
    if text is None:
        return ()
    slugs, requested = sorted(path.stem for path in (ROOT / "pages").glob("*.py")), names(text)
    if not requested:
        raise BadInput(f"--pages names at least one page. Choose from {', '.join(slugs)}.")
    for name in requested:
        if name not in slugs:
            raise UnknownName("page", name, slugs)
    return tuple(dict.fromkeys(requested))


def _check_login() -> None:
    if find_spec("authlib") is None or find_spec("httpx") is None:
        raise BadInput("--login needs more packages. Install them with: pip install 'streamlit[auth]'")
    secrets = (ROOT / ".streamlit" / "secrets.toml", Path.home() / ".streamlit" / "secrets.toml")
    if not any(path.is_file() for path in secrets):
        raise BadInput(f"--login needs the [auth] section of {secrets[INSTALLED]}. docs/how-to/sharing.md shows one.")


def _home() -> dict[str, str]:
    """The workspace stays the one of the folder that the command was given in."""
    from fsviz.workspace import home

    return {"FSVIZ_HOME": str(home())}
