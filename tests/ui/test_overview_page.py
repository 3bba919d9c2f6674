"""The page Overview, classroom mode, and the link that every page copies."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from fsviz import datasets, taxonomy
from fsviz.analyses import headline as study
from fsviz.datasets import sizes
from fsviz.taxonomy.hierarchy import class_hierarchy
from fsviz.ui.parts import deferred
from tests.ui.pages import APP, open_link


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))


@pytest.fixture(scope="module")
def contrast() -> study.TaskContrast:
    return study.contrast(datasets.load("demo"))


def opened(dataset: str, stands: bool = True, **query: str) -> AppTest:
    """`stands`: the browser has drawn what is above the figures."""
    app = AppTest.from_file(str(APP), default_timeout=600)
    app.session_state[deferred.STANDS] = stands
    for name, value in {"dataset": dataset, **query}.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception, [e.message for e in app.exception]
    return app


def words(app: AppTest) -> str:
    return "\n".join(element.value for kind in (app.markdown, app.caption, app.info) for element in kind)


def in_link(app: AppTest, name: str) -> str:
    value = app.query_params[name]
    return value if isinstance(value, str) else value[0]


def links_of(app: AppTest) -> list[tuple[str, str]]:
    return [(link.proto.label, link.proto.query_string) for link in app.main.get("page_link")]


def test_the_answer_has_both_accuracies_the_main_cause_and_the_setting(contrast) -> None:
    app = opened("demo")
    hard, easy = (f"{contrast.accuracy[task]:.0%}" for task in (contrast.hard, contrast.easy))
    titles = f"**Hard task: {hard} correct**", f"**Easy task: {easy} correct**"
    assert all(title in words(app) for title in titles)
    sentence, setting = study.answer(contrast, contrast.main_causes())
    assert app.markdown[0].value.replace("\\", "") == f"**{sentence}** {setting}"
    assert f"{hard} vs {easy} correct" in sentence
    mean, half = contrast.mean
    assert f"1,000 random 5-way 1-shot tasks: mean {100 * mean:.1f} ± {100 * half:.1f}%" in setting
    assert any("Not typical." in m.help for m in app.markdown if m.value in titles)


def test_every_main_cause_links_to_the_page_that_shows_it(contrast) -> None:
    app = opened("demo")
    to_causes = ("Edit support images", "Show in taxonomy", "Compare the closest", "Attribute shifts")
    tried = [link for link in links_of(app) if link[0].startswith(to_causes)]
    assert len(tried) == min(3, len(contrast.main_causes()))
    assert all("dataset=demo" in query and ("split=test" in query or "support=" in query) for _, query in tried)


def test_try_it_opens_the_very_pair_of_classes(contrast) -> None:
    a, b = contrast.closest_of(contrast.hard)
    app = AppTest.from_file(str(APP), default_timeout=600).switch_page("pages/confusion.py")
    app.query_params.update({"dataset": "demo", "split": "test", "classes": [a, b]})
    app.run()
    assert not app.exception and app.multiselect(key="classes").value == [a, b]


def test_try_it_opens_the_very_task(contrast) -> None:
    """Its support, its queries, and so the accuracy that the first page tells."""
    app = opened("demo")
    edit_query = next(query for label, query in links_of(app) if label.startswith("Edit support images"))
    built = open_link("edit_task", **{name: value[0] for name, value in parse_qs(edit_query).items()})
    assert f"{contrast.accuracy[contrast.hard]:.0%}" in built.markdown[0].value
    support = ",".join(map(str, contrast.tasks.support[contrast.hard].ravel()))
    assert in_link(built, "support").replace(".", ",") == support


def test_what_is_below_the_images_comes_when_they_stand() -> None:
    """A browser draws images when nothing else is left to do."""
    first = opened("demo", stands=False)
    assert not first.metric and not first.get("plotly_chart") and first.get("skeleton")
    then = opened("demo")
    assert len(then.get("plotly_chart")) == 2 and then.metric and not then.get("skeleton")
    assert set(words(first).splitlines()) <= set(words(then).splitlines())


def test_a_class_table_shows_a_fine_and_a_coarse_task_in_names() -> None:
    app = opened("tiered_imagenet")
    contrast = study.contrast(datasets.load("tiered_imagenet"))
    coarsity = contrast.tasks.measures["coarsity"]
    assert f"**Fine-grained task: coarsity {coarsity[contrast.hard]:.1f}**" in words(app)
    assert f"**Coarse task: coarsity {coarsity[contrast.easy]:.1f}**" in words(app)
    assert app.markdown[0].value.startswith("**The fine-grained task should be harder:")
    assert all(f"**{name}**" in words(app) for name in contrast.names_of(contrast.hard))
    assert "has no images here, so accuracy is not measured." in words(app)


def test_without_features_and_taxonomy_the_page_shows_what_pixels_tell() -> None:
    app = opened("digits")
    assert "**Hard task: " in words(app) and "**Easy task: " in words(app)
    assert "ProtoNet on raw pixels" in app.markdown[0].value and "Classified by raw pixels." in words(app)
    labels = dict(links_of(app))
    assert "Extract features" in labels and "order=class" in labels["Show images of these classes"]
    assert "all classes are in one split" in words(app) and "grouped by split" not in words(app)


def test_without_pixels_too_the_page_says_what_is_missing_and_how_to_attach_it() -> None:
    app = opened("dtd")
    assert app.markdown[0].value.startswith("**No tasks to compare yet.** ")
    assert "neither features nor a taxonomy" in words(app) and "fsviz add dtd ~/dtd" in words(app)
    assert "is-a trees are of nouns" in words(app)


def test_boxes_and_bars_of_the_fact_sheet_lead_on_and_are_in_the_link() -> None:
    demo = datasets.load("demo")
    tree = class_hierarchy(demo)
    leaf, group = tree.ids[tree.labels.index("tiger")], tree.ids[tree.labels.index("feline")]
    app = opened("demo", box=leaf, size_bar="2 0")
    assert not app.toast and in_link(app, "box") == leaf and in_link(app, "size_bar") == "2 0"
    labels = dict(links_of(app))
    assert "classes=tiger" in labels["Show images"]
    assert "classes=tiger" in labels["Show in taxonomy"]
    assert "**30 classes:**" in words(app) and "and 18 more" in words(app)
    assert labels["Show images of the first 12"].count("classes=") == 12
    query = dict(links_of(opened("demo", box=group)))["Show in taxonomy"]
    assert f"at={group}" in query
    assert not open_link("classes", "demo", at=group, split="all").toast
    assert not opened("demo", box="nonsense", size_bar="x").exception


def test_what_is_drawn_later_keeps_its_settings_in_the_link() -> None:
    """A reload draws the images first, and the boxes and bars in a second run."""
    tree = class_hierarchy(datasets.load("demo"))
    leaf = tree.ids[tree.labels.index("tiger")]
    app = opened("demo", stands=False, box=leaf, size_bar="2 0", nothing="1")
    assert in_link(app, "box") == leaf and in_link(app, "size_bar") == "2 0" and "nothing" not in app.query_params
    assert [toast.value for toast in app.toast] == ["Ignored from the link: nothing=1 does not apply here."]
    app.session_state[deferred.STANDS] = True
    app.run()
    assert in_link(app, "box") == leaf and "classes=tiger" in dict(links_of(app))["Show images"]


def test_bars_count_the_classes_that_they_lead_to() -> None:
    for name in ("tiered_imagenet", "demo", "digits"):
        dataset = datasets.load(name)
        histogram = sizes.class_sizes(dataset)
        for split, counts in histogram.bars.items():
            n_classes = [len(sizes.classes_of_bar(dataset, histogram, split, at)) for at in range(len(counts))]
            assert n_classes == counts.tolist()


def starts(app: AppTest) -> list[tuple[str, str, str]]:
    """Label, page and query of every card that is a link."""
    cards = [link.proto for link in app.main.get("page_link") if link.proto.label.startswith("**")]
    return [
        (card.label.replace("\\", "").strip("*"), card.page.rpartition("/")[2], card.query_string) for card in cards
    ]


@pytest.mark.parametrize(("name", "explore", "slug"), [("cifar100", "CIFAR-100", "classes")])
def test_three_ways_to_start(name: str, explore: str, slug: str) -> None:
    cards = starts(opened(name))
    assert [card[:2] for card in cards] == [
        (f"Explore {explore}", slug),
        ("Add your images", "add_images"),
        ("Take a lesson", "learn"),
    ]
    assert all(f"dataset={name}" in query for _, _, query in cards)


def test_the_built_in_images_lead_to_each_other() -> None:
    app = opened("demo")
    assert [label for label, _, _ in starts(app)] == ["Add your images", "Take a lesson"]
    (photographs,) = [button for button in app.button if "Switch to photographs" in button.label]
    photographs.click().run()
    assert in_link(app, "dataset") == "fruit"
    assert any("784 smartphone photographs" in text.value for text in app.markdown)
    assert any("Switch to drawings" in button.label for button in app.button)


@pytest.mark.parametrize(("label", "n_classes"), [("tiger", 1), ("feline", 4)])
def test_a_box_of_the_class_map_shows_images_of_its_classes(label: str, n_classes: int) -> None:
    demo = datasets.load("demo")
    tree = class_hierarchy(demo)
    node = tree.ids[tree.labels.index(label)]
    class_ids = tree.classes_below(node)
    assert len(class_ids) == n_classes
    app = opened("demo", box=node)
    wall = next(c.proto for c in app.get("bidi_component") if f"overview_sample_{node}" in c.proto.id)
    tiles = [tile for group in json.loads(wall.json)["groups"] for tile in group["tiles"]]
    assert len(tiles) == 20
    assert {int(demo.image_class_ids()[tile["id"]]) for tile in tiles} == set(class_ids)


# --- classroom mode -----------------------------------------------------------------------------------------------


def test_classroom_mode_is_in_the_link_of_this_page_and_of_all_it_leads_to() -> None:
    app = opened("demo")
    app.toggle(key="classroom_switch").set_value(True).run()
    assert in_link(app, "classroom") == "true"
    assert all("classroom=true" in query for _, query in links_of(app))
    app.toggle(key="classroom_switch").set_value(False).run()
    assert "classroom" not in app.query_params
    assert not any("classroom" in query for _, query in links_of(app))


def test_a_class_sees_fewer_controls_but_none_that_the_link_has_changed() -> None:
    def inputs(**query: str) -> set[str]:
        app = open_link("predict_accuracy", "demo", n_tasks="20", **query)
        return {element.key for element in (*app.number_input, *app.select_slider)}

    alone, before_a_class = inputs(), inputs(classroom="true")
    assert "seed" in alone - before_a_class and "n_way" in before_a_class
    assert "n_tasks" in before_a_class  # 20 is not its default
    assert "seed" in inputs(classroom="true", seed="3")


@pytest.mark.parametrize("page", ["sample_tasks", "confusion", "train_test_distance", "edit_task"])
def test_a_class_sees_the_question_and_not_how_it_is_computed_or_kept(page: str) -> None:
    def inputs(**query: str) -> list[object]:
        app = open_link(page, "demo", **query)
        return [*app.number_input, *app.slider, *app.select_slider, *app.selectbox, *app.text_input, *app.toggle]

    alone, before_a_class = inputs(), inputs(classroom="true")
    assert len(before_a_class) <= 0.75 * len(alone)


def test_a_class_opens_the_answer_itself(contrast) -> None:
    """The second answer, with the causes, replaces the first."""
    app = opened("demo", classroom="true")
    (closed,) = [section for section in app.expander if section.label == "Show the answer"]
    sentence, setting = study.answer(contrast, contrast.main_causes())
    assert not closed.proto.expanded and len(closed.markdown) == 1
    assert closed.markdown[0].value.replace("\\", "") == f"**{sentence}** {setting}"
    assert not [section for section in opened("demo").expander if section.label == "Show the answer"]


def test_guess_before_you_see(contrast) -> None:
    app = opened("demo", classroom="true", guess="3")
    assert "Random task 3:" in words(app) and "The mean is" not in words(app)
    answers = [button for button in app.button if (button.key or "").startswith("answer_")]
    assert len(answers) == 4
    truth = contrast.band_of(2)
    answers[truth].click().run()
    assert f"**Correct: {contrast.accuracy[2]:.0%}.**" in words(app)
    app.button(key="next").click().run()
    assert "Random task 4:" in words(app) and "The mean is" not in words(app)
    assert in_link(app, "guess") == "4"
    wrong = 0 if contrast.band_of(3) else 3
    app.button(key=f"answer_3_{wrong}").click().run()
    assert ("Too low:" if wrong < contrast.band_of(3) else "Too high:") in words(app)
    assert "1 of 2 guesses correct" in words(app)


# --- what is chosen is in the link --------------------------------------------------------------------------------


def test_the_task_of_the_scatter_comes_from_the_link() -> None:
    app = open_link("predict_accuracy", "demo", n_tasks="20", task="7")
    assert any(heading.value.startswith("Task 7:") for heading in app.subheader)
    assert in_link(app, "task") == "7"
    assert not any("efficientnet_lite0" in caption.value for caption in app.caption)


def test_the_method_and_the_task_of_a_change_of_context_come_from_the_link() -> None:
    query = {"show": "Cost of a context change", "methods": "protonet,simpleshot", "n_tasks": "20"}
    app = open_link("contexts", "demo", **query, looked="simpleshot", place="3")
    assert app.selectbox(key="looked").value == "simpleshot" and app.number_input(key="place").value == 3
    assert (in_link(app, "looked"), in_link(app, "place")) == ("simpleshot", "3")


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("images", {}),
        ("contexts", {"show": "Cost of a context change", "n_tasks": "10"}),
        ("contexts", {"show": "Image–text similarity"}),
        ("add_images", {}),
    ],
)
def test_pages_before_a_class_have_fewer_controls_and_the_same_numbers(page: str, query: dict[str, str]) -> None:
    kinds = ("selectbox", "multiselect", "number_input", "text_input", "checkbox", "select_slider", "slider")

    def controls(app) -> int:
        buttons = sum(len(group.options) for group in app.get("button_group"))
        return sum(len(getattr(app, kind)) for kind in kinds) + buttons

    alone, before_a_class = open_link(page, "demo", **query), open_link(page, "demo", classroom="true", **query)
    assert controls(before_a_class) < controls(alone)
    assert [m.value for m in before_a_class.metric] == [m.value for m in alone.metric]


def test_a_control_that_the_link_uses_is_there_before_a_class_too() -> None:
    app = open_link("images", "demo", classroom="true", by="blur")
    assert app.multiselect(key="by").value == ["blur"]
    app = open_link("add_images", "demo", classroom="true", do="WordNet senses")
    assert not app.exception and "WordNet senses" in str([group.options for group in app.get("button_group")])


def test_overview_and_classes_count_the_same_concepts() -> None:
    """Single-child chains are no concepts, on either page."""
    graph = taxonomy.split_dag(datasets.load("mini_imagenet"), "all")
    n = taxonomy.n_concepts(graph)
    collapsed = taxonomy.collapse(graph)
    assert n == sum(node not in {collapsed.nodes[c] for c in collapsed.class_nodes} for node in collapsed.nodes)
    assert n < len(set(datasets.load("mini_imagenet").taxonomy["parent"]))
    values = {metric.label: metric.value for metric in opened("mini_imagenet").metric}
    assert values["Concepts"] == f"{n:,}"
    page = open_link("classes", "mini_imagenet", split="all", layout="radial")
    assert f"100 classes, {n:,} concepts" in words(page)
