"""Settings in links: the same key means the same on every page, identifiers stand in the link and titles on the page,
titles are read as well, and what is impossible is one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from fsviz.analyses import semantic_sampling
from fsviz.ui.pages import compare_datasets
from tests.studies.toy_dataset import make_toy
from tests.ui.pages import in_workspace, link_of, open_link
from tests.ui.test_gallery_pages import run

PAGES = ("sample_tasks", "evaluate", "hard_supports", "predict_accuracy")
LINK_SETTINGS = {"sampler": "semantic", "n_way": "12", "alpha": "3.5", "beta": "450", "n_tasks": "70"}
LINK_SETTINGS |= {"seed": "123456789", "n_shot": "4", "n_query": "7"}


@pytest.fixture(scope="module", autouse=True)
def _workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One for all tests that save nothing: what pages compute of the same tasks is computed once."""
    with in_workspace(tmp_path_factory):
        make_toy("linked", n_images=30)
        make_toy("second_toy")
        yield


@pytest.fixture
def own_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    make_toy("linked", n_images=30)


def fine(app: AppTest) -> AppTest:
    assert not app.exception and not app.error, [e.value for e in app.error]
    return app


@pytest.mark.parametrize("page", PAGES)
def test_a_link_is_valid_on_every_page_that_draws_tasks(page: str) -> None:
    app = fine(run(page, dataset="linked", **LINK_SETTINGS))
    taken_up(app, LINK_SETTINGS)
    command = app.code[0].value
    for flag in ("--n-way 12", "--alpha 3.5", "--beta 450", "--n-tasks 70", "--seed 123456789", "--n-shot 4"):
        assert flag in command


def taken_up(app: AppTest, settings: dict[str, str]) -> None:
    """Checks that the page has these settings, keeps them in its link and reports nothing."""
    assert not app.toast
    assert {name: app.session_state[name] for name in settings} == {
        name: text if name == "sampler" else float(text) for name, text in settings.items()
    }
    link = link_of(app)
    assert {name: link.get(name) for name in settings if name != "sampler"} == {
        name: text for name, text in settings.items() if name != "sampler"
    }  # none of them is a default


@pytest.mark.parametrize(
    ("page", "keys", "more"),
    [
        ("causes", tuple(LINK_SETTINGS), {}),
        ("image_map", tuple(LINK_SETTINGS), {"testbed": "drawn"}),
        ("compare_datasets", ("sampler", "n_way", "n_tasks", "seed", "n_shot", "n_query"), {"against": "second_toy"}),
        ("edit_task", ("n_shot", "n_query", "seed"), {}),
    ],
)
def test_a_link_is_valid_on_pages_that_have_some_of_its_settings(
    page: str, keys: tuple[str, ...], more: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_datasets, "MOST_TASKS", 50)
    settings = {name: LINK_SETTINGS[name] for name in keys}
    app = fine(run(page, dataset="linked", **settings, **more))
    taken_up(app, settings)
    less = "Limited to 50 tasks per dataset here."
    assert any(less in caption.value for caption in app.caption) == (page == "compare_datasets")


def test_more_images_than_there_are_is_a_sentence_and_stays_in_the_link() -> None:
    app = run("edit_task", dataset="linked", n_shot="1000", n_query="1000")
    assert "has 30 images with features" in app.error[0].value and "needs 2000" in app.error[0].value and not app.toast
    assert link_of(app) == {"n_shot": "1000", "n_query": "1000"}


@pytest.mark.parametrize("page", PAGES)
def test_impossible_settings_are_one_sentence_and_leave_the_link(page: str) -> None:
    settings = {"n_way": "abc", "n_tasks": "2.5", "sampler": "clever", "nonsense": "1"}
    app = fine(run(page, dataset="linked", seed="1e400", **settings))
    assert "seed=1e400" in app.warning[0].value.replace("\\", "")
    (toast,) = app.toast
    for name, text in settings.items():
        assert f"{name}={text}" in toast.value.replace("\\", "")
    assert "does not apply here" in toast.value
    assert not link_of(app)


