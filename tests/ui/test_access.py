"""A shared server: visitors see what they may, and reach nothing else by links or by session state."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from fsviz import datasets, jobs, sharing
from fsviz.datasets import image_folders
from fsviz.records import Tasks, Testbed
from fsviz.sampling import testbeds
from fsviz.ui.pages.add_images import sources
from fsviz.ui.parts import access, answers, navigation
from fsviz.ui.parts.page import PAGES
from tests.datasets.test_image_folders import folder_of, picture
from tests.sources import ROOT, near, parsed
from tests.studies.toy_dataset import make_toy
from tests.ui.test_gallery_pages import texts

WORD = "a word for the tests"

FEW = {"n_tasks": "20", "n_way": "3", "n_shot": "2", "n_query": "5"}

# Every page, with the links that lead to its corners.
WALK: tuple[tuple[str, dict[str, str]], ...] = (
    ("overview", {"dataset": "pets"}),
    ("images", {"dataset": "pets"}),
    ("classes", {"dataset": "toy"}),
    ("sample_tasks", {"dataset": "toy", "n_tasks": "100"}),
    ("evaluate", {"dataset": "toy"}),
    ("evaluate", {"dataset": "pets"}),
    ("runs", {"dataset": "toy"}),
    ("runs", {"dataset": "toy", "show": "All runs"}),
    ("hard_supports", {"dataset": "toy", **FEW, "show": "Search methods"}),
    ("hard_supports", {"dataset": "toy", "n_tasks": "1000", "show": "Other classifiers"}),
    ("confusion", {"dataset": "toy"}),
    ("predict_accuracy", {"dataset": "toy", **FEW}),
    ("predict_accuracy", {"dataset": "toy", **FEW, "show": "Shots, ways, queries"}),
    ("contexts", {"dataset": "toy"}),
    ("train_test_distance", {"dataset": "toy", "starts": "2"}),
    ("train_test_distance", {"dataset": "cifar100"}),
    ("add_images", {"dataset": "pets"}),
    ("add_images", {"dataset": "pets", "do": "Extract features"}),
    ("add_images", {"dataset": "pets", "do": "Import features"}),
    ("add_images", {"dataset": "pets", "do": "Manage"}),
    ("image_map", {"dataset": "toy"}),
    ("edit_task", {"dataset": "toy"}),
    ("compare_datasets", {"dataset": "toy", "against": "pets", **FEW}),
    ("causes", {"dataset": "toy", **FEW, "n_tasks": "60"}),
    ("task", {"dataset": "toy"}),
    ("learn", {"dataset": "toy", "lesson": "2"}),
)
# What a visitor must not find; the walk without sharing finds each of them, so none is a name of the past.
FORBIDDEN = {
    *(
        "Save testbed",
        "Save split",
        "Run",
        "Cancel",
        "Resume",
        "Delete",
        "Delete pets",
        "Delete it",
        "Save the title",
        "Save the name",
        "Extract features",
        "Import",
    ),
    *("Extract features with EfficientNet-Lite0", "Runs at the same time", "File of features", "file uploader"),
    *("Path of a folder, a CSV table or an easyfsl JSON spec", "Run on all tasks"),
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(access, "_attempts", sharing.Attempts(within=1e6))
    return tmp_path / "home"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images, features, a testbed and a run: made once, and what pages compute of them is computed once."""
    home = tmp_path_factory.mktemp("furnished") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSVIZ_HOME", str(home))
        images = folder_of(home.parent / "private" / "pets", {"dog": 3, "cat": 3, "owl": 3})
        image_folders.register("pets", image_folders.inspect(images))
        make_toy("toy")
        sampler = {"sampler": "uniform", "n_way": 4, "n_shot": 2, "n_query": 5, "n_tasks": 20}
        spec = {"study": "evaluate", "dataset": "toy", "backbones": ["alpha_net"], "methods": ["protonet"]}
        jobs.run_in_foreground({**spec, "sampler": sampler, "device": "cpu"})
        class_ids, support, query = np.array([[0, 1]]), np.array([[[0], [1]]]), np.array([[[2], [3]]])
        testbeds.save_testbed(Testbed("t", Tasks(class_ids, support, query), {"dataset": "toy"}))
    return home


