"""The page of contexts without a browser."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from fsviz import datasets, jobs
from fsviz.analyses import contexts as study
from fsviz.analyses import image_text
from fsviz.jobs import engines, store
from fsviz.jobs.execute import prepare
from fsviz.ui.parts import access, answers
from tests.ui.pages import link_of

APP = Path(__file__).resolve().parent.parent.parent / "app.py"


@pytest.fixture
def open_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))

    def open_it(dataset: str = "demo", **query: str) -> AppTest:
        page = AppTest.from_file(str(APP), default_timeout=600)
        page.switch_page("pages/contexts.py")
        for name, value in {"dataset": dataset, **query}.items():
            page.query_params[name] = value
        page.run()
        assert not page.exception, [e.message for e in page.exception]
        assert "nan" not in texts(page).split(), texts(page)
        return page

    return open_it


def texts(page: AppTest) -> str:
    kinds = (page.caption, page.markdown, page.info, page.error, page.metric, page.subheader)
    return " ".join(str(element.value) for kind in kinds for element in kind)


def figure(page: AppTest, which: int = 0) -> dict:
    return json.loads(page.get("plotly_chart")[which].proto.spec)


def answer_of(page: AppTest) -> str:
    answers = [m.value for m in page.markdown if m.value.startswith("**") and ".**" in m.value]
    return answers[0].replace("\\", "")


TABLE = {"show": "Class–context table"}


def test_the_table_of_the_demo_with_its_association_as_the_answer(open_page) -> None:
    page = open_page(**TABLE)
    demo = datasets.load("demo")
    cramer = study.association(study.context_table(demo, "test"))
    assert not page.error and not page.metric
    assert f"V = {cramer['v']:.2f} (expected by chance below {cramer['chance']:.2f})" in answer_of(page)
    heat, _, markers = figure(page)["data"]
    assert heat["type"] == "heatmap" and len(markers["text"]) == 30 * 14 + 30 + 14
    assert heat["colorscale"][0][1] == "#FFFFFF" and np.nanmin(_cells(heat)) == 0  # no images: white, not a gap
    assert markers["customdata"][30 * 14][1] == -1 == markers["customdata"][-1][0]  # totals stand for rows and columns
    assert any(": 17 images" in t for t in markers["text"])
    assert any(": 0 images" in t for t in markers["text"])
    assert figure(page)["layout"]["height"] <= 540


def _cells(heat: dict) -> np.ndarray:
    packed = heat["z"]
    if isinstance(packed, dict):
        return np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])
    return np.array(packed, dtype=float)


def test_a_cell_a_row_a_column_and_an_empty_cell(open_page) -> None:
    cell = texts(open_page(**TABLE, concept="owl", context="night"))
    assert "owl · night" in cell and "x as often as expected by chance" in cell
    assert "No image of owl in city" in texts(open_page(**TABLE, concept="owl", context="city"))
    assert "contexts, association " in texts(open_page(**TABLE, concept="owl"))
    assert "classes, association " in texts(open_page(**TABLE, context="night"))


def test_search_and_cells_against_chance(open_page) -> None:
    page = open_page(**TABLE, find="NIGHT", cells="information", table_order="association")
    assert figure(page)["layout"]["xaxis"]["ticktext"] == ["night", "all"]
    assert "x as often as expected by chance" in " ".join(figure(page)["data"][2]["text"])
    assert "All are shown" in texts(open_page(**TABLE, find="qqq"))


def test_a_dataset_without_features_opens_with_its_table(open_page) -> None:
    page = open_page("metacoco", split="all")
    assert figure(page)["data"][0]["type"] == "heatmap" and "Class and context are associated" in answer_of(page)
    assert not page.error and "readable part of the paper" in texts(page)
    assert "table of counts" in texts(page)


def test_a_dataset_without_contexts_gets_a_way_out(open_page) -> None:
    page = open_page("digits")
    assert "has no contexts" in texts(page) and not page.get("plotly_chart")
    assert "Open the demo" in [b.label for b in page.button]


COSTS = {"show": "Cost of a context change", "n_tasks": "20"}


def test_the_demo_opens_with_the_loss_and_the_same_queries_twice(open_page) -> None:
    page = open_page(n_tasks="20", methods="protonet,ridge")
    assert not page.error, [e.value for e in page.error]
    spec = {"dataset": "demo", "n_tasks": 20, "methods": ["protonet", "ridge"]}
    row = jobs.compute({"study": "context_shift", **spec})["rows"][0]
    loss = row["loss"]["ood"]
    assert answer_of(page).startswith(f"**ProtoNet loses {loss['mean']:.1f} ± {loss['ci95']:.1f} points when")
    assert f"{row['accuracy']['iid']['mean']:.1f}% → {row['accuracy']['ood']['mean']:.1f}% correct" in answer_of(page)
    assert "over classes" in answer_of(page) and not page.metric
    same_contexts, other_contexts, misleading = figure(page)["data"][:3]
    assert len(same_contexts["y"]) == 2 and "<b>ProtoNet</b> · Metric" in str(figure(page)["layout"]["annotations"])
    for trace in (same_contexts, other_contexts, misleading):
        assert trace["error_x"]["array"]
    titles = ("Support in the same contexts", "Support in other contexts", "Most misleading contexts")
    assert all(title in texts(page) for title in titles)
    page.slider(key="shift").set_value(0.5).run()
    assert "50% of the support in other contexts" in texts(page)
    page.selectbox(key="looked").set_value("ridge").run()
    assert answer_of(page).startswith("**Ridge regression (R2D2) loses")


def test_the_number_of_tasks_and_the_link_of_other_pages_are_valid(open_page) -> None:
    settings = {**COSTS, "n_tasks": "4", "n_way": "4", "n_shot": "2", "n_query": "3", "seed": "123456789"}
    page = open_page(**settings, methods="protonet")
    assert not page.error and "on 4 4-way 2-shot tasks" in answer_of(page)
    in_link = {name: value for name, value in settings.items() if name != "show"}  # the section is the default
    assert not page.toast and in_link.items() <= link_of(page).items()


@pytest.mark.parametrize("question", ["dial", "shots", "ways", "backbones"])
def test_every_question_has_its_figure(open_page, question: str) -> None:
    page = open_page(**COSTS, methods="protonet", question=question)
    assert not page.error, [e.value for e in page.error]
    assert len(page.get("plotly_chart")) == 3


def test_a_run_that_was_stopped_can_go_on(open_page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "WAIT", 0.0)
    page = open_page(**COSTS, methods="protonet")
    offered = [b.label for b in page.button]
    assert "Run" in offered and "Resume" not in offered and "Full run: 20 tasks" in texts(page)
    spec = {"study": "context_shift", "dataset": "demo", "split": "test", "methods": ["protonet"], "n_tasks": 20}
    store.create(spec, prepare, store.INTERRUPTED)
    page.run()
    assert "Previous run: interrupted" in texts(page)
    assert {"Run", "Resume"} <= {b.label for b in page.button}


@pytest.mark.skipif(engines.RAY not in engines.available(), reason="the extra `cluster` is not installed")
def test_a_cluster_can_be_chosen_and_a_missing_one_is_reported(open_page, monkeypatch) -> None:
    monkeypatch.setattr(answers, "WAIT", 0.0)
    with monkeypatch.context() as without:
        without.setattr(engines, "available", lambda: [engines.LOCAL])
        assert "Run on" not in [r.label for r in open_page(**COSTS, methods="protonet").radio]
    with monkeypatch.context() as visitor:
        visitor.setattr(access, "alone", lambda: False)
        visitor_page = open_page(**COSTS, methods="protonet")
        assert "Run" in [b.label for b in visitor_page.button]
        assert "Run on" not in [r.label for r in visitor_page.radio]
    page = open_page(**COSTS, methods="protonet")
    (where,) = [r for r in page.radio if r.label == "Run on"]
    where.set_value(engines.RAY).run()
    (address,) = [t for t in page.text_input if t.label == "Cluster address"]
    assert address.value == "auto"
    address.set_value("no address").run()
    assert "The address of a cluster is" in page.error[0].value
    address.set_value("127.0.0.1:9").run()
    next(b for b in page.button if b.label == "Run").click().run()
    (run,) = jobs.list_runs("context_shift")
    assert jobs.engine_of(run) == jobs.Engine("ray", "127.0.0.1:9")
    run = jobs.wait(run.id)
    page.run()
    assert "No Ray cluster answers at '127.0.0.1:9'" in run.error and "Previous run: failed" in texts(page)


def test_images_and_words(open_page) -> None:
    page = open_page(show="Image–text similarity")
    assert not page.error, [e.value for e in page.error]
    result = image_text.summary(image_text.measure({"dataset": "demo", "split": "test"}))
    closer = result["nearer_to_context"]
    assert answer_of(page).startswith(
        f"**{100 * closer['mean']:.0f} ± {100 * closer['ci95']:.0f}% of images are closer"
    )
    assert "(chance level 3%)" in answer_of(page) and "not comparable" in texts(page)
    layout = figure(page)["layout"]
    assert layout["xaxis"]["range"] == layout["yaxis"]["range"] and layout["yaxis"]["scaleanchor"] == "x"
    published = figure(page, 2)
    assert len(published["data"][0]["x"]) == 18 and "Demo" not in str(published["layout"]["yaxis"]["ticktext"])
    refused = open_page(show="Image–text similarity", concept_prompt="a photo")
    assert "must contain" in refused.error[0].value
    counts = open_page("metacoco", show="Image–text similarity")
    assert "has no features of an image-text model" in texts(counts) and len(figure(counts)["data"][0]["x"]) == 18


def test_a_table_of_counts_cannot_be_classified_but_has_published_numbers(open_page) -> None:
    page = open_page("metacoco", show="Cost of a context change")
    assert "table of counts" in texts(page) and "published numbers" in texts(page)
    assert "Published accuracy (%)" in page.dataframe[0].proto.columns


@pytest.mark.parametrize("slug", ["sample_tasks", "evaluate", "hard_supports", "predict_accuracy"])
def test_other_pages_draw_tasks_by_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slug: str) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    page = AppTest.from_file(str(APP), default_timeout=600)
    page.switch_page(f"pages/{slug}.py")
    settings = {"sampler": "context", "shift": "0.25", "n_shot": "2", "n_tasks": "20"}
    for name, value in settings.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception and not page.error, [e.value for e in page.error]
    assert any(
        getattr(w, "key", "") == "shift" and w.value == 0.25 for kind in (page.slider, page.number_input) for w in kind
    )
    page.run()  # what the sampler itself knows stays, in the link too
    link = {name: value[-1] if isinstance(value, list) else value for name, value in page.query_params.items()}
    assert page.session_state["n_shot"] == 2 and settings.items() <= link.items()