def test_a_default_that_a_link_names_stays_until_it_is_changed() -> None:
    """Taking it out would be one more step for the browser's back button."""
    settings = {"distance": "jiang_conrath", "split": "test"}
    app = fine(run("classes", dataset="linked", **settings))
    assert link_of(app) == settings and not app.toast
    fine(app.selectbox(key="distance").set_value("path_length").run())
    assert link_of(app) == {"distance": "path_length", "split": "test"}
    fine(app.selectbox(key="distance").set_value("jiang_conrath").run())
    assert link_of(app) == {"split": "test"}


def test_choices_show_titles_and_link_identifiers() -> None:
    app = fine(run("classes", dataset="linked", distance="wu_palmer"))
    assert "Wu-Palmer" in app.selectbox(key="distance").options
    assert app.selectbox(key="distance").value == "wu_palmer" and link_of(app) == {"distance": "wu_palmer"}
    fine(app.selectbox(key="distance").set_value("path_length").run())
    fine(app.selectbox(key="dag").set_value("all_paths").run())
    assert link_of(app) == {"distance": "path_length", "dag": "all_paths"}
    fine(app.selectbox(key="distance").set_value("jiang_conrath").run())
    assert link_of(app) == {"dag": "all_paths"}  # defaults are not in the link


@pytest.mark.parametrize(
    ("page", "settings", "expected"),
    [
        ("classes", {"distance": "Wu-Palmer"}, {"distance": "wu_palmer"}),
        (
            "hard_supports",
            {"sampler": "Semantic", "classifier": "SimpleShot", "search": "FastDiffSel (paper)", "start": "random"},
            {"sampler": "semantic", "classifier": "simpleshot", "search": "fastdiffsel", "start": "random"},
        ),
        (
            "hard_supports",
            {"search": "fastdiffsel", "loss": "plain", "start": "equal", "n_steps": "2"},
            {"search": "fastdiffsel", "loss": "plain", "n_steps": "2"},
        ),
        ("hard_supports", {"search": "literal", "step": "50"}, {"search": "literal", "step": "50"}),
        ("hard_supports", {"search": "Accuracy search", "loss": "plain"}, {"loss": "plain"}),
        (
            "evaluate",
            {
                "task_kinds": "semantic + uniform, 1 and 5 shots",
                "simpleshot_unit_length": "false",
                "methods": "SimpleShot",
            },
            {"task_kinds": "tables", "simpleshot_unit_length": "false", "methods": "simpleshot"},
        ),
    ],
)
def test_titles_and_settings_of_a_choice_are_read(page: str, settings: dict, expected: dict) -> None:
    app = fine(run(page, dataset="linked", **settings))
    assert link_of(app) == expected and not app.toast


def test_settings_of_another_sampler_leave_page_and_link() -> None:
    app = fine(run("sample_tasks", dataset="linked", alpha="1.5"))
    assert link_of(app) == {"alpha": "1.5"}
    fine(app.selectbox(key="sampler").set_value("variable").run())
    assert link_of(app) == {"sampler": "variable"} and "--max-way 50" in app.code[0].value
    assert app.select_slider(key="n_tasks").value == 1000  # drawing images takes longer: fewer to begin with
    fine(app.selectbox(key="sampler").set_value("semantic").run())
    assert link_of(app) == {} and "--alpha 0.64 " in app.code[0].value  # the one that suits these few classes


def test_variable_tasks_are_evaluated_with_the_settings_of_their_sampler() -> None:
    app = fine(run("evaluate", dataset="linked", sampler="variable", max_way="6", n_shot="3", n_tasks="70"))
    assert link_of(app) == {"sampler": "variable", "max_way": "6", "n_tasks": "70"}
    command = next(code.value for code in app.code if "evaluate" in code.value)
    assert "--sampler variable" in command and "--max-way 6" in command and "--n-shot" not in command
    assert any("Preview: 200 tasks" in text.value for text in app.markdown)


