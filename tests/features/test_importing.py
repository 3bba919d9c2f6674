from __future__ import annotations

import pickle
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import torch

from fsviz import datasets, features
from fsviz.errors import BadInput, FsvizError, WorkspaceError
from fsviz.features import store
from fsviz.features.importing import import_features, read

X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
Y = np.array([2, 0, 2, 1, 0, 1])
NAMES = np.array(["ant", "bee", "cat"])


def write(path: Path) -> Path:
    """The same six features in the format that the file's name asks for."""
    kind = path.name
    if kind == "plain.npz":
        np.savez(path, features=X, labels=Y)
    elif kind == "named.npz":
        np.savez(path, embeddings=X, y=NAMES[Y])
    elif kind == "mapped.npz":
        np.savez(path, X=X, labels=Y, class_names=NAMES)
    elif kind == "easyfsl.parquet":
        pd.DataFrame({"embedding": list(X), "class_name": NAMES[Y]}).to_parquet(path)
    elif kind == "padded.hdf5":
        with h5py.File(path, "w") as file:
            file["all_feats"] = np.concatenate([X, np.zeros((3, 4), np.float32)])
            file["all_labels"] = np.concatenate([Y, np.zeros(3, int)])
            file["count"] = np.array([6])
    elif kind == "tensors.pt":
        torch.save({"features": torch.from_numpy(X), "labels": torch.from_numpy(Y)}, path)
    return path


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        ("plain.npz", Y),
        ("named.npz", NAMES[Y]),
        ("mapped.npz", NAMES[Y]),
        ("easyfsl.parquet", NAMES[Y]),
        ("padded.hdf5", Y),
        ("tensors.pt", Y),
    ],
)
def test_formats_that_users_have(tmp_path: Path, kind: str, labels: np.ndarray) -> None:
    values, result = read(write(tmp_path / kind))[:2]
    assert np.array_equal(values, X)
    assert result.tolist() == labels.tolist()


