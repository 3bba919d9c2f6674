"""The page Add images without a browser: attaching, renaming, deleting, and what a click says at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets, features, jobs
from fsviz.features import maps
from fsviz.records import Dataset
from fsviz.sampling.testbeds import read_recipe
from fsviz.taxonomy.senses import guess_senses
from fsviz.ui.pages.add_images import senses
from fsviz.ui.parts.image_wall import thumbnail_uri
from fsviz.user import images as user_images
from tests.cli.calling import fails, run_json
from tests.datasets.test_published_images import folders
from tests.ui.test_gallery_pages import run, texts


@pytest.fixture
def pets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    user_images.add("pets", str(folders(tmp_path / "pets", "dog", "cat", n=3)))
    return "pets"


def test_a_dataset_is_renamed_and_removed_from_the_page(pets: str) -> None:
    app = run("add_images", do="Manage")
    app.text_input(key="title_pets").set_value("My [pets](x)")
    app.button(key="rename_pets").click().run()
    assert not app.exception and datasets.title("pets") == "My [pets](x)"
    app.button(key="remove_pets").click().run()
    assert not app.exception and "pets" not in datasets.names()


def test_datasets_are_renamed_and_removed_from_a_terminal(pets: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_json(capsys, "datasets", "rename", "pets", "Two pets")["title"] == "Two pets"
    assert datasets.load("pets").title == "Two pets"
    assert "title" in fails(capsys, "datasets", "rename", "pets", " ")
    assert run_json(capsys, "datasets", "remove", "pets") == {"removed": "pets"}
    assert "pets" in fails(capsys, "datasets", "remove", "pets")


def test_testbeds_and_features_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    few = ("--n-way", "5", "--n-shot", "1", "--n-query", "2", "--n-tasks", "5", "--name", "t")
    run_json(capsys, "sample", "demo", *few)
    assert [t["name"] for t in run_json(capsys, "testbeds")["testbeds"]] == ["t"]
    assert run_json(capsys, "testbeds", "show", "t")["recipe"]["dataset"] == "demo"
    app = run("add_images", do="Manage")
    app.text_input(key="new_testbed_t").set_value("u")
    app.button(key="rename_testbed_t").click().run()
    assert not app.exception and read_recipe("u")["dataset"] == "demo"
    assert "needs a new name" in fails(capsys, "testbeds", "rename", "u")
    assert run_json(capsys, "testbeds", "rename", "u", "t") == {"renamed": "u", "name": "t"}
    run_json(capsys, "sample", "demo", *few[:-1], "other", "--seed", "1")
    assert "another one has" in fails(capsys, "testbeds", "rename", "t", "other")
    run_json(capsys, "testbeds", "remove", "other")
    app = run("add_images", do="Manage")
    app.button(key="delete_testbed_t").click().run()
    assert not app.exception and run_json(capsys, "testbeds")["testbeds"] == []
    assert "Unknown testbed" in fails(capsys, "testbeds", "remove", "t")
    assert "Unknown features" in fails(capsys, "features", "remove", "demo", "nothing")


def test_imported_features_are_renamed_with_their_map_and_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    values = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    np.savez(tmp_path / "f.npz", features=values, labels=np.arange(40) % 4)
    path = Path(run_json(capsys, "features", "import", "mine", str(tmp_path / "f.npz"))["path"])
    maps.make(datasets.load("mine"), "imported")
    app = run("add_images", do="Manage")
    app.text_input(key=f"new_features_{path}").set_value("dino")
    app.button(key=f"rename_features_{path}").click().run()
    assert not app.exception and features.available(datasets.load("mine")) == ["dino"]
    assert np.allclose(features.load(datasets.load("mine"), "dino").values, values, atol=0.01)
    assert maps.find(datasets.load("mine"), "dino") is not None
    assert run_json(capsys, "features", "rename", "mine", "dino", "again")["renamed"] == "again"
    assert "Unknown features" in fails(capsys, "features", "rename", "mine", "dino", "x")
    assert "three names" in fails(capsys, "features", "rename", "mine", "again")
    (row,) = [r for r in features.list_features() if r["dataset"] == "mine"]
    app = run("add_images", do="Manage")
    app.button(key=f"delete_features_{row['path']}").click().run()
    assert not app.exception and features.available(datasets.load("mine")) == []


def test_a_benchmarks_images_are_attached_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    root = folders(tmp_path / "train", "n01440764", "n01443537", "holiday")
    app = run("add_images", dataset="imagenet1k", like="imagenet1k")
    assert "ImageNet-1k" in texts(app)
    app.text_input(key="path_0").set_value(str(root)).run()
    assert not app.exception and "2 of 1,000 classes" in texts(app)
    app.button(key="attach").click().run()
    assert not app.exception
    assert datasets.load("my_imagenet1k").n_images == 4


def test_meanings_are_changed_after_saving(pets: str) -> None:
    app = run("add_images", dataset="pets", do="WordNet senses")
    assert app.button(key="save_senses").disabled  # nothing was changed yet
    table = user_images.class_senses(datasets.load("pets")).set_index("class")
    assert table["synset"]["dog"] == "n02084071"
    user_images.correct_senses("pets", {"dog": "n02110341"})
    app = run("add_images", dataset="pets", do="WordNet senses")
    page_table = app.dataframe[0].value.set_index("class")
    assert page_table["doubt"]["dog"] == "your choice" and "n02110341" in page_table["sense"]["dog"]
    assert "own" in texts(run("add_images", dataset="demo", do="WordNet senses"))


def test_the_table_of_senses_shows_an_image_and_the_senses_of_each_class(pets: str) -> None:
    dataset = datasets.load("pets")
    table = run("add_images", dataset="pets", do="WordNet senses").dataframe[0].value.set_index("class")
    for class_id, name in enumerate(dataset.classes["class_name"]):
        image = int(np.flatnonzero(dataset.image_class_ids() == class_id)[0])
        assert table["picture"][name] == thumbnail_uri(dataset, image, senses.PICTURE_PX) != ""
        candidates = guess_senses([name])[0].candidates
        assert len(candidates) > 1 and table["own"][name].split(" | ") == [sense.path[-2] for sense in candidates]


def test_the_next_step_follows_the_state_of_the_dataset(pets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    step = user_images.next_step
    assert step(datasets.load("tiered_imagenet")).action == "attach" and step(datasets.load("demo")).action == "add"
    state = "It has 2 classes, 6 images and a taxonomy."
    assert step(datasets.load("pets")) == user_images.NextStep("extract", "Next: extract features of pets.", state)
    app = run("add_images", dataset="pets")
    assert f"**Next: extract features of pets.** {state}" in texts(app)
    app.button(key="next_step").click().run()
    assert not app.exception and app.query_params["do"] in ("Extract features", ["Extract features"])
    assert not [button for button in app.button if button.key == "next_step"]
    monkeypatch.setattr(Dataset, "has_features", property(lambda self: True))
    monkeypatch.setattr(user_images, "sense_doubts", lambda table: ["rare", ""])
    assert step(datasets.load("pets")).sentence == "Next: check 1 of 2 WordNet senses of pets."
    monkeypatch.setattr(user_images, "sense_doubts", lambda table: ["", ""])
    assert step(datasets.load("pets")).action == "explore"


def test_a_checkpoint_goes_into_the_run(pets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs: list[dict] = []
    monkeypatch.setattr(jobs, "submit", lambda spec, engine: specs.append(dict(spec)) or "run")
    app = run("add_images", dataset="pets", do="Extract features")
    assert "path of the file" in texts(app), "what to do with a file that is too large"
    app.text_input(key="checkpoint_path").set_value(str(tmp_path / "net.pth")).run()
    app.button(key="extract").click().run()
    assert not app.exception
    assert [spec["checkpoint"] for spec in specs] == [str(tmp_path / "net.pth")]


@pytest.mark.parametrize("page", ["evaluate", "hard_supports"])
def test_a_benchmark_without_images_shows_what_is_published_and_the_command(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = run(page, dataset="tiered_imagenet")
    assert not app.exception
    assert "fsviz add tiered_imagenet" in "\n".join(box.value for box in app.info)
    table = app.dataframe[0].value
    assert {"method", "accuracy"} <= set(table.columns) and len(table) >= 6
    assert "From Bennequin et al. 2022" in texts(app) and "not computed here" in texts(app)
