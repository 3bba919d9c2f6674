"""Weights from the internet: ask quietly, fail quickly, and say in one sentence what to do instead."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlparse

from fsviz.errors import BadInput, Missing


@contextmanager
def downloading(name: str) -> Iterator[None]:
    """Around a call that may download weights: cached files are used without a connection, any failure is one sentence.

    Without a connection the hub's client would retry for most of a minute; here a host name that cannot be looked up
    switches it to its cache at once.
    """
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    reachable = before or _reachable(constants.ENDPOINT)
    loggers = [logging.getLogger(n) for n in ("", "huggingface_hub", "timm", "open_clip")]
    levels = [logger.level for logger in loggers]
    try:
        constants.HF_HUB_OFFLINE = before or not reachable
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        yield
    except (BadInput, Missing):
        raise
    except ImportError as error:
        raise Missing(
            f"{name} needs a package that is not installed ({error.name or error}). "
            f"Install it with 'pip install {error.name or 'transformers'}', or choose another backbone."
        ) from error
    except Exception as error:  # the clients raise many kinds: connection, missing repository, full disk, bad archive
        if "transformers" in str(error):
            raise Missing(
                f"{name} needs the package transformers, which is not installed. "
                "Install it with 'pip install transformers', or choose another backbone."
            ) from error
        why = "there is no internet connection" if not reachable else _first_line(error)
        raise Missing(
            f"The weights of {name} could not be downloaded from {urlparse(constants.ENDPOINT).hostname}: {why}. "
            "Give a local file with --checkpoint FILE, or use efficientnet_lite0, whose weights are installed."
        ) from error
    finally:
        constants.HF_HUB_OFFLINE = before
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _reachable(endpoint: str) -> bool:
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True  # the proxy looks names up
    try:
        socket.getaddrinfo(urlparse(endpoint).hostname, 443)
    except OSError:
        return False
    return True


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return (text[0][:200] if text else type(error).__name__).rstrip(".")