def test_npy_takes_labels_from_a_second_file_or_from_its_first_axis(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    (tmp_path / "y.csv").write_text("\n".join(f"{i},{NAMES[y]}" for i, y in enumerate(Y)))
    assert read(tmp_path / "x.npy", tmp_path / "y.npy")[1].tolist() == Y.tolist()
    assert read(tmp_path / "x.npy", tmp_path / "y.csv")[1].tolist() == NAMES[Y].tolist()
    with pytest.raises(BadInput, match="--labels FILE"):
        read(tmp_path / "x.npy")
    np.save(tmp_path / "cube.npy", X.reshape(3, 2, 4))
    values, labels = read(tmp_path / "cube.npy")[:2]
    assert np.array_equal(values, X)
    assert labels.tolist() == [0, 0, 1, 1, 2, 2]


def test_labels_of_three_dimensions_name_classes_or_images(tmp_path: Path) -> None:
    cube = X.reshape(3, 2, 4)
    for labels, expected in (
        (np.array(["ant", "bee", "cow"]), ["ant", "ant", "bee", "bee", "cow", "cow"]),  # one per class
        (np.array([4, 0, 2]), [4, 4, 0, 0, 2, 2]),
        (NAMES[Y], NAMES[Y].tolist()),  # one per image
        (NAMES[Y].reshape(3, 2), NAMES[Y].tolist()),
    ):
        np.savez(tmp_path / "cube.npz", features=cube, labels=labels)
        values, result = read(tmp_path / "cube.npz")[:2]
        assert np.array_equal(values, X) and result.tolist() == expected
        np.save(tmp_path / "cube.npy", cube)
        np.save(tmp_path / "labels.npy", labels)
        assert read(tmp_path / "cube.npy", tmp_path / "labels.npy")[1].tolist() == expected


def test_a_table_for_each_image_is_refused_and_the_advice_helps(tmp_path: Path, home: Path) -> None:
    tokens, labels = np.random.default_rng(0).normal(size=(200, 4, 8)), np.arange(200) % 5
    np.savez(tmp_path / "x.npz", features=tokens, labels=labels)
    with pytest.raises(BadInput, match=r"shape \(200, 4, 8\).*200 labels that repeat.*X\.mean\(1\)"):
        import_features("mine", tmp_path / "x.npz")
    for vectors in (tokens.mean(1), tokens.reshape(200, -1)):
        np.savez(tmp_path / "x.npz", features=vectors, labels=labels)
        output = import_features("mine", tmp_path / "x.npz", replace=True)
        assert (output.n_images, output.dataset.n_classes) == (200, 5)
    np.savez(tmp_path / "x.npz", features=tokens, labels=labels[:7])
    with pytest.raises(BadInput, match="and 7 labels"):
        read(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", features=tokens[..., None], labels=labels)
    with pytest.raises(BadInput, match=r"X\.reshape\(len\(X\), -1\)"):
        read(tmp_path / "x.npz")


def test_names_of_classes_that_are_empty_or_look_alike(tmp_path: Path, home: Path) -> None:
    names = np.array(["dog", "Dog", "caf\u00e9", "cafe\u0301", "owl", "elk"])
    np.savez(tmp_path / "x.npz", features=np.repeat(X, 2, axis=0), labels=np.repeat(names, 2))
    output = import_features("mine", tmp_path / "x.npz")
    assert output.dataset.n_classes == 6
    assert output.notes[0].startswith("2 groups of class names differ only in case")
    assert "'Dog' / 'dog'" in output.notes[0] and r"'cafe\u0301' / 'caf\xe9'" in output.notes[0]
    for empty in ("", "  ", "\u00a0"):
        names[4] = empty
        np.savez(tmp_path / "x.npz", features=np.repeat(X, 2, axis=0), labels=np.repeat(names, 2))
        with pytest.raises(BadInput, match=r"2 have an empty one, the first is row 8 \(from 0\)"):
            import_features("other", tmp_path / "x.npz")
    (tmp_path / "y.csv").write_text("path,label\n" + "".join(f"{i}.png,{'' if i == 3 else 'a'}\n" for i in range(6)))
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(BadInput, match="1 have an empty one, the first is row 3"):
        import_features("other", tmp_path / "x.npy", tmp_path / "y.csv")


def test_npz_with_one_table_a_class(tmp_path: Path) -> None:
    np.savez(tmp_path / "by_class.npz", ant=X[:2], bee=X[2:])
    values, labels = read(tmp_path / "by_class.npz")[:2]
    assert np.array_equal(values, X)
    assert labels.tolist() == ["ant"] * 2 + ["bee"] * 4


@pytest.mark.parametrize("name", ["x.pkl", "x.pickle", "x.plk"])
def test_pickles_are_refused_with_the_reason_and_the_way(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(pickle.dumps({"features": X}))
    with pytest.raises(BadInput, match=r"can run any code.*numpy.savez"):
        read(tmp_path / name)


def test_pickles_inside_other_files_are_refused_too(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", features=X, labels=np.array(["a", 1, None, "b", 2, 3], dtype=object))
    with pytest.raises(BadInput, match="can run any code"):
        read(tmp_path / "x.npz")
    np.save(tmp_path / "x.npy", np.array([X, None], dtype=object))
    with pytest.raises(BadInput, match="can run any code"):
        read(tmp_path / "x.npy")
    (tmp_path / "y.npy").write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(BadInput):
        read(tmp_path / "y.npy")
    torch.save({"features": np.array([1.0])}, tmp_path / "x.pt")
    with pytest.raises(BadInput):
        read(tmp_path / "x.pt")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_rows_that_are_no_numbers_are_left_out_and_counted(home: Path, tmp_path: Path, bad: float) -> None:
    values = X.astype(np.float64)
    values[3, 1] = bad
    np.savez(tmp_path / "x.npz", features=values, labels=Y)
    output = import_features("own", tmp_path / "x.npz")
    assert output.n_images == 5
    assert output.notes[0].startswith("Skipped 1 of 6 rows with NaN") and "row 3" in output.notes[0]
    stored = features.load(datasets.load("own"), "imported")
    np.testing.assert_allclose(stored.values, np.delete(X, 3, axis=0), rtol=1e-3)
    assert output.dataset.image_class_ids().tolist() == np.delete(Y, 3).tolist()
    # joining a dataset, the other images keep their own features
    joined = import_features("own", write(tmp_path / "plain.npz"), backbone="second", replace=True)
    assert joined.n_images == 6
    np.savez(tmp_path / "x.npz", features=values, labels=Y)
    third = import_features("own", tmp_path / "x.npz", backbone="third")
    stored = features.load(datasets.load("own"), "third")
    assert (third.n_images, stored.image_ids.tolist()) == (5, [0, 1, 2, 4, 5])
    np.testing.assert_allclose(stored.values[3], X[4], rtol=1e-3)


BASE = np.random.default_rng(1).normal(size=(60, 8))


@pytest.mark.parametrize(
    ("values", "message", "remedy"),
    [
        (np.full((60, 8), 3.5), "All rows .* are the same", ""),
        (np.full((60, 8), np.nan), "60 of 60 rows .* hold NaN", ""),
        (BASE * 1e300, "beyond float32, which ends at 3.4e38", "X / numpy.abs(X).max()"),
        (BASE * 1e-60, "too few digits", "X / numpy.abs(X).max()"),
        (BASE + 1e9, "too few digits", "X - X.mean(0)"),
    ],
    ids=["constant", "no numbers", "huge", "tiny", "moved"],
)
def test_what_cannot_be_evaluated_is_refused_and_the_advice_helps(
    home: Path, tmp_path: Path, values: np.ndarray, message: str, remedy: str
) -> None:
    labels = np.arange(60) % 3
    np.savez(tmp_path / "x.npz", features=values, labels=labels)
    with pytest.raises(BadInput, match=message) as refused:
        import_features("own", tmp_path / "x.npz")
    assert str(refused.value).endswith(f"{remedy}.")
    assert "own" not in datasets.names()
    if remedy:
        np.savez(tmp_path / "x.npz", features=eval(remedy, {"X": values, "numpy": np}), labels=labels)
        assert import_features("own", tmp_path / "x.npz").n_images == 60
        stored = np.asarray(features.load(datasets.load("own"), "imported").values, np.float64)
        centred = BASE - BASE.mean(0)
        assert np.corrcoef((stored - stored.mean(0)).ravel(), centred.ravel())[0, 1] > 0.9999


def test_a_constant_column_or_class_is_harmless(tmp_path: Path) -> None:
    values = X.copy()
    values[:, 2] = 7.0
    values[Y == 1] = values[Y == 1][0]
    np.savez(tmp_path / "x.npz", features=values, labels=Y)
    assert np.array_equal(read(tmp_path / "x.npz").values, values)


def test_moved_features_are_kept_in_float32_and_it_is_said(home: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", features=BASE.astype(np.float32) + 1000, labels=np.arange(60) % 3)
    output = import_features("own", tmp_path / "x.npz")
    assert "kept in float32: float16 would move images by" in output.notes[0]
    stored = features.load(datasets.load("own"), "imported")
    assert np.array_equal(stored.values, BASE.astype(np.float32) + 1000)
    np.savez(tmp_path / "x.npz", features=(BASE + 1000).astype(np.float16), labels=np.arange(60) % 3)
    coarse = import_features("own", tmp_path / "x.npz", replace=True)
    assert "The file is in float16" in coarse.notes[0]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"features": X, "labels": Y[:4]}, "one label per row"),
        ({"features": X}, "no labels"),
        ({"a": X, "b": X[:, :2]}, "must hold the features"),
        ({"features": np.zeros((0, 4)), "labels": np.zeros(0, int)}, "no features"),
        ({"features": X.astype(str), "labels": Y}, "must be numbers"),
        ({"features": X, "labels": Y + 0.5}, "whole numbers or class names"),
    ],
)
def test_files_that_do_not_fit(tmp_path: Path, arrays: dict, message: str) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(BadInput, match=message):
        read(tmp_path / "x.npz")


@pytest.mark.parametrize("name", ["x.npz", "x.npy", "x.parquet", "x.h5", "x.pt", "x.xlsx"])
def test_broken_empty_and_missing_files(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="Not found"):
        read(tmp_path / name)
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(BadInput, match="0 bytes"):
        read(tmp_path / name)
    (tmp_path / name).write_bytes(b"nothing of the kind")
    with pytest.raises(BadInput):
        read(tmp_path / name)


def test_parquet_must_have_its_columns(tmp_path: Path) -> None:
    pd.DataFrame({"vector": list(X), "class_name": NAMES[Y]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(BadInput, match="columns embedding and class_name"):
        read(tmp_path / "x.parquet")
    ragged = [row[: 3 + i % 2] for i, row in enumerate(X)]
    pd.DataFrame({"embedding": ragged, "class_name": NAMES[Y]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(BadInput, match="same length"):
        read(tmp_path / "x.parquet")


# Into the workspace


def test_an_import_is_a_dataset_with_features(tmp_path: Path, home: Path) -> None:
    done = import_features("mine", write(tmp_path / "easyfsl.parquet"))
    assert "mine" in datasets.names()
    dataset = datasets.load("mine")
    assert dataset.classes["class_name"].tolist() == ["ant", "bee", "cat"]
    assert dataset.classes["n_images"].tolist() == [2, 2, 2]
    assert dataset.origin == "features"
    assert not dataset.has_pixels
    assert dataset.capabilities == ("features",)
    assert features.available(dataset) == ["imported"]
    loaded = features.load(dataset, "imported")
    assert np.allclose(loaded.values, X, atol=2e-3)
    assert loaded.class_ids.tolist() == Y.tolist()
    assert loaded.image_ids.tolist() == list(range(6))
    assert done.path.is_dir()


def test_classes_splits_and_taxonomy_come_from_a_known_dataset(tmp_path: Path, home: Path) -> None:
    like = datasets.load("mini_imagenet")
    test = like.split_class_ids("test")
    np.savez(tmp_path / "x.npz", features=X, labels=np.array([4, 0, 4, 2, 0, 2]))
    import_features("mine", tmp_path / "x.npz", like=like, split="test")
    dataset = datasets.load("mine")
    expected = like.classes["class_name"].iloc[test[[0, 2, 4]]].tolist()
    assert dataset.classes["class_name"].tolist() == expected
    assert dataset.classes["node"].tolist() == like.classes["node"].iloc[test[[0, 2, 4]]].tolist()
    assert dataset.splits["test"].tolist() == [0, 1, 2]
    assert dataset.taxonomy is not None
    assert features.load(dataset, "imported").class_ids.tolist() == [2, 0, 2, 1, 0, 1]
    nodes = like.classes["node"].to_numpy()[test]
    np.savez(tmp_path / "n.npz", features=X, labels=nodes[[4, 0, 4, 2, 0, 2]].astype(str))
    import_features("by_node", tmp_path / "n.npz", like=like)
    assert datasets.load("by_node").classes["class_name"].tolist() == expected
    with pytest.raises(BadInput, match="must lie between 0 and 19"):
        np.savez(tmp_path / "y.npz", features=X, labels=Y + 40)
        import_features("other", tmp_path / "y.npz", like=like, split="test")
    with pytest.raises(BadInput, match="'bee'"):
        import_features("other", write(tmp_path / "named.npz"), like=like)
    assert "other" not in datasets.names()


def test_a_second_backbone_joins_when_the_rows_match(tmp_path: Path, home: Path) -> None:
    import_features("mine", write(tmp_path / "named.npz"))
    np.savez(tmp_path / "clip.npz", features=X[:, :3] * 2, labels=NAMES[Y])
    done = import_features("mine", tmp_path / "clip.npz", backbone="clip")
    assert done.joined.by == "row" and "by row" in done.joined.sentence()
    dataset = datasets.load("mine")
    assert sorted(features.available(dataset)) == ["clip", "imported"]
    assert features.load(dataset, "clip").values.shape == (6, 3)
    with pytest.raises(BadInput, match="already"):
        import_features("mine", tmp_path / "clip.npz", backbone="clip")
    np.savez(tmp_path / "fewer.npz", features=X[:5], labels=NAMES[Y[:5]])
    with pytest.raises(BadInput, match="has 6 images, but the file has 5 rows"):
        import_features("mine", tmp_path / "fewer.npz", backbone="third")
    np.savez(tmp_path / "other.npz", features=X, labels=NAMES[Y[::-1]])
    with pytest.raises(BadInput, match="other classes"):
        import_features("mine", tmp_path / "other.npz", backbone="third")


def test_features_join_a_dataset_of_images(tmp_path: Path, make_dataset) -> None:
    from fsviz.datasets.saved import save_dataset

    dataset = save_dataset(make_dataset(6, 3, "pictures"))
    np.savez(tmp_path / "x.npz", features=X, labels=np.arange(6) % 3)
    assert import_features("pictures", tmp_path / "x.npz").joined.by == "row"
    assert features.available(dataset) == ["imported"]
    assert datasets.load("pictures").has_pixels


def test_replacing_forgets_the_old_features(tmp_path: Path, home: Path) -> None:
    import_features("mine", write(tmp_path / "named.npz"))
    np.savez(tmp_path / "new.npz", features=X[:4] + 1, labels=NAMES[Y[:4]])
    import_features("mine", tmp_path / "new.npz", replace=True)
    dataset = datasets.load("mine")
    assert dataset.n_images == 4
    assert len(features.load(dataset, "imported").values) == 4
    assert len(store.stored_paths("mine")) == 1


def test_a_failed_import_leaves_nothing(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "named.npz")
    for name in ("demo", "mini_imagenet", "../up", "a b"):
        with pytest.raises(FsvizError):
            import_features(name, path, replace=True)

    def full(*_: object, **__: object) -> None:
        raise WorkspaceError("No space left on device.")

    monkeypatch.setattr("fsviz.datasets.saved.save_dataset", full)
    with pytest.raises(WorkspaceError):
        import_features("mine", path)
    assert [p for p in home.rglob("*") if p.is_file()] == []
    assert "mine" not in datasets.names()


@pytest.mark.parametrize("text", ["\ufeff{}", "label\n{}", "image,Label\n{}"])
def test_labels_files_may_have_a_byte_order_mark_or_a_header(tmp_path: Path, text: str) -> None:
    np.save(tmp_path / "x.npy", X)
    rows = "\r\n".join(NAMES[Y] if "," not in text else [f"{i},{n}" for i, n in enumerate(NAMES[Y])])
    (tmp_path / "labels.csv").write_text(text.format(rows), encoding="utf-8")
    assert read(tmp_path / "x.npy", tmp_path / "labels.csv")[1].tolist() == NAMES[Y].tolist()


def test_files_that_are_nearly_right_are_told_what_is_wrong(tmp_path: Path) -> None:
    np.savez(tmp_path / "short.npz", features=X, labels=Y[:2])
    with pytest.raises(BadInput, match=r"one label per row of features \(6\).* has 2"):
        read(tmp_path / "short.npz")
    np.save(tmp_path / "flat.npy", X[0])
    with pytest.raises(BadInput, match=r"shape \(4,\)"):
        read(tmp_path / "flat.npy")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(BadInput, match=r"cannot be read as \.npz"):
        read(tmp_path / "text.npz")
    np.savez(tmp_path / "objects.npz", features=X, labels=NAMES[Y].astype(object))
    with pytest.raises(BadInput, match=r"labels=y\.astype\(str\)"):
        read(tmp_path / "objects.npz")


@pytest.mark.parametrize("column", ["embedding", "class_name"])
def test_parquet_rows_with_holes_are_refused(tmp_path: Path, column: str) -> None:
    table = pd.DataFrame({"embedding": list(X), "class_name": NAMES[Y]}).astype(object)
    table.at[2, column] = None
    table.to_parquet(tmp_path / "holes.parquet")
    with pytest.raises(BadInput, match=f"1 have no {column}, the first is row 2"):
        read(tmp_path / "holes.parquet")


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_float32_are_refused_without_a_warning(tmp_path: Path) -> None:
    np.savez(tmp_path / "large.npz", features=X.astype(float) * 1e300, labels=Y)
    with pytest.raises(BadInput, match="float32"):
        read(tmp_path / "large.npz")


# Which row is which image


@pytest.fixture
def pets(tmp_path: Path, home: Path):
    """Six images of two classes: cat/0.jpg to cat/2.jpg, then dog/0.jpg to dog/2.jpg."""
    from fsviz.datasets.saved import save_dataset
    from fsviz.records import Dataset

    root = tmp_path / "pets"
    names = [f"{c}/{i}.jpg" for c in ("cat", "dog") for i in range(3)]
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"pixels do not matter here")
    classes = pd.DataFrame({"class_name": ["cat", "dog"], "split": "test", "n_images": 3, "node": ""})
    images = pd.DataFrame({"class_id": [0, 0, 0, 1, 1, 1], "path": names})
    splits = {"test": np.arange(2)}
    return save_dataset(Dataset("pets", "Pets", classes, splits, images=images, origin="folder", root=root))


SHUFFLED = np.array([4, 2, 0, 5, 1, 3])


@pytest.mark.parametrize("form", ["npz", "parquet", "hdf5", "csv"])
@pytest.mark.parametrize("spelling", ["plain", "absolute", "elsewhere", "windows", "no ending", "image_id"])
def test_rows_in_any_order_find_their_images(tmp_path: Path, pets, form: str, spelling: str) -> None:
    """Row i is of image SHUFFLED[i]: joined by row, every feature but none would be of the wrong image."""
    paths = pets.images["path"].to_numpy(dtype=np.str_)[SHUFFLED]
    names = {
        "plain": paths,
        "absolute": np.array([str(pets.root / p) for p in paths]),
        "elsewhere": np.array([f"/data/other/pets/{p}" for p in paths]),
        "windows": np.array([f".\\{p}".replace("/", "\\") for p in paths]),
        "no ending": np.array([p.removesuffix(".jpg") for p in paths]),
        "image_id": SHUFFLED,
    }[spelling]
    column = "image_id" if spelling == "image_id" else "path"
    labels = np.array(["cat", "dog"])[SHUFFLED // 3]
    file, label_file = tmp_path / f"x.{form}", None
    if form == "npz":
        np.savez(file, features=X, labels=labels, **{f"{column}s": names})
    elif form == "parquet":
        pd.DataFrame({"embedding": list(X), column: names}).to_parquet(file)
    elif form == "hdf5":
        with h5py.File(file, "w") as opened:
            opened["feats"] = X
            opened[column] = names.astype("S") if names.dtype.kind != "i" else names
    else:
        file, label_file = tmp_path / "x.npy", tmp_path / "x.csv"
        np.save(file, X)
        pd.DataFrame({column: names, "class": labels}).to_csv(label_file, index=False)
    done = import_features("pets", file, labels=label_file)
    assert done.joined.by == ("image_id" if spelling == "image_id" else "path")
    assert done.joined.sentence() == f"All 6 rows found their image by {done.joined.by.replace('_', ' ')}."
    loaded = features.load(pets, "imported")
    assert loaded.image_ids.tolist() == list(range(6))
    assert loaded.class_ids.tolist() == [0, 0, 0, 1, 1, 1]
    assert np.allclose(loaded.values[SHUFFLED], X, atol=2e-3)


@pytest.mark.parametrize("names", [[["dog/2.jpg", "dog/0.jpg"], ["cat/1.jpg", "cat/0.jpg"]], [[5, 3], [1, 0]]])
def test_a_cube_of_classes_may_name_its_images_too(tmp_path: Path, pets, names: list) -> None:
    np.savez(tmp_path / "x.npz", features=X[:4].reshape(2, 2, 4), image=np.array(names))
    import_features("pets", tmp_path / "x.npz")
    loaded = features.load(pets, "imported")
    assert loaded.image_ids.tolist() == [0, 1, 3, 5]
    assert np.allclose(loaded.values, X[[3, 2, 1, 0]], atol=2e-3)


@pytest.mark.parametrize("suffix", [".npz", ".h5", ".parquet"])
def test_names_are_seen_under_any_column_and_ids_as_floats(tmp_path: Path, pets, suffix: str) -> None:
    """With labels that agree, a column that is passed over would let the rows be joined in their order, and wrongly."""
    paths, labels = np.array(["cat/2.jpg", "cat/0.jpg", "cat/1.jpg"]), np.array(["cat"] * 3)
    for column, names in (("img_files", paths), ("image_ids", np.array([2.0, 0.0, 1.0]))):
        file = tmp_path / f"{column}{suffix}"
        if suffix == ".npz":
            np.savez(file, features=X[:3], labels=labels, **{column: names})
        elif suffix == ".h5":
            with h5py.File(file, "w") as opened:
                opened["all_feats"], opened["all_labels"] = X[:3], labels.astype("S")
                opened[column] = names if names.dtype.kind == "f" else names.astype("S")
        else:
            pd.DataFrame({"embedding": list(X[:3]), "class_name": labels, column: names}).to_parquet(file)
        done = import_features("pets", file, backbone=column)
        assert done.joined.by == ("path" if column == "img_files" else "image_id")
        assert np.allclose(features.load(pets, column).values, X[[1, 2, 0]], atol=2e-3)
    np.savez(tmp_path / "half.npz", features=X[:3], image_ids=np.array([0.5, 1.0, 2.0]))
    with pytest.raises(BadInput, match=r"whole number or a text. half.npz has 0.5"):
        import_features("pets", tmp_path / "half.npz")


def test_subsets_join_and_what_is_missing_is_told(tmp_path: Path, pets) -> None:
    paths = np.array(["dog/1.jpg", "gone/9.jpg", "cat/2.jpg", ""])
    np.savez(tmp_path / "x.npz", features=X[:4], paths=paths)
    done = import_features("pets", tmp_path / "x.npz")
    text = done.joined.sentence()
    assert "2 of 4 rows found their image by path; 2 did not and were left out (gone/9.jpg" in text
    assert "4 of the dataset's 6 images have no features" in text
    loaded = features.load(pets, "imported")
    assert loaded.image_ids.tolist() == [2, 4]
    assert np.allclose(loaded.values, X[[2, 0]], atol=2e-3)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"paths": ["a.jpg", "b.jpg"]}, r"None of the 2 images .* 'a.jpg', and the dataset's first is 'cat/0.jpg'"),
        ({"paths": ["dog/0.jpg", "1.jpg"]}, r"Row 1 .* '1.jpg', which may be 'cat/1.jpg' or 'dog/1.jpg'"),
        ({"paths": ["dog/0.jpg", "./dog/0.jpg"]}, r"Rows 0 and 1 .* both name 'dog/0.jpg' or './dog/0.jpg'"),
        ({"paths": ["dog/0.jpg"]}, r"one image name per row of features \(2\)"),
        ({"image_id": [3, 6]}, r"counts the images of 'pets', 0 to 5.*Save the paths"),
        ({"paths": ["dog/0.jpg", "dog/1.jpg"], "labels": ["dog", "cat"]}, r"Row 1 .* label 'cat' but .* class 'dog'"),
        ({"paths": ["dog/0.jpg", "cat/1.jpg"], "labels": ["dog", "dog"]}, r"Row 0 .* label 'dog' but"),
        ({"labels": ["cat", "dog"]}, "has 6 images, but the file has 2 rows.*under 'paths'"),
    ],
)
def test_names_that_fit_no_image_or_several_are_refused(tmp_path: Path, pets, arrays: dict, message: str) -> None:
    np.savez(tmp_path / "x.npz", features=X[:2], **{name: np.array(values) for name, values in arrays.items()})
    with pytest.raises(BadInput, match=message):
        import_features("pets", tmp_path / "x.npz")
    assert features.available(pets) == []


def test_the_longest_path_wins_over_a_file_beside_the_folders(tmp_path: Path, home: Path) -> None:
    names = np.array(["1.jpg", "dog/1.jpg", "wolf/dog/1.jpg"])
    np.savez(tmp_path / "a.npz", features=X[:3], labels=np.arange(3), paths=names)
    import_features("mine", tmp_path / "a.npz")
    assert datasets.load("mine").images["path"].tolist() == names.tolist(), "so that further features find them"
    np.savez(tmp_path / "b.npz", features=X[3:], paths=np.array(["x/wolf/dog/1.jpg", "1.jpg", "dog/1.jpg"]))
    import_features("mine", tmp_path / "b.npz", backbone="other")
    assert np.allclose(features.load(datasets.load("mine"), "other").values, X[[4, 5, 3]], atol=2e-3)


def test_a_file_with_names_but_no_labels_is_no_dataset_of_its_own(tmp_path: Path, home: Path) -> None:
    np.savez(tmp_path / "x.npz", features=X, paths=np.array([f"{i}.jpg" for i in range(6)]))
    with pytest.raises(BadInput, match="no labels"):
        import_features("mine", tmp_path / "x.npz")


def test_groups_in_a_file_stay_with_the_dataset_it_becomes(tmp_path: Path, home: Path) -> None:
    np.savez(tmp_path / "x.npz", features=X, labels=Y, groups=np.array(["b", "a", "b", "c", "a", "d"]))
    import_features("mine", tmp_path / "x.npz")
    assert datasets.load("mine").images["group"].tolist() == [1, 0, 1, 2, 0, 3]


def test_hdf5_reads_nothing_from_another_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(np.full(24, 7.0, np.float32).tobytes())
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["feats"] = X

    def external_storage(file):
        file.create_dataset("feats", (6, 4), np.float32, external=[(str(secret), 0, 96)])

    def external_link(file):
        file["feats"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/feats")

    def soft_link_through_it(file):
        file.create_group("in")["side"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/feats")
        file["feats"] = h5py.SoftLink("/in/side")

    def virtual(file):
        layout = h5py.VirtualLayout((6, 4), np.float32)
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "feats", (6, 4))
        file.create_virtual_dataset("feats", layout)

    for make in (external_storage, external_link, soft_link_through_it, virtual):
        path = tmp_path / f"{make.__name__}.h5"
        with h5py.File(path, "w") as file:
            make(file)
            file["labels"] = Y
        with pytest.raises(BadInput, match=r"'feats' in .* only what is in the file itself is read"):
            read(path)
