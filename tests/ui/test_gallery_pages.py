"""The pages Images and Add images without a browser: states that are quicker to reach from here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from fsviz import datasets
from fsviz.datasets import image_folders
from fsviz.errors import WorkspaceError
from fsviz.ui.parts import deferred, image_wall
from tests.datasets.test_image_folders import folder_of, home  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent.parent


def run(page: str, **query: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600).switch_page(f"pages/{page}.py")
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception, app.exception
    return app


def texts(app: AppTest) -> str:
    kinds = (app.title, app.caption, app.markdown, app.info, app.warning, app.error, app.success, app.subheader)
    return "\n".join(element.value for kind in kinds for element in kind)


def test_a_folder_that_moved_is_reported_and_the_page_stays_up(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets", {"dog": 3, "cat": 3})
    image_folders.register("pets", image_folders.inspect(root))
    assert "not found at" not in texts(run("images", dataset="pets"))
    shutil.move(root, tmp_path / "elsewhere")
    page_text = texts(run("images", dataset="pets"))
    assert "not found at" in page_text and "replace" in page_text


def test_a_damaged_dataset_shows_the_demo_and_one_sentence(tmp_path: Path, home: Path) -> None:  # noqa: F811
    image_folders.register("pets", image_folders.inspect(folder_of(tmp_path / "pets", {"dog": 2, "cat": 2})))
    (home / "datasets" / "pets" / "images.parquet").write_bytes(b"nonsense")
    for page in ("images", "add_images"):
        assert "is damaged" in texts(run(page, dataset="pets"))


def test_alt_text_names_the_class_the_role_and_the_prediction(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets", {"dog": 2, "cat": 2})
    dataset = image_folders.register("pets", image_folders.inspect(root))
    cat, dog = (dataset.image_class_ids().tolist().index(c) for c in (0, 1))
    assert dataset.classes["class_name"].tolist() == ["cat", "dog"]
    alt = image_wall.alt_text
    support, query = image_wall.Row("cat", kind="support"), image_wall.Row("dog", kind="query")
    assert alt(dataset, support, image_wall.Tile(cat)) == "cat, support"
    assert alt(dataset, query, image_wall.Tile(dog, frame="right")) == "dog, query, correct"
    assert alt(dataset, query, image_wall.Tile(dog, "cat", "wrong")) == "dog, query, predicted as cat"
    assert alt(dataset, query, image_wall.Tile(dog, frame="wrong", badge="93%")) == "dog, query, incorrect, 93%"
    mixed = image_wall.Row("dog")  # support and queries in one row
    assert alt(dataset, mixed, image_wall.Tile(dog, frame="wrong", badge="cat")) == "dog, query, predicted as cat"
    assert alt(dataset, image_wall.Row(""), image_wall.Tile(cat, "cat", badge="support")) == "cat, support"


def test_classes_of_nested_folders_have_short_names_and_links_take_whole_ones(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "shop", {"Fruit/Citrus/Lime": 2, "Fruit/Kiwi": 2, "Veg/Lime": 2})
    dataset = image_folders.register("shop", image_folders.inspect(root))
    whole = ["Fruit/Citrus/Lime", "Fruit/Kiwi", "Veg/Lime"]
    assert dataset.classes["class_name"].tolist() == whole
    assert dataset.short_names() == ["Citrus/Lime", "Kiwi", "Veg/Lime"]
    assert dataset.short_names(np.array([0, 1])) == ["Lime", "Kiwi"]  # unique in a task
    app = run("images", dataset="shop", order="class", classes="Fruit/Citrus/Lime")
    assert app.multiselect(key="classes").value == ["Fruit/Citrus/Lime"] and not app.toast
    assert app.multiselect(key="classes").options == ["Citrus/Lime (2)", "Kiwi (2)", "Veg/Lime (2)"]
    wall = next(c.proto for c in app.get("bidi_component") if "wall" in c.proto.id)
    (group,) = json.loads(wall.json)["groups"]
    assert {(tile["caption"], tile["hover"]) for tile in group["tiles"]} == {("Citrus/Lime", "Fruit/Citrus/Lime")}
    assert all(tile["alt"].startswith("Fruit/Citrus/Lime") for tile in group["tiles"])


def test_a_predicted_class_is_whole_on_its_thumbnail(tmp_path: Path) -> None:
    names = ["Pear/Lime", "Packages/Milk/Arla-Ecological-Medium-Fat-Milk"]
    root = folder_of(tmp_path / "shop", dict.fromkeys(names, 2))
    dataset = image_folders.register("shop", image_folders.inspect(root))
    rows = [image_wall.Row(names[1], [image_wall.Tile(0, "", "wrong", name) for name in names])]
    short = image_wall._short_names(dataset, rows, titled=True)
    assert short == {"Pear/Lime": "Lime", names[1]: "Arla-Ecological-Medium-Fat-Milk"}
    badges = dict(zip(short, image_wall.in_lines(list(short.values()), 51, 8.5), strict=True))
    tiles = [image_wall._tile(dataset, rows[0], tile, 58, badges, {}) for tile in rows[0].tiles]
    assert [tile["named"] for tile in tiles] == [True, True] and tiles[1]["hover"] == names[1]
    lines = tiles[1]["badge"].split("\n")
    assert len(lines) == 2 and max(map(len, lines)) <= 11 and lines[0].startswith("Arla") and lines[1].endswith("Milk")
    assert image_wall._tile(dataset, rows[0], image_wall.Tile(0, "", "wrong", "93%"), 58, badges, {})["named"] is False
    lines_of = image_wall.in_lines(
        ["Golden Delicious", "Pomegranate", "", *(f"Arla-Natural-{n}" * 3 for n in "ab")], 51, 8.5
    )
    assert lines_of[:3] == ["Golden\nDelicious", "Pomegranate", ""] and lines_of[3] != lines_of[4]


def test_a_broken_image_is_a_tile_that_says_so(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets", {"dog": 2, "cat": 2})
    dataset = image_folders.register("pets", image_folders.inspect(root))
    (root / "cat" / "00.png").write_bytes(b"rotten")
    source, problem = image_wall._thumbnail(dataset, 0, 64)
    assert source == "" and "not an image" in problem
    assert image_wall.thumbnail_uri(dataset, 1, 64).startswith("data:image/png;base64,")
    app = run("images", dataset="pets", order="class")
    assert "not an image" in texts(app)


def test_a_thumbnail_changes_with_its_file(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets", {"dog": 2, "cat": 2})
    dataset = image_folders.register("pets", image_folders.inspect(root))
    before = image_wall.thumbnail_uri(dataset, 0, 64)
    assert image_wall.thumbnail_uri(dataset, 0, 64) == before
    from PIL import Image

    Image.new("RGB", (30, 30), "orange").save(root / "cat" / "00.png")
    assert image_wall.thumbnail_uri(dataset, 0, 64) != before


def test_thumbnails_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_wall, "_KEEP", 5)
    monkeypatch.setattr(image_wall, "_cache", type(image_wall._cache)())
    demo = datasets.load("demo")
    for i in range(8):
        image_wall.thumbnail_uri(demo, i, 32)
    assert len(image_wall._cache) == 5


def test_a_failed_download_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import urllib.request

    def no_network(*args: object, **kwargs: object) -> None:
        raise OSError("Name or service not known")

    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    app = run("add_images")
    app.session_state["source"] = "Download"
    app.run()
    app.button(key="download").click().run()
    assert "could not be downloaded" in texts(app) and not app.exception


def test_adding_from_the_page_writes_what_was_previewed(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "zoo", {"dog": 2, "wolf": 2})
    app = run("add_images")
    app.text_input(key="path_0").set_value(str(root)).run()
    assert not app.exception
    app.text_input(key="new_name").set_value("zoo").run()
    app.button(key="save").click().run()
    assert not app.exception
    dataset = datasets.load("zoo")
    assert dataset.classes["node"].tolist() == ["n02084071", "n02114100"]
    assert "is saved" in texts(app)


def test_features_are_imported_from_the_page(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "f.npz", features=rng.normal(size=(12, 4)).astype("float32"), labels=np.arange(12) // 4)
    app = run("add_images", do="Import features")
    app.text_input(key="features_file").set_value(str(tmp_path / "f.npz")).run()
    app.button(key="import").click().run()
    assert not app.exception and "12 images of 3 classes" in texts(app)
    page_text = texts(run("images", dataset="my_features"))
    assert "features were imported without images" in page_text


def overview(**query: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600)
    app.session_state[deferred.STANDS] = True  # its figures are there
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception, app.exception
    return app


def drawn_classes(app: AppTest) -> str:
    return str(app.get("plotly_chart")[0].proto.spec)


def test_the_overview_follows_a_dataset_that_was_replaced(tmp_path: Path) -> None:
    image_folders.register(
        "pets", image_folders.inspect(folder_of(tmp_path / "one", {"dog": 2, "cat": 2})), title="First"
    )
    first = overview(dataset="pets")
    assert "dog" in drawn_classes(first) and "First" in first.selectbox(key="dataset_picker").options
    replacement = image_folders.inspect(folder_of(tmp_path / "two", {"rose": 2, "lily": 2}))
    image_folders.register("pets", replacement, title="Second", overwrite=True)
    second = overview(dataset="pets")
    assert "rose" in drawn_classes(second) and "dog" not in drawn_classes(second)
    assert "Second" in second.selectbox(key="dataset_picker").options


def test_a_title_is_shown_as_it_was_written(tmp_path: Path) -> None:
    images = image_folders.inspect(folder_of(tmp_path / "one", {"<b>bold": 2, "cat": 2}))
    image_folders.register("pets", images, title="*x* $a$ :red[r]")
    app = overview(dataset="pets")
    assert r"\*x\* \$a\$ \::gray[]red\[r\]" in texts(app)
    assert "Licence: ." not in texts(app)
    assert "&lt;b>bold" in drawn_classes(app).replace("&gt;", ">")


def test_a_workspace_that_cannot_be_read_leaves_the_demo(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    (home / "datasets").mkdir(parents=True)

    def closed() -> list[str]:
        raise WorkspaceError("The workspace cannot be read.")

    monkeypatch.setattr("fsviz.datasets.saved.workspace_dataset_names", closed)
    for app in (overview(), run("images")):
        assert "cannot be read" in texts(app)
        assert "5,136 images of 107 classes" in texts(app) or "5,136" in [m.value for m in app.metric]


def test_an_ordinary_click_is_not_reported_as_an_impossible_link() -> None:
    app = run("images", image="17")
    assert app.session_state["followed"] == 17 and not app.toast
    app.session_state["followed"] = 23  # as a click on a neighbour leaves it
    app.run()
    assert not app.toast and "".join(app.query_params["image"]) == "23"
    app.run()
    assert not app.toast and "".join(app.query_params["image"]) == "23"


def test_what_another_page_left_in_the_link_is_dropped_without_a_word() -> None:
    app = run("images", image="17")
    app.switch_page("pages/evaluate.py")
    app.query_params["image"] = "17"
    app.run()
    assert not app.exception and not app.toast and "image" not in app.query_params


def test_filters_that_leave_nothing_say_so() -> None:
    demo = datasets.load("demo")
    counts = demo.contexts.pivot_table(index="class_id", columns="context", values="n_images", fill_value=0)
    class_id, context = next((c, k) for c in counts.index for k in counts.columns if counts.loc[c, k] == 0)
    app = run("images", classes=demo.classes["class_name"].iat[class_id], contexts=context)
    assert "No images match" in texts(app)


def test_a_dataset_without_pixels_lists_its_classes_and_says_what_to_do() -> None:
    page_text = texts(run("images", dataset="tiered_imagenet"))
    assert "608 classes with 779,164 images; the images are not on this computer." in page_text
    assert "No images of" in page_text and "**Taxonomy**" in page_text
    assert "fsviz add tiered_imagenet ~/imagenet/train" in page_text


def test_an_image_that_is_not_there_leaves_the_first_one() -> None:
    assert "Click an image to see its neighbours" in texts(run("images", image="99999999"))


def test_the_answer_counts_the_images_that_match_and_options_have_counts() -> None:
    app = run("images")
    assert "**5,136 images of 107 classes, 14 contexts.** 48 images per class." in texts(app)
    assert "dog (48)" in app.multiselect(key="classes").options
    app = run("images", classes="dog", contexts="grass")
    demo = datasets.load("demo")
    images = demo.images[demo.images["class_id"] == demo.classes["class_name"].tolist().index("dog")]
    n_of = images["context"].value_counts()
    assert f"**{n_of['grass']} images of 1 class, 1 context.**" in texts(app)
    assert {f"{context} ({n})" for context, n in n_of.items()} <= set(app.multiselect(key="contexts").options)
    assert sum(n == 0 for n in n_of) == 0 and any(o.endswith("(0)") for o in app.multiselect(key="contexts").options)


def test_both_rows_of_pages_turn_the_wall() -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600).switch_page("pages/images.py")
    app.query_params["page"] = "3"
    app.run()
    assert app.session_state["page"] == app.session_state["page_below"] == 3
    assert "201 to 300 of 5,136 images." in texts(app)


def test_a_neighbour_of_another_class_is_not_marked_as_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsviz.ui.pages.images import detail

    walls: dict[str, list] = {}
    monkeypatch.setattr(detail, "gallery", lambda dataset, tiles, key, **more: walls.setdefault(key, list(tiles)))
    app = run("images", image="17")
    demo = datasets.load("demo")
    of_image = demo.image_class_ids()
    assert len(walls["near"]) == detail.N_NEIGHBOURS and {tile.frame for tile in walls["near"]} == {None}
    ticks = [tile.badge.startswith("✓") for tile in walls["near"]]
    assert ticks == [of_image[tile.image_id] == of_image[17] for tile in walls["near"]]
    assert f"{sum(ticks)} of {detail.N_NEIGHBOURS} neighbours share its class" in texts(app)


def test_images_are_filtered_by_how_a_run_classified_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsviz import jobs

    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    assert "run" not in [box.key for box in run("images").selectbox]
    spec = {
        "study": "evaluate",
        "dataset": "demo",
        "backbones": ["efficientnet_lite0"],
        "methods": [{"name": "protonet"}],
    }
    jobs.run_in_foreground({**spec, "sampler": {"sampler": "uniform", "n_way": 5, "n_shot": 1, "n_tasks": 5}})
    (record,) = jobs.list_runs("evaluate")
    app = run("images", run=f"{record.id}/0")
    options = app.selectbox(key="outcome").options
    sizes = {option.rpartition(" ")[0]: int(option.rpartition("(")[2].rstrip(")")) for option in options}
    assert list(sizes) == ["always correct", "sometimes correct", "never correct"] and all(
        sizes[k] for k in list(sizes)[::2]
    )
    assert f"**{sizes['never correct']} images of " in texts(app)
    app.selectbox(key="outcome").set_value("always correct").run()
    assert not app.exception and f"**{sizes['always correct']} images of " in texts(app)