@pytest.fixture
def furnished(workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with images, features and a run, which no test may change."""
    monkeypatch.setenv("FSVIZ_HOME", str(workspace))
    return workspace


def share(monkeypatch: pytest.MonkeyPatch, **rule) -> None:
    for name, value in sharing.Sharing(**rule).to_environment().items():
        monkeypatch.setenv(name, value)


def open_page(page: str, query: dict[str, str] | None = None, state: dict | None = None) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600)
    app.switch_page(f"pages/{page}.py")
    for name, value in (query or {}).items():
        app.query_params[name] = value
    for name, value in (state or {}).items():
        app.session_state[name] = value
    app.run()
    assert not app.exception, app.exception[0].value
    return app


def controls(app: AppTest) -> set[str]:
    """Labels of all buttons, links, inputs and the uploader, without counts."""
    labels = {e.label for kind in (app.button, app.number_input, app.text_input) for e in kind}
    labels |= {e.proto.label for e in app.get("page_link")}
    return {re.sub(r"\s+\d*$", "", label) for label in labels} | (
        {"file uploader"} if app.get("file_uploader") else set()
    )


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()}


def test_the_walk_leads_over_every_page() -> None:
    assert {page for page, _ in WALK} == set(PAGES)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages wait for little and start nothing by themselves, so that they offer what can be started."""
    monkeypatch.setattr(answers, "WAIT", 0.5)
    monkeypatch.setattr(answers, "AUTO_START", 0.0)


@pytest.mark.usefixtures("impatient")
def test_visitors_find_none_of_them(furnished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share(monkeypatch, look=True)
    before = contents(furnished)
    page_texts = []
    for page, query in WALK:
        app = open_page(page, query)
        assert not controls(app) & (FORBIDDEN | {"Add images"}), (page, query)
        page_texts.append(texts(app))
    for words in ("cannot start, resume or cancel runs", "cannot save datasets", "cannot upload files"):
        assert any(words in text for text in page_texts), words
    everything = "\n".join(page_texts)
    assert str(furnished.parent) not in everything and "private" not in everything  # where the images lie
    assert contents(furnished) == before


def test_session_state_opens_nothing(furnished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share(monkeypatch, look=True, password=sharing.hash_password(WORD))
    forged = {"source": sources.FOLDER, "path_0": "/etc", "fetched": "dtd", "added": "pets", "features_file": "/etc"}
    forged |= {"preview": (("/etc", "[]"), None), "compare_next": ["nothing"], "_unlocked": True, "unlocked": True}
    forged |= dict.fromkeys(
        ("save", "save_testbed", "save_brought", "save_curated", "start", "extract", "import"), True
    )
    forged |= dict.fromkeys(("download", "remove_pets", "rename_pets", "delete_testbed_t", "rename_testbed_t"), True)
    forged |= dict.fromkeys(("cancel_extraction", "resume_extraction", "full_use"), True)
    before = contents(furnished)
    for page, query in WALK:
        assert not controls(open_page(page, query, forged)) & (FORBIDDEN | {"Add images"}), (page, query)
    assert contents(furnished) == before


@pytest.mark.usefixtures("impatient")
def test_the_walk_finds_every_control_on_a_server_of_ones_own(furnished: Path) -> None:
    """After the walks of visitors: what it leaves in the workspace or in a cache would hide what theirs would leave."""
    labels = set().union(*(controls(open_page(page, query)) for page, query in WALK))
    assert labels >= FORBIDDEN | {"Add images"}, FORBIDDEN - labels


def try_everything() -> None:
    import streamlit as st

    from fsviz.errors import NotAllowed
    from fsviz.ui.parts import access

    for action in access.ACTIONS:
        try:
            access.do(action, st.success, action)
        except NotAllowed as error:
            st.error(str(error))
    try:
        st.success(access.path("/etc/passwd"))
    except NotAllowed as error:
        st.error(str(error))


def test_the_work_itself_is_refused_not_only_its_control(monkeypatch: pytest.MonkeyPatch) -> None:
    app = AppTest.from_function(try_everything).run()
    assert len(app.success) == len(access.ACTIONS) + 1 and not app.error
    share(monkeypatch, look=True)
    app.run()
    assert len(app.error) == len(access.ACTIONS) + 1 and not app.success
    assert "Its owner can" in app.error[0].value


# The functions that change something, read a path of the visitor or start work, and what they need.
GUARDED = {
    **{f"jobs.{name}": {"run"} for name in ("submit", "resume", "cancel")},
    "jobs.delete": {"delete"},
    "jobs.set_workers": {"workers"},
    "image_folders.remove_dataset": {"delete"},
    "saved.rename_dataset": {"delete"},
    "store.remove_features": {"delete"},
    "store.rename_features": {"delete"},
    "testbeds.delete_testbed": {"delete"},
    "testbeds.rename_testbed": {"delete"},
    **{f"user_images.{name}": {"save"} for name in ("save", "import_features", "correct", "attach_found")},
    "user_images.find": {"action"},
    **{name: {"upload"} for name in ("uploads.collect", "uploads.keep_weights", "archives.unpack")},
    "testbeds.parse_testbed": {"upload"},
    "testbeds.save_testbed": {"save"},
    "study.save_sets": {"save"},
    "study.save": {"save"},
    "draw.save": {"save"},
    "saved_splits.read_split": {"upload"},
    "saved_splits.remove_split": {"delete"},
    "labels.remove_label": {"save"},
    "attribute_shifts.save_curated": {"save"},
}
# They read text, and no file; the last takes back the visitor's own upload.
HARMLESS = {f"study.parse_{kind}" for kind in ("classes", "images", "swap")}
HARMLESS |= {"figures.parse_selection", "task_ids.parse_task_id", "uploads.delete_if_unusable"}
CHANGES = re.compile(
    r"(submit|resume|cancel|delete|remove|rename|save|write|import|unpack|register|set|fetch|parse)(_\w+)?"
)


def test_pages_change_things_through_the_check_alone() -> None:
    paths = sorted((ROOT / "fsviz" / "ui").rglob("*.py"))
    assert len(paths) > 50 and [problem for path in paths for problem in unchecked(path)] == []


def unchecked(path: Path) -> Iterator[str]:
    """Calls in a file of fsviz/ui that change something without `access.do`."""
    tree = parsed(path)
    checked: dict[ast.AST, ast.AST] = {}
    for node in ast.walk(
        tree
    ):  # access.do("action", function, ...), also as a callback's args=("action", function, ...)
        parts = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else []
        if len(parts) > 1:
            checked[parts[1]] = parts[0]
    rooms = imported_rooms(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            continue
        name = f"{node.value.id}.{node.attr}"
        if name in GUARDED:
            action = checked.get(node)
            action_name = action.value if isinstance(action, ast.Constant) else ast.unparse(action) if action else None
            if action_name not in GUARDED[name]:
                yield f"{near(path)}: {name} in line {node.lineno} must go through access.do"
        elif name not in HARMLESS and CHANGES.fullmatch(node.attr) and node.value.id in rooms:
            yield f"{near(path)}: {name} in line {node.lineno}: say in GUARDED what a visitor needs for it"


def imported_rooms(tree: ast.AST) -> set[str]:
    """Names under which a page knows modules of fsviz outside ui."""
    module_names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fsviz") and "ui" not in node.module:
            module_names |= {alias.asname or alias.name for alias in node.names}
    return module_names


# --- with a password ---------------------------------------------------------------------------------------------


def unlock(app: AppTest, word: str) -> AppTest:
    app.text_input(key="unlock_password").set_value(word)
    next(button for button in app.button if button.label == "Unlock").click()
    return app.run()


def test_without_the_password_nothing_is_shown(furnished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share(monkeypatch, password=sharing.hash_password(WORD))
    for page, query in WALK[::3]:
        app = open_page(page, query)
        assert [title.value for title in app.title] == ["This server is locked"]
        assert controls(app) == {"Password", "Unlock"} and not app.metric and not app.selectbox
    app = unlock(open_page("add_images", {"dataset": "pets"}), "a wrong word")
    assert "Wrong password" in app.error[0].value
    app = unlock(app, WORD)
    assert "my own images" in app.title[0].value


def test_a_server_that_refuses_everybody_prepares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "127.0.0.1"
    monkeypatch.setattr(access.config, "get_option", lambda _: address)
    assert access.may_be_visited()
    address = "0.0.0.0"
    assert not access.may_be_visited()
    monkeypatch.setenv(sharing.LOOK, "1")
    assert access.may_be_visited()


def test_too_many_wrong_passwords_must_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    share(monkeypatch, look=True, password=sharing.hash_password(WORD))
    monkeypatch.setattr(access, "_attempts", sharing.Attempts(all=5, within=1e6))
    app = open_page("classes", {"dataset": "cifar100"})
    for _ in range(5):
        app = unlock(app, "guess")
        assert "Wrong password" in app.error[0].value
    app = unlock(app, WORD)
    assert "Too many" in app.error[0].value
    assert "Unlock" in controls(app.run()) and "Lock again" not in controls(app)


def test_a_session_is_unlocked_and_locked_again(furnished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share(monkeypatch, look=True, password=sharing.hash_password(WORD))
    app = open_page("runs", {"dataset": "toy", "show": "All runs"})
    assert "Delete" not in controls(app)
    app = unlock(app, WORD)
    assert {"Delete", "Resume", "Runs at the same time"} <= controls(app)
    assert any(option.endswith("Add images") for option in app.selectbox(key=navigation.SEARCH).options)
    next(button for button in app.button if button.label == "Lock again").click()
    assert "Delete" not in controls(app.run())
    assert "Delete" in controls(unlock(app, WORD))
    share(monkeypatch, look=True, password=sharing.hash_password("another password"))
    assert "Delete" not in controls(app.run()), "the password that was given is not that of the server any more"


def unlocked_add_images(monkeypatch: pytest.MonkeyPatch, *allowed: Path, **query: str) -> AppTest:
    share(monkeypatch, password=sharing.hash_password(WORD), folders=allowed)
    return unlock(open_page("add_images", query), WORD)


def test_paths_lead_only_into_the_named_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = folder_of(tmp_path / "shared" / "pets", {"dog": 2, "cat": 2})
    outside = folder_of(tmp_path / "private" / "faces", {"me": 2, "you": 2})
    (tmp_path / "shared" / "link").symlink_to(outside)
    app = unlocked_add_images(monkeypatch, tmp_path / "shared")
    assert str(tmp_path / "shared") in texts(app)
    for path in (
        outside,
        tmp_path / "shared" / "link",
        "/etc/passwd",
        f"{inside}/../../private/faces",
        "torchvision:dtd",
    ):
        app.text_input(key="path_0").set_value(str(path)).run()
        assert "must lie in a folder" in app.error[0].value or "Not found" in app.error[0].value, path
        assert not app.metric
    app.text_input(key="path_0").set_value("torchvision:dtd").run()
    assert "Not found" in app.error[0].value  # a name in the folder, not a download
    app.text_input(key="path_0").set_value(str(inside)).run()
    assert not app.error and app.metric[0].value == "2"
    app.text_input(key="images_folder").set_value(str(outside)).run()
    assert "must lie in a folder" in app.error[0].value


def test_classes_are_split_by_size_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(tmp_path / "shared" / "zoo", {f"class{n}": n for n in (2, 3, 4, 5, 6)})
    app = unlocked_add_images(monkeypatch, tmp_path / "shared")
    app.text_input(key="path_0").set_value(str(folder)).run()
    assert app.metric[2].label == "Splits" and "train" not in app.metric[2].value
    app.checkbox(key="by_size").check().run()
    assert not app.exception and sorted(app.metric[2].value.split(" / ")) == ["test", "train", "val"]
    app.button(key="save").click().run()
    assert not app.exception and not app.error
    classes = datasets.load("zoo").classes.set_index("class_name")["split"].to_dict()
    assert classes == {"class6": "train", "class5": "train", "class4": "train", "class3": "test", "class2": "val"}


def test_lists_name_nothing_outside_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = folder_of(tmp_path / "private" / "faces", {"me": 2, "you": 2})
    listed = tmp_path / "shared"
    picture(listed / "own.png")
    spec = {"class_names": ["me", "you"], "class_roots": [str(outside / "me"), str(outside / "you")]}
    (listed / "all.json").write_text(json.dumps(spec))
    (listed / "all.csv").write_text(f"path,class\n{outside}/me/0.png,me\nown.png,mine\n")
    app = unlocked_add_images(monkeypatch, listed)
    app.text_input(key="path_0").set_value(str(listed / "all.json")).run()
    assert "None of the class folders" in app.error[0].value and not app.metric
    app.text_input(key="path_0").set_value(str(listed / "all.csv")).run()
    assert app.metric[1].value == "1"  # its own image alone


def test_features_are_read_only_from_the_named_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shared").mkdir()
    app = unlocked_add_images(monkeypatch, tmp_path / "shared", do="Import features")
    app.text_input(key="features_file").set_value("/etc/passwd").run()
    app.button(key="import").click().run()
    assert "must lie in a folder" in app.error[0].value


def test_without_named_folders_there_are_no_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    app = unlocked_add_images(monkeypatch)
    assert not any("Path" in label for label in controls(app)) and "file uploader" in controls(app)
    assert "--folder" in texts(app)
    assert "File of features" not in controls(unlocked_add_images(monkeypatch, do="Import features"))


def test_on_ones_own_computer_paths_are_free(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "anywhere", {"dog": 2, "cat": 2})
    app = open_page("add_images", state={"path_0": str(root)})
    assert app.metric[0].value == "2"


# --- what one look may cost --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("evaluate", {"n_way": "16", "n_shot": "50", "n_query": "50"}),
    ],
)
def test_a_look_is_capped(furnished: Path, page: str, query: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    share(monkeypatch, look=True)
    app = open_page(page, {"dataset": "toy", **query})
    assert any("Too large for this shared server" in info.value for info in app.info) and not app.get("plotly_chart")
    assert open_page(page, {"dataset": "toy"}).get("plotly_chart")  # what the page starts with fits


def test_a_visitor_gets_as_many_hard_tasks_as_five_seconds_allow(furnished: Path, monkeypatch) -> None:
    share(monkeypatch, look=True)
    request = {"dataset": "toy", "search": "fastdiffsel", "n_shot": "5", "n_steps": "40"}
    app = open_page("hard_supports", request)
    answer = next(m.value for m in app.markdown if "with random ones" in m.value)
    n_tasks = re.search(r"Preview. ([\d,]+) 5-way 5-shot tasks of", answer)
    assert n_tasks and 20 <= int(n_tasks[1]) < 200
    assert "Full run: 200 tasks" in texts(app) and not any("Start" in button.label for button in app.button)
    monkeypatch.setitem(access.LIMITS, "seconds", 0.01)
    app = open_page("hard_supports", {**request, "seed": "1"})
    assert any("even a preview takes more than" in info.value for info in app.info)
    assert not app.get("plotly_chart") and "No results yet" in texts(app)


def test_a_preview_of_large_tasks_has_fewer_of_them(furnished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share(monkeypatch, look=True)
    app = open_page("evaluate", {"dataset": "toy", "n_way": "16", "n_shot": "5", "n_query": "15"})  # 320 images
    assert any("Preview: 93 tasks" in text.value for text in app.markdown) and app.get("plotly_chart")


def test_draws_and_files_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    share(monkeypatch, look=True)
    monkeypatch.setitem(access.LIMITS, "draws", 100 * 5 * 500)
    monkeypatch.setitem(access.LIMITS, "exported", 500 * 5 * 5)
    app = open_page("sample_tasks", {"dataset": "cifar100", "n_tasks": "1000", "split": "all"})
    assert "too many for a live preview" in texts(app)
    app = open_page("sample_tasks", {"dataset": "cifar100", "n_tasks": "500", "split": "all"})
    assert "Too many images to download" in texts(app) and not app.get("download_button")


def test_paths_are_cut_for_visitors(monkeypatch: pytest.MonkeyPatch) -> None:
    message = "Images in /home/me/pets (see https://a.example/b/c) as root/class/image; '/srv/x y.csv'"
    assert access.without_paths(message) == message
    share(monkeypatch, look=True)
    shortened = "Images in …/pets (see https://a.example/b/c) as root/class/image; '…/x y.csv'"
    assert access.without_paths(message) == shortened
