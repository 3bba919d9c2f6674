"""Classes and Sample tasks say that a shallow taxonomy gives groups, and offer the distance between features."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.studies.toy_dataset import make_toy
from tests.ui.pages import open_link


@pytest.mark.parametrize("slug", ["classes", "sample_tasks"])
def test_a_button_replaces_few_distances_by_those_between_features(
    slug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    make_toy()
    page = open_link(slug, "toy")
    assert any("different distances for 120 pairs" in caption.value for caption in page.caption)
    page.button(key="use_features").click().run()
    assert not page.exception and not page.error and page.selectbox(key="distance").value == "features"
    assert not any("different distances for" in caption.value for caption in page.caption)
