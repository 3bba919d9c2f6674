"""Pages without a browser go through the router, app.py, as they do on a server."""

from __future__ import annotations

import pytest
from streamlit.runtime.pages_manager import PagesManager


@pytest.fixture(autouse=True)
def routed(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppTest begins every run by looking for the folder pages/, and runs a file there by itself if there is one."""
    monkeypatch.setattr(PagesManager, "uses_pages_directory", False)
    monkeypatch.setattr("streamlit.testing.v1.app_test.PagesManager", type("Routed", (PagesManager,), {}))
