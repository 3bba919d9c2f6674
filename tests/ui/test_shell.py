"""What every page shares."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsviz.ui.parts import shell
from tests.ui.test_gallery_pages import run


def test_the_sidebar_leads_to_every_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = run("2_Taxonomy.py", dataset="cifar100")
    assert [link.proto.label for link in app.sidebar.get("page_link")] == [page.label for page in shell.PAGES]
    assert all((shell.ROOT / page.file).is_file() for page in shell.PAGES)
