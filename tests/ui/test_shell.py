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


def test_files_are_numbered_in_the_order_of_the_sidebar() -> None:
    numbers = [int(Path(page.file).name.partition("_")[0]) for page in shell.PAGES[1:]]
    assert numbers == list(range(1, len(numbers) + 1))


def test_settings_in_errors_have_the_titles_of_the_page() -> None:
    told = shell.in_titles("Class n_ways has 3 images. Lower n_shot, max_way or n_query.")
    assert told == "Class n_ways has 3 images. Lower “Support images”, “Most classes” or “Query images”."
