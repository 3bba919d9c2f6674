"""The page Image map without a browser: colours, a task and an image from the link, and features it cannot draw."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets, jobs
from fsviz.features import maps
from fsviz.studies import feature_map as study
from fsviz.tasks import draw
from fsviz.text import escape_plotly
from tests.studies.toy_dataset import make_toy, save_toy_features
from tests.ui.pages import open_link
from tests.ui.test_gallery_pages import texts
from tests.ui.test_links import link_of

PAGE = "image_map"


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))


def traces(app) -> dict[str, dict]:
    return {t["name"]: t for t in json.loads(app.get("plotly_chart")[0].proto.spec)["data"]}


def test_the_demo_opens_with_its_better_map_and_says_how_far_to_trust_it() -> None:
    app = open_link(PAGE, "demo")
    feature_map = maps.find(datasets.load("demo"), "efficientnet_lite0")
    assert not app.metric and f"the map preserves {feature_map.preserved:.0%} of each image's 10 nearest" in texts(app)
    assert "5,136 images of 107 classes" in texts(app)
    assert "cluster sizes, long distances and axes are not" in texts(app) and "Compute full map" not in [
        b.label for b in app.button
    ]
    assert {t["type"] for t in traces(app).values()} == {"scattergl"}
    assert len({t["marker"].get("symbol") for t in traces(app).values()}) == len(traces(app))  # never colour alone


def test_colours_classes_and_an_image_come_from_the_link() -> None:
    app = open_link(PAGE, "demo", colour="attribute:blur", image="77")
    (blur,) = traces(app).keys() - {"marked"}
    assert blur.startswith("blur") and "marked" in traces(app)
    assert any("image 77" in m.value for m in app.markdown) and not app.toast
    app = open_link(PAGE, "demo", classes="dog", colour="context")
    assert set(traces(app)) == {"other (5,088)", "dog (48)"}
    app = open_link(PAGE, "demo", image="99999", colour="clever")
    (toast,) = app.toast
    assert "image=99999" in toast.value and "colour=clever" in toast.value
    assert link_of(app) == {}


def test_the_answer_is_what_clusters_follow_and_the_map_opens_in_that_colour() -> None:
    app = open_link(PAGE, "demo")
    demo = datasets.load("demo")
    agreements = study.shared(demo, maps.find(demo, "efficientnet_lite0"))
    assert f"**{study.cluster_headline(agreements)}**" in texts(app)
    assert agreements[0].by == "context" and app.selectbox(key="colour").value == "context" and link_of(app) == {}
    sizes = pd.Series(demo.image_contexts()).value_counts()
    assert f"{sizes.index[0]} ({sizes.iloc[0]})" in traces(app)
    app.selectbox(key="colour").set_value("split").run()
    assert not app.exception and link_of(app) == {"colour": "split"}


def test_one_image_is_emphasised_and_all_others_are_dimmed() -> None:
    app = open_link(PAGE, "demo", image="77")
    points = [t for t in traces(app).values() if t["type"] == "scattergl"]
    assert sum(len(t["selectedpoints"]) for t in points) == 1
    assert all(t["unselected"]["marker"]["opacity"] < 0.2 for t in points)
    app.button(key="clear_image").click().run()
    assert not app.exception and link_of(app) == {}
    assert not any("selectedpoints" in t for t in traces(app).values())


def test_the_class_of_an_image_is_highlighted_among_others() -> None:
    app = open_link(PAGE, "demo", image="77", classes="dog")
    app.button(key="highlight_class").click().run()
    assert not app.exception and len(app.multiselect(key="classes").value) == 2
    assert len(traces(app)) == 4  # the rest, two classes, the ring


def test_a_task_by_name_and_one_that_is_drawn_stand_out() -> None:
    dataset = make_toy(n_images=12)
    draw.save(draw.sample(dataset, name="mine", n_way=3, n_shot=2, n_query=4, n_tasks=5))
    app = open_link(PAGE, "toy", task_name="mine:3")
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    task = study.task_at(dataset, "mine:3")
    names = [escape_plotly(name) for name in dataset.distinct_names(task.class_ids[0])]
    legend = [t["name"] for t in figure["data"] if t.get("showlegend") is not False]
    assert legend == [*names, "support", "query, correct", "query, incorrect"], "each class is named once"
    of_task = [t for t in figure["data"] if t["name"] in names]
    assert {t["marker"]["symbol"] for t in of_task} <= {"star", "circle", "x"}
    for name in names:
        assert len({t["marker"]["color"] for t in of_task if t["name"] == name}) == 1, "the colour is the class"
    assert "3-way 2-shot task" in texts(app).replace("\\", "") and "of 12 queries correctly" in texts(app)
    assert link_of(app) == {"testbed": "mine", "position": "3"}
    app = open_link(PAGE, "toy", testbed="drawn", n_way="2", n_shot="1", n_query="3")
    assert "2-way 1-shot task" in texts(app).replace("\\", "") and "of 6 queries correctly" in texts(app)
    assert "must be 0 to 4" in texts(open_link(PAGE, "toy", task_name="mine:9"))


def test_a_dataset_without_pixels_gets_a_fast_map_and_the_offer_of_a_better_one() -> None:
    dataset = make_toy(n_images=5)
    app = open_link(PAGE, "toy")
    assert "Fast map" in texts(app) and maps.find(dataset, "alpha_net").kind == maps.FAST
    next(b for b in app.button if b.label == "Compute full map").click().run()
    assert not app.exception
    (run,) = jobs.list_runs("feature_map")
    assert jobs.wait(run.id).state == "finished"
    assert "Fast map" not in texts(open_link(PAGE, "toy"))


def test_images_are_coloured_by_a_run() -> None:
    make_toy(n_images=12)
    spec = {"study": "evaluate", "dataset": "toy", "backbones": ["alpha_net"], "methods": [{"name": "protonet"}]}
    sampler = {"sampler": "uniform", "n_way": 4, "n_shot": 1, "n_query": 3, "n_tasks": 5}
    jobs.run_in_foreground({**spec, "sampler": sampler})
    app = open_link(PAGE, "toy", colour="run")
    names = set(traces(app))
    n_classified = next(int(n.split("(")[1].rstrip(")")) for n in names if n.startswith("correct"))
    n_never_queried = next(int(n.split("(")[1].rstrip(")")) for n in names if n.startswith("never a query"))
    assert n_classified + n_never_queried == 192 and 0 < n_classified <= 60


def test_the_runs_of_two_backbones_have_different_labels() -> None:
    make_toy(n_images=12, backbones=("alpha_net", "beta_net"))
    spec = {"study": "evaluate", "dataset": "toy", "methods": [{"name": "protonet"}]}
    sampler = {"sampler": "uniform", "n_way": 4, "n_shot": 1, "n_query": 3, "n_tasks": 5}
    for backbones in (["alpha_net", "beta_net"], ["alpha_net"], ["alpha_net"]):
        jobs.run_in_foreground({**spec, "backbones": backbones, "sampler": sampler})
    app = open_link(PAGE, "toy", colour="run")
    offered = app.selectbox(key="run").options
    assert len(set(offered)) == len(offered) == 4
    assert sum("on beta_net" in words for words in offered) == 1


def test_features_that_give_no_map_are_one_sentence() -> None:
    dataset = make_toy(n_images=2)

    def same(values: np.ndarray) -> None:
        values[:] = 1.0

    save_toy_features(dataset, "flat", spoil=same)
    app = open_link(PAGE, "toy", fine=False, backbone="flat")
    assert "are the same" in app.error[0].value
    assert any("has no features" in i.value for i in open_link(PAGE, "tiered_imagenet").info)


def test_what_was_drawn_around_is_in_the_link() -> None:
    feature_map = maps.find(datasets.load("demo"), "efficientnet_lite0")
    low, high = np.quantile(feature_map.xy, 0.4, axis=0), np.quantile(feature_map.xy, 0.6, axis=0)
    text = study.outline_text([low[0], high[0]], [low[1], high[1]])
    box = study.outline_in(text)
    assert box is not None and box.shape == (4, 2)
    inside = study.images_inside(feature_map, box)
    by_hand = ((feature_map.xy >= box.min(axis=0)) & (feature_map.xy <= box.max(axis=0))).all(axis=1)
    assert sorted(inside) == sorted(feature_map.image_ids[by_hand]) and len(inside) > 10
    app = open_link(PAGE, "demo", around=text)
    assert f"{len(inside):,} images of " in texts(app) and link_of(app) == {"around": text}
    assert json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]["shapes"][0]["path"].endswith("Z")
    app.button(key="forget_around").click().run()
    assert link_of(app) == {} and "classes selected" not in texts(app)
    for bad in ("1,2", "a,b_c,d", "1,2_3,4,5", "nan,1_2,3", "_".join(["1,2"] * 60)):
        assert study.outline_in(bad) is None
    app = open_link(PAGE, "demo", around="nonsense")
    assert "around=nonsense" in app.toast[0].value and link_of(app) == {}


def test_a_long_outline_keeps_its_shape_in_few_corners() -> None:
    turn = np.linspace(0, 2 * np.pi, 500)
    corners = study.outline_in(study.outline_text(10 * np.cos(turn), 10 * np.sin(turn)))
    assert corners is not None and len(corners) == study.MAX_CORNERS
    assert np.allclose(np.linalg.norm(corners, axis=1), 10, atol=0.01)
