"""Every page with a dataset that no task, or nearly none, can be drawn from: a sentence, never a failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from fsviz.ui.pages import contexts
from fsviz.ui.parts.page import PAGES
from tests.studies.small_dataset import make_small
from tests.ui.pages import APP, in_workspace, open_link

SIZES = {"one": [16], "singles": [1, 1], "none": [], "twelve": [12] * 6}
FILES = [page.file for page in PAGES.values() if page.slug != "learn"]  # lessons are about the demo
DRAW = ["causes", "sample_tasks", "task", "edit_task", "evaluate", "hard_supports", "predict_accuracy"]
DRAW += ["compare_datasets"]


@pytest.fixture(scope="module", autouse=True)
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with in_workspace(tmp_path_factory) as home:
        for name, sizes in SIZES.items():
            make_small(name, sizes, tmp_path_factory.mktemp(name))
        yield home


@pytest.mark.parametrize("dataset", ["one", "singles", "none"])
def test_no_page_fails(dataset: str) -> None:
    for file in FILES:
        app = AppTest.from_file(str(APP), default_timeout=600).switch_page(file)
        app.query_params["dataset"] = dataset
        app.run()
        assert not app.exception, (file, app.exception[0].stack_trace)


@pytest.mark.parametrize("page", DRAW)
def test_a_dataset_of_one_class_is_refused_in_the_words_of_the_commands(page: str) -> None:
    app = open_link(page, "one", fine=False)
    assert len(app.error) == 1
    assert "A task needs at least 2 classes." in app.error[0].value
    assert app.error[0].value.endswith("Add images of other classes, or choose another dataset.")


@pytest.mark.parametrize("page", [page for page in DRAW if page != "sample_tasks"])
def test_classes_of_one_image_are_refused_with_advice_that_can_work(page: str) -> None:
    message = open_link(page, "singles", fine=False).error[0].value
    assert "class 0" in message and "Remove the class" in message and "Lower" not in message


def test_sections_that_draw_tasks_refuse_one_class_too() -> None:
    shift = open_link("contexts", "one", fine=False, show=contexts.COST)
    assert "A task needs at least 2 classes." in shift.error[0].value
    image_map = open_link("image_map", "one", testbed="drawn")
    assert any("A task needs at least 2 classes." in warning.value for warning in image_map.warning)


@pytest.mark.parametrize("page", [page for page in DRAW if page not in ("task", "compare_datasets")])
def test_a_page_says_which_defaults_it_lowered(page: str) -> None:
    captions = [caption.value for caption in open_link(page, "twelve").caption]
    lowered = [text for text in captions if "instead of" in text and "Query images" in text]
    assert len(lowered) == 1 and "12 images" in lowered[0]
    app = open_link(page, "twelve", n_way="2", n_shot="1", n_query="2")
    assert not any("instead of" in caption.value for caption in app.caption)
