"""The switch that keeps groups together, on every page that draws images."""

from __future__ import annotations

import pytest

from fsviz.records import Dataset
from tests.studies.test_groups import copied  # noqa: F401
from tests.ui.pages import open_link


@pytest.mark.parametrize("name", ["sample_tasks", "evaluate", "hard_supports", "predict_accuracy"])
def test_a_page_keeps_groups_together_unless_switched_off(name: str, copied: Dataset) -> None:  # noqa: F811
    page = open_link(name, copied.name, fine=False, n_tasks="50")
    switch = page.toggle(key="keep_groups")
    assert switch.value is True and "--no-keep-groups" not in " ".join(code.value for code in page.code)
    switch.set_value(False).run()
    assert not page.exception and not page.error
    assert "--no-keep-groups" in " ".join(code.value for code in page.code)


def test_without_groups_there_is_nothing_to_switch() -> None:
    assert "keep_groups" not in {toggle.key for toggle in open_link("evaluate", "demo", n_tasks="50").toggle}
