"""Numbers and sentences that a link brings onto a page, read without a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.browser.digits_workspace import make_digits_workspace
from tests.datasets.test_image_folders import folder_of
from tests.ui.pages import open_link
from tests.ui.test_gallery_pages import texts


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return tmp_path / "ws"


def page_text(app: AppTest) -> str:
    return "\n".join([texts(app), *(code.value for code in app.code)])


@pytest.mark.parametrize(
    ("page", "query", "words"),
    [
        ("classes", {"dataset": "dtd"}, r"has no .*taxonomy"),
        ("sample_tasks", {"dataset": "digits"}, r"has no taxonomy(.|\n)*--sampler uniform"),
        ("sample_tasks", {"dataset": "df20"}, r"has no images here(.|\n)*--n-shot 0"),
        (
            "sample_tasks",
            {"dataset": "df20", "n_way": "100", "n_tasks": "20000"},
            r"too many for a live preview(.|\n)*--n-way 100",
        ),
        ("hard_supports", {"dataset": "tiered_imagenet"}, "has no images here"),
        (
            "add_images",
            {"dataset": "tiered_imagenet", "do": "Extract features"},
            r"has no images here\.\*\* Add your copy of them",
        ),
        ("add_images", {"dataset": "demo", "do": "Import features"}, "Pickles are refused"),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else None,
)
def test_a_missing_requirement_is_reported_with_the_next_step(page: str, query: dict[str, str], words: str) -> None:
    app = open_link(page, fine=False, **query)
    assert re.search(words, page_text(app)), page_text(app)
    if query == {"dataset": "df20"}:  # without images there is nothing to write into the file of images
        buttons = {e.proto.label: e.proto.disabled for e in app.get("download_button")}
        assert buttons["JSON"] and not buttons["CSV"]


def metric(app: AppTest, label: str) -> float:
    (value,) = (m.value for m in app.metric if m.label == label)
    return float(re.search(r"[\d.]+", value)[0])


def medians(app: AppTest) -> list[float]:
    """The median coarsity of semantic and of uniform tasks in the answer."""
    return list(map(float, re.search(r"median coarsity ([\d.]+) vs ([\d.]+) for uniform", page_text(app)).groups()))


def test_the_published_medians_of_tiered_imagenet_are_on_the_page() -> None:
    app = open_link("sample_tasks", "tiered_imagenet", quantile="0")
    assert medians(app) == [pytest.approx(56, abs=1.5), pytest.approx(85.2, abs=0.4)]
    assert coarsity(app) < 20  # the finest task
    app.session_state["quantile"] = 100
    assert coarsity(app.run()) > 85  # the coarsest


def coarsity(app: AppTest) -> float:
    """That of the task that is shown."""
    return float(re.search(r"Coarsity ([\d.]+): mean squared", page_text(app))[1])


def test_a_larger_alpha_lowers_the_median_and_a_link_keeps_it() -> None:
    app = open_link("sample_tasks", "tiered_imagenet", alpha="1.2", n_way="10", seed="3")
    assert medians(app)[0] < 45
    assert app.slider(key="n_way").value == 10
    assert re.search(r"--alpha 1.2(\s|$)", page_text(app))


def test_a_link_restores_a_task_and_its_coarsity() -> None:
    app = open_link("classes", "tiered_imagenet", classes=["malamute", "Siberian husky"])
    assert "Selected task: 2 classes" in page_text(app) and "sled dog" in page_text(app)
    # the two share a concept of their own, 2 log(2600) - 2 log(1300) = 1.39, squared
    assert metric(app, "Coarsity") == 1.92


def test_layered_layout_other_distances_and_all_paths() -> None:
    app = open_link("classes", "mini_imagenet", layout="layered", distance="path_length", dag="all_paths")
    assert not app.toast  # no setting of the link was left out
    assert "Median distance: " in page_text(app) and "Path length" in page_text(app)
    series = json.loads(app.get("echarts_chart")[0].proto.spec)["series"][0]
    assert series["type"] == "graph" and len({node["y"] for node in series["data"]}) > 5  # layers


def test_two_backbones_are_compared_and_a_link_restores_it() -> None:
    settings = {"versus": "confusion@demo_clip", "edges": "20", "classes": ["tiger", "sheep"]}
    app = open_link("confusion", "demo", **settings)
    assert not app.toast  # no setting of the link was ignored
    assert re.search(r"Pearson 0.\d\d \(", page_text(app)) and "no overlap with Demo CLIP" in page_text(app)
    assert "EfficientNet-Lite0 and Demo CLIP: rank correlation" in page_text(app)
    assert len(app.get("plotly_chart")) == 1 and app.slider(key="edges").value == 20


def test_a_path_a_table_or_a_name_that_cannot_be_is_one_sentence(tmp_path: Path) -> None:
    app = open_link("add_images", "demo")
    (tmp_path / "list.csv").write_text("path,class\ngone.png,dog\n")
    wrong = {"/nowhere/at/all": "Not found: '/nowhere/at/all'"}
    wrong[str(tmp_path / "list.csv")] = "No file in the table exists"
    for path, words in wrong.items():
        app.text_input(key="path_0").set_value(path).run()
        assert len(app.error) == 1 and words in app.error[0].value
    app.text_input(key="path_0").set_value(str(folder_of(tmp_path / "two", {"dog": 2, "cat": 2}))).run()
    app.text_input(key="new_name").set_value("demo").run()
    app.button(key="save").click().run()
    assert "The name 'demo' belongs to a dataset that comes with fsviz" in page_text(app)


def test_too_many_shots_are_named_and_the_largest_that_fits_is_offered(home: Path) -> None:
    make_digits_workspace(home)
    app = open_link("evaluate", "digits", fine=False, n_shot="190", n_query="10", methods="ProtoNet")
    assert re.search("has 174 images .* fewer than “Support images” . “Query images” = 200", page_text(app))
    assert "The largest that fits all classes is “Support images” 169 with “Query images” 5." in page_text(app)
    next(b for b in app.button if b.label == "Use “Support images” 169, “Query images” 5").click().run()
    assert not app.exception and "Preview: 200 tasks" in page_text(app)
