"""First questions about photographs: the check, the orders of Images, and contexts that are named and taken back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets, jobs
from fsviz.datasets import filtering, image_folders, labels
from fsviz.features import neighbours
from fsviz.ui.pages.images.orders import Order
from tests.datasets.test_image_folders import folder_of
from tests.ui.pages import link_of, open_link


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return tmp_path / "ws"


def button(app, text: str):
    return next(item for item in app.button if text in item.label)


def answer(app) -> str:
    return next(m.value for m in app.markdown if m.value.startswith("**"))


def test_naming_a_group_saves_its_context_at_once_and_a_click_takes_it_back() -> None:
    assert answer(open_link("contexts", "fruit")).startswith("**0 of 784 images have a context.**")
    labels.add_label(datasets.load("fruit"), [783], "shelf")  # a test can only pick what the field offers
    app = open_link("contexts", "fruit", show="Name contexts")
    fields = [box for box in app.selectbox if str(box.key).startswith("context_fruit_")]
    assert len(fields) == 12, "three groups of each of four classes"
    assert {field.value for field in fields} == {None}, "nothing is named before a person does"
    fields[0].set_value("shelf").run()
    assert not app.exception
    fruit = datasets.load("fruit")
    label = labels.list_labels(fruit)[-1]
    assert label.number == 2 and (label.column, label.value) == ("context", "shelf") and label.n_images > 1
    assert (fruit.image_class_ids()[fruit.image_contexts() == "shelf"] == 0).sum() == label.n_images
    assert answer(app).startswith(f"**{label.n_images + 1} of 784 images have a context.**"), "the page stays"
    button(app, f"Undo context shelf ({label.n_images} images)").click().run()
    assert not app.exception and [item.number for item in labels.list_labels(datasets.load("fruit"))] == [1]


def test_contexts_open_with_their_cost_once_they_have_names() -> None:
    fruit = datasets.load("fruit")
    half = np.arange(784) % 2
    labels.add_labels(fruit, [(np.flatnonzero(half == 0), "shelf"), (np.flatnonzero(half == 1), "hand")])
    app = open_link("contexts", "fruit", show="Class–context table")
    assert "associated" in answer(app)
    assert "Name contexts" not in str(link_of(app))


def test_selected_images_get_a_name_on_the_page_images() -> None:
    labels.add_label(datasets.load("fruit"), [783], "hand")  # a test can only pick what the field offers
    app = open_link("images", "fruit", selected="1.2.3")
    app.selectbox(key="label_value_wall").set_value("hand").run()
    button(app, "Save for 3 images").click().run()
    assert not app.exception
    assert np.flatnonzero(datasets.load("fruit").image_contexts() == "hand").tolist() == [1, 2, 3, 783]
    button(app, "Undo context hand (3 images)").click().run()
    assert np.flatnonzero(datasets.load("fruit").image_contexts() == "hand").tolist() == [783]
    button(app, "Save for 3 images").click().run()
    assert any("1 to 60 characters" in str(warning.value) for warning in app.warning), "a name is missing"


def test_images_are_ordered_by_neighbours_of_their_own_class() -> None:
    app = open_link("images", "fruit", order="own_class_neighbours")
    assert any("among the nearest, EfficientNet-Lite0 features" in caption.value for caption in app.caption)
    fruit = datasets.load("fruit")
    near = neighbours.own_class_neighbours(fruit, "efficientnet_lite0")
    ids = filtering.select_images(fruit, filtering.ImageFilter(), "own_class_neighbours", values=near.among(784))
    assert (np.diff(near.among(784)[ids]) >= 0).all() and set(ids[: len(near.strangers)]) == set(near.strangers)
    badges = Order("own_class_neighbours", near.among(784), np.full(784, 10)).badges(fruit, ids)
    assert badges[0] == "0 of 10" and badges[-1] == "10 of 10"


def test_images_are_ordered_by_the_errors_of_a_run() -> None:
    app = open_link("images", "fruit", order="errors_in_run")
    assert app.selectbox(key="order").value == "shuffled", "there is no run yet"
    spec = {"study": "evaluate", "dataset": "fruit", "backbones": ["efficientnet_lite0"], "methods": ["protonet"]}
    run = jobs.run_in_foreground({**spec, "sampler": {"sampler": "uniform", "split": "test", "n_tasks": 30}})
    app = open_link("images", "fruit", order="errors_in_run")
    assert any("errors as a query in ProtoNet" in caption.value for caption in app.caption), run.id


def test_a_link_lists_its_images_and_shows_all_after_a_click() -> None:
    app = open_link("images", "fruit", only="7.3.9")
    assert any("Only the 3 images of the link" in caption.value for caption in app.caption)
    assert answer(app).startswith("**3 images of 1 class.**")
    button(app, "Show all images").click().run()
    assert answer(app).startswith("**784 images") and "only" not in link_of(app)


def test_the_check_has_a_section_and_follows_saving(tmp_path: Path) -> None:
    app = open_link("add_images", "fruit", do="Check")
    assert answer(app).startswith("**1 of 4 checks found something to look at.**")
    assert any("5 of 784 images have no image of their class" in m.value for m in app.markdown)
    image_folders.register("pets", image_folders.inspect(folder_of(tmp_path / "pets", {"a/dog": 3, "b/dog": 25})))
    app = open_link("add_images", "pets", do="Check")
    texts = [m.value for m in app.markdown]
    assert any("1 name in several folders: 2 classes" in text for text in texts)
    assert any("1 class with fewer than 20 images, the smallest with 3" in text for text in texts)
