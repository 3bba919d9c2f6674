"""The Taxonomy page without a browser: what it says of what the dataset does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.test_gallery_pages import run, texts


@pytest.mark.parametrize(("dataset", "told"), [("df20", True), ("tiered_imagenet", False)])
def test_unknown_image_counts_are_told_where_the_distance_needs_them(
    dataset: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = run("2_Taxonomy.py", dataset=dataset)
    assert ("each counts as one" in texts(app)) is told
    app.selectbox(key="distance").set_value("path_length").run()
    assert not app.exception
    assert "each counts as one" not in texts(app)