def test_a_hierarchy_is_followed_by_a_switch_that_is_in_link_and_command_where_there_is_a_taxonomy() -> None:
    app = fine(run("sample_tasks", dataset="omniglot", sampler="variable", n_tasks="50"))
    fine(app.toggle(key="follow_hierarchy").set_value(True).run())
    assert link_of(app) == {"sampler": "variable", "n_tasks": "50", "follow_hierarchy": "true"}
    assert "--follow-hierarchy" in app.code[0].value
    fine(app.selectbox(key="sampler").set_value("uniform").run())
    assert "follow_hierarchy" not in link_of(app)
    app = fine(run("sample_tasks", dataset="dtd", sampler="variable", n_tasks="50"))
    assert "follow_hierarchy" not in [toggle.key for toggle in app.toggle]


def test_parameters_of_a_method_are_in_the_link_while_it_is_chosen() -> None:
    app = fine(run("evaluate", dataset="linked", ridge_penalty="0.5"))
    assert not app.toast and link_of(app) == {"ridge_penalty": "0.5"}
    assert "--set ridge.penalty=0.5" in app.code[0].value
    fine(app.multiselect(key="methods").set_value(["protonet", "ridge"]).run())
    assert link_of(app) == {"methods": "protonet,ridge", "ridge_penalty": "0.5"}
    fine(app.multiselect(key="methods").set_value(["protonet"]).run())
    assert link_of(app) == {"methods": "protonet"}
    fine(app.multiselect(key="methods").set_value([]).run())
    assert link_of(app) == {"methods": ""}
    assert any("Choose a method and a backbone." in text.value for text in app.markdown)


def test_alpha_starts_over_with_another_distance() -> None:
    app = fine(run("sample_tasks", dataset="linked", alpha="1.5"))
    fine(app.selectbox(key="distance").set_value("lin").run())
    assert app.slider(key="alpha").value == 5.0 and link_of(app) == {"distance": "lin"}


def test_a_slider_reaches_what_a_link_asks_for() -> None:
    app = fine(run("sample_tasks", dataset="linked", alpha="6", n_tasks="333"))
    assert app.slider(key="alpha").max == 6 and "333" in app.select_slider(key="n_tasks").options
    fine(app.slider(key="alpha").set_value(2.5).run())
    assert app.slider(key="alpha").max == 6 and link_of(app) == {"alpha": "2.5", "n_tasks": "333"}
    assert "2.5, from the link, is beyond the usual maximum of 2" in "".join(caption.value for caption in app.caption)
    fine(app.slider(key="alpha").set_value(2.0).run())
    assert "usual end" not in "".join(caption.value for caption in app.caption)


def test_too_many_ways_for_a_split_give_way() -> None:
    app = fine(run("sample_tasks", dataset="linked", n_way="17"))  # sixteen classes
    assert app.slider(key="n_way").value == 5 and len(app.toast) == 1


def test_without_distances_tasks_are_drawn_all_the_same() -> None:
    app = fine(run("sample_tasks", dataset="digits"))
    assert app.selectbox(key="sampler").options == ["Uniform", "Variable"]
    fine(app.selectbox(key="sampler").set_value("variable").run())
    assert "--sampler variable" in app.code[0].value
    assert any("Coarsity is not available" in m.value and "has no taxonomy" in m.value for m in app.markdown)


