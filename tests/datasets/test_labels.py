"""Contexts and attributes given by hand: kept next to the dataset, used by context studies, taken back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets, features
from fsviz.analyses import image_groups
from fsviz.datasets import image_folders, labels
from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.tasks import draw
from tests.cli.calling import fails, run_json
from tests.datasets.test_image_folders import folder_of, home  # noqa: F401

pytestmark = pytest.mark.usefixtures("home")


def pets(tmp_path: Path) -> Path:
    root = folder_of(tmp_path / "pets", {"dog": 4, "cat": 4})
    image_folders.register("pets", image_folders.inspect(root))
    return root


def test_a_label_becomes_a_context_and_removing_it_leaves_no_trace(tmp_path: Path) -> None:
    pets(tmp_path)
    before = datasets.load("pets")
    assert before.contexts is None
    labels.add_label(before, [0, 1, 5], "  grass ")
    dataset = datasets.load("pets")
    assert dataset.image_contexts().tolist() == ["grass", "grass", "", "", "", "grass", "", ""]
    assert dataset.contexts is not None
    assert dataset.contexts.to_dict("list") == {"class_id": [0, 1], "context": ["grass"] * 2, "n_images": [2, 1]}
    assert dataset.capabilities == ("contexts", "images")
    assert features.fingerprint(dataset) == features.fingerprint(before), "features of the images stay"
    labels.remove_label(dataset)
    after = datasets.load("pets")
    assert after.contexts is None and after.images is not None and before.images is not None
    assert after.images.equals(before.images) and not labels.path_of("pets").exists()


def test_a_later_label_counts_and_each_can_be_taken_back(tmp_path: Path) -> None:
    pets(tmp_path)
    labels.add_label(datasets.load("pets"), [0, 1], "grass")
    labels.add_label(datasets.load("pets"), [1, 2], "sofa")
    labels.add_label(datasets.load("pets"), [3], "dim", "light")
    dataset = datasets.load("pets")
    assert dataset.image_contexts()[:4].tolist() == ["grass", "sofa", "sofa", ""]
    assert dataset.attributes == ("light",) and dataset.images is not None
    assert dataset.images["light"].dropna().to_dict() == {3: "dim"}
    assert [(label.column, label.value, label.n_images) for label in labels.list_labels(dataset)] == [
        ("context", "grass", 2),
        ("context", "sofa", 2),
        ("light", "dim", 1),
    ]
    labels.remove_label(dataset, 2)
    assert datasets.load("pets").image_contexts()[:4].tolist() == ["grass", "grass", "", ""]


def test_labels_follow_their_images_when_the_dataset_is_replaced(tmp_path: Path) -> None:
    root = pets(tmp_path)
    labels.add_label(datasets.load("pets"), [0, 7], "grass")
    shutil.rmtree(root / "cat")
    folder_of(root, {"ape": 3})
    image_folders.register("pets", image_folders.inspect(root), overwrite=True)
    dataset = datasets.load("pets")
    assert dataset.images is not None
    assert dataset.images.loc[dataset.image_contexts() == "grass", "path"].tolist() == ["dog/03.png"]
    assert any("1 labelled images are not in this dataset" in note for note in dataset.notes)
    image_folders.remove_dataset("pets")
    assert not labels.path_of("pets").exists()


@pytest.mark.parametrize(
    ("image_ids", "value", "column", "words"),
    [
        ([], "grass", "context", "at least one"),
        ([8], "grass", "context", "numbered 0 to 7"),
        ([-1], "grass", "context", "numbered 0 to 7"),
        ([0], " ", "context", "1 to 60 characters"),
        ([0], "x" * 61, "context", "1 to 60 characters"),
        ([0], "grass", "class", "is taken"),
        ([0], "grass", "n_bytes", "is taken"),
    ],
)
def test_impossible_labels_are_refused(
    tmp_path: Path, image_ids: list[int], value: str, column: str, words: str
) -> None:
    pets(tmp_path)
    with pytest.raises(BadInput, match=words):
        labels.add_label(datasets.load("pets"), image_ids, value, column)
    assert not labels.list_labels(datasets.load("pets"))


def test_numbers_and_the_demo_are_not_labelled() -> None:
    with pytest.raises(BadInput, match="is taken"):
        labels.add_label(datasets.load("fruit"), [0], "dim", "brightness")
    with pytest.raises(Missing, match="cannot be labelled"):
        labels.add_label(datasets.load("demo"), [0], "grass")
    with pytest.raises(UnknownName, match="label"):
        labels.add_label(datasets.load("fruit"), [0], "hand")
        labels.remove_label(datasets.load("fruit"), 9)


def test_every_context_study_works_with_named_contexts(capsys, tmp_path: Path) -> None:
    """Groups of the photographs are proposed to a file, named there, and read back; then tasks change the context."""
    file = tmp_path / "contexts.csv"
    result = run_json(capsys, "label", "fruit", "--propose", str(file))
    assert result["groups"] == 42, "three groups of each of the 14 classes"
    assert "No images" in fails(capsys, "label", "fruit", "--from", str(file)), "nothing is named yet"
    table = pd.read_csv(file, keep_default_na=False)
    table["context"] = table["group"].map({1: "shelf", 2: "hand", 3: "hand"})
    table.to_csv(file, index=False)
    result = run_json(capsys, "label", "fruit", "--from", str(file))
    assert sum(result["contexts"].values()) == 784 and set(result["contexts"]) == {"shelf", "hand"}
    fruit = datasets.load("fruit")
    assert features.available(fruit)[0] == "efficientnet_lite0", "features still fit"
    contexts = fruit.image_contexts()
    tasks = draw.sample(fruit, sampler="ood", n_tasks=20, n_way=5, n_shot=3, n_query=5, split="test").tasks
    assert not (contexts[tasks.support][:, :, :, None] == contexts[tasks.query][:, :, None]).any()
    result = run_json(capsys, "contexts", "fruit")
    assert result["n_images"] == 784 and result["n_contexts"] == 2
    shift = run_json(capsys, "contexts", "fruit", "--question", "methods", "--n-tasks", "20", "--methods", "protonet")
    assert shift["rows"][0]["n_tasks"] == 20
    names = {group.context for group in image_groups.propose(fruit, "efficientnet_lite0")}
    assert names == {"shelf", "hand"}, "groups that have a name show it"


def test_the_command_labels_lists_and_undoes(capsys, tmp_path: Path) -> None:
    pets(tmp_path)
    (tmp_path / "list.txt").write_text("dog/01.png\n0\n")
    run_json(capsys, "label", "pets", "--context", "grass", "--images", str(tmp_path / "list.txt"))
    result = run_json(capsys, "label", "pets", "--attribute", "light=dim", "--images", "3.4")
    assert result["contexts"] == {"grass": 2}
    assert [(label["column"], label["value"]) for label in result["labels"]] == [("context", "grass"), ("light", "dim")]
    dataset = datasets.load("pets")
    assert np.flatnonzero(dataset.image_contexts() == "grass").tolist() == [0, 5]
    assert run_json(capsys, "label", "pets", "--undo")["labels"] == result["labels"][:1]
    assert json.dumps(run_json(capsys, "label", "pets", "--undo", "1")["labels"]) == "[]"
    assert "no labels to remove" in fails(capsys, "label", "pets", "--undo")
    assert "neither numbers nor a file" in fails(capsys, "label", "pets", "--context", "a", "--images", "nofile")
    assert "Give --images and either" in fails(capsys, "label", "pets", "--context", "a")
    (tmp_path / "list.txt").write_text("dog/99.png\n")
    assert "dog/99.png" in fails(capsys, "label", "pets", "--context", "a", "--images", str(tmp_path / "list.txt"))