def test_saving_never_replaces_another_testbed(own_workspace) -> None:
    from fsviz.sampling.testbeds import list_testbeds

    app = fine(run("sample_tasks", dataset="linked", n_tasks="50"))
    app.text_input(key="testbed_name").set_value("mine").run()
    app.button(key="save_testbed").click().run()
    assert "Saved as mine" in app.success[0].value and list_testbeds() == ["mine"]
    app.number_input(key="seed").set_value(1).run()
    app.button(key="save_testbed").click().run()
    assert "Choose another name" in app.error[0].value and list_testbeds() == ["mine"]
    app.text_input(key="testbed_name").set_value("").run()
    app.button(key="save_testbed").click().run()
    assert len(list_testbeds()) == 2 and not app.error


def selected(app: Any) -> str:
    """The heading of the selected task."""
    return next(m.value for m in app.markdown if m.value.startswith("**Task "))


def test_a_bar_and_a_task_of_it_are_in_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    compute_bins, computed = semantic_sampling.coarsity_bins, {}

    def remember(beds: dict[str, Any]) -> semantic_sampling.CoarsityBins:
        computed["bins"], computed["names"] = compute_bins(beds), list(beds)
        return computed["bins"]

    monkeypatch.setattr(semantic_sampling, "coarsity_bins", remember)
    fine(run("sample_tasks", dataset="linked", n_tasks="200"))
    bins, names = computed["bins"], computed["names"]
    counts = bins.counts["chosen"]
    full = int(counts.argmax())
    middle = f"{(bins.edges[full] + bins.edges[full + 1]) / 2:g}"
    app = fine(run("sample_tasks", dataset="linked", n_tasks="200", bar=f"chosen:{middle}"))
    assert names == ["uniform", "chosen"] and not app.toast
    assert any(f"{counts[full]:,} tasks with a coarsity of" in m.value for m in app.markdown)
    first = selected(app)
    assert re.fullmatch(r"\*\*Task [\d,]+\*\* · coarsity [\d.]+.*", first)
    app.session_state["task"] = "no task"
    fine(app.run())  # one that is not there gives way to the first
    assert selected(app) == first


def test_tasks_of_all_classes_are_called_alike_instead_of_fine_grained() -> None:
    app = fine(run("sample_tasks", dataset="linked", n_way="16", n_tasks="50"))
    assert any("All uniform tasks have the same coarsity." in m.value for m in app.markdown)
    assert not any("fine-grained (" in m.value for m in app.markdown)
    assert any("All tasks use the same classes" in c.value for c in app.caption)


def test_the_effect_of_dropping_repeats_is_reported_and_can_be_turned_off() -> None:
    app = fine(run("sample_tasks", dataset="linked", n_tasks="500"))
    assert any("Duplicates removed: median coarsity" in c.value for c in app.caption)
    fine(app.toggle(key="repeats").set_value(True).run())
    assert link_of(app)["repeats"] == "true" and "--repeats" in app.code[0].value
    assert not any("Duplicates removed: median coarsity" in c.value for c in app.caption)


def test_a_saved_testbed_leads_to_evaluate(own_workspace) -> None:
    app = fine(run("sample_tasks", dataset="linked", n_tasks="50", n_shot="2"))
    app.text_input(key="testbed_name").set_value("mine").run()
    app.button(key="save_testbed").click().run()
    queries = [link.proto.query_string for link in app.main.get("page_link")]
    assert any("testbeds=mine" in query and "tasks_from=saved" in query for query in queries)


def test_classes_and_splits_arrive_on_another_page_and_stand_in_its_link() -> None:
    app = open_link("classes", "demo", split="train", classes=["cat", "dog"])
    (query,) = [link.proto.query_string for link in app.main.get("page_link") if link.proto.label == "Show all images"]
    settings = parse_qs(query)
    assert settings["classes"] == ["dog"]
    gallery = open_link("images", **{name: value[0] for name, value in settings.items()})
    assert gallery.multiselect(key="classes").value == ["dog"] and not gallery.toast
    assert link_of(gallery)["classes"] == "dog"
    tasks = open_link("sample_tasks", "demo", split="train")
    assert tasks.selectbox(key="split").value == "train" and not tasks.toast and link_of(tasks) == {"split": "train"}
