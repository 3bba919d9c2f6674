"""Reading CSV tables and JSON specs of images."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from fsviz import datasets
from fsviz.datasets import image_folders, saved_splits, tables
from fsviz.errors import BadInput
from fsviz.sampling import testbed_tables
from fsviz.user import predictions as user_predictions
from tests.datasets import test_image_folders
from tests.datasets.test_image_folders import ROOT, folder_of, items, kinds, picture

home = test_image_folders.home  # a fixture


def table_of(root: Path, n: int = 4) -> pd.DataFrame:
    rows = []
    for i in range(n):
        picture(root / f"img{i}.png")
        rows.append(
            {
                "path": f"img{i}.png",
                "class": "NA" if i % 2 else "007",
                "split": "test",
                "context": ["grass", ""][i // 2],
            }
        )
    return pd.DataFrame(rows)


def test_a_csv_with_context_and_attributes(tmp_path: Path) -> None:
    table = table_of(tmp_path).assign(
        blur=["0.5", "1", "", "2"], night=["yes", "no", "yes", "no"], style=["a", "b", "", "c"]
    )
    table.to_csv(tmp_path / "list.csv", index=False)
    preview = image_folders.inspect(tmp_path / "list.csv")
    assert set(preview.classes["class_name"]) == {"NA", "007"}
    assert preview.attributes == ("blur", "night", "style")
    dataset = image_folders.register("listed", preview)
    again = datasets.load("listed")
    assert again.contexts is not None and again.contexts["n_images"].sum() == 2
    assert again.images is not None
    assert again.images["path"].tolist() == ["img0.png", "img2.png", "img1.png", "img3.png"]
    assert again.images["blur"].isna().tolist() == [False, True, False, False]
    assert again.images["blur"].dropna().tolist() == [0.5, 1.0, 2.0]
    assert again.images["night"].sum() == 2
    assert again.images["style"].isna().sum() == 1
    assert again.splits.keys() == {"test"} and dataset.capabilities == ("contexts", "attributes", "images")


def test_missing_files_are_named_by_row(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.loc[2, "path"] = "gone.png"
    table.to_csv(tmp_path / "list.csv", index=False)
    preview = image_folders.inspect(tmp_path / "list.csv")
    assert items(preview, "missing_file") == "list.csv row 4: gone.png"
    assert len(preview.images) == 3
    table["path"] = "gone" + table.index.astype(str)
    table.to_csv(tmp_path / "list.csv", index=False)
    with pytest.raises(BadInput, match=r"No file in the table exists.*row 2: gone0"):
        image_folders.inspect(tmp_path / "list.csv")


def test_rows_that_repeat_are_left_out_or_leave_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    picture(tmp_path / "secret.png")
    table = table_of(root)
    table.loc[4] = ["img0.png", "other", "test", ""]
    table.loc[5] = ["../secret.png", "007", "test", ""]
    table.loc[6] = [str(tmp_path / "secret.png"), "007", "test", ""]
    table.loc[7] = ["", "007", "test", ""]
    table.to_csv(root / "list.csv", index=False)
    for bound in ({"confined": True}, {"images": root}):
        preview = image_folders.inspect(root / "list.csv", **bound)
        assert preview.root == root
        assert "row 6: img0.png (class other, before 007)" in items(preview, "listed_twice")
        assert items(preview, "leaves_root").count("secret.png") == 2
        assert items(preview, "left_out") == "list.csv row 9"
        assert len(preview.images) == 4
    free = image_folders.inspect(root / "list.csv")  # a list of one's own may name files anywhere
    assert free.root == tmp_path and len(free.images) == 5 and "leaves_root" not in kinds(free)
    table.iloc[5:7].to_csv(root / "list.csv", index=False)
    with pytest.raises(BadInput, match=r"lead out of .*first is list\.csv row 2: \.\./secret\.png.*--images"):
        image_folders.inspect(root / "list.csv", confined=True)


def test_lists_and_specs_take_absolute_paths_by_one_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder of images the dataset's folder holds all files; with one, nothing outside of it is read."""
    pets = folder_of(tmp_path / "pets", {"dog": 2, "cat": 2})
    lists = tmp_path / "lists"
    lists.mkdir()
    rows = "".join(f"{path},{path.parent.name}\n" for path in sorted(pets.rglob("*.png")))
    (lists / "list.csv").write_text("path,class\n" + rows)
    roots = {"class_names": ["cat", "dog"], "class_roots": [str(pets / "cat"), str(pets / "dog")]}
    (lists / "spec.json").write_text(json.dumps(roots))
    for name in ("list.csv", "spec.json"):
        for options in ({}, {"images": pets}, {"images": tmp_path}):
            preview = image_folders.inspect(lists / name, **options)
            assert preview.root == options.get("images", pets) and len(preview.images) == 4
            dataset = image_folders.register("own", preview, overwrite=True)
            assert [datasets.open_image(dataset, i).size for i in range(4)] == [(16, 16)] * 4
        for options in ({"confined": True}, {"images": lists}):
            with pytest.raises(BadInput, match="--images"):
                image_folders.inspect(lists / name, **options)
    (tmp_path / "link").symlink_to(tmp_path)  # a way there through a link to a folder
    (lists / "list.csv").write_text("path,class\n" + rows.replace(str(pets), str(tmp_path / "link" / "pets")))
    assert image_folders.inspect(lists / "list.csv").root == pets
    monkeypatch.setattr(os.path, "commonpath", lambda paths: "/")  # files on two disks
    for name in ("list.csv", "spec.json"):
        with pytest.raises(BadInput, match=r"no folder in common but /.*--images /\)"):
            image_folders.inspect(lists / name)
        assert len(image_folders.inspect(lists / name, images="/").images) == 4  # as the sentence says


def test_column_names_can_be_given(tmp_path: Path) -> None:
    table_of(tmp_path).rename(columns={"path": "where", "class": "what"}).to_csv(
        tmp_path / "l.csv", index=False, sep=";"
    )
    with pytest.raises(BadInput, match=r"has no path column.*--path-column"):
        image_folders.inspect(tmp_path / "l.csv")
    preview = image_folders.inspect(tmp_path / "l.csv", columns={"path": "where", "class": "what"})
    assert len(preview.images) == 4
    with pytest.raises(BadInput, match="no column 'nope'"):
        image_folders.inspect(tmp_path / "l.csv", columns={"path": "nope"})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is empty"),
        (b"path,class\n", "no rows"),
        (b"\xff\xfe\x00p", "not UTF-8"),
        (b'path,class\na,b\n"x,y,z\n1,2,3,4', "cannot be read"),
    ],
)
def test_broken_tables(content: bytes, text: str, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_bytes(content)
    with pytest.raises(BadInput, match=text):
        image_folders.inspect(tmp_path / "list.csv")


def test_mini_imagenet_style_lists_beside_a_folder_of_images(tmp_path: Path) -> None:
    for split, name in {"train": "n01532829", "val": "n01855672", "test": "n01930112"}.items():
        rows = []
        for i in range(3):
            picture(tmp_path / "images" / f"{name}{i}.jpg")
            rows.append({"filename": f"{name}{i}.jpg", "label": name})
        pd.DataFrame(rows).to_csv(tmp_path / f"{split}.csv", index=False)
    preview = image_folders.inspect(tmp_path)
    assert preview.classes["split"].tolist() == ["train", "val", "test"]
    assert preview.classes["n_images"].tolist() == [3, 3, 3]
    item = image_folders.inspect(tmp_path / "test.csv")
    assert item.classes["class_name"].tolist() == ["n01930112"]


def test_one_table_beside_its_images_is_found_in_the_folder(tmp_path: Path) -> None:
    table_of(tmp_path / "download" / "set" / "images").to_csv(tmp_path / "download" / "set" / "list.csv", index=False)
    preview = image_folders.inspect(tmp_path / "download")
    assert preview.source == "CSV table" and len(preview.images) == 4
    assert preview.images["path"].str.startswith("images/").all()


def test_easyfsl_specs(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "data" / "CUB" / "images", {"001.albatross": 3, "002.auklet": 2})
    spec = {
        "class_names": ["Albatross", "Auklet"],
        "class_roots": ["./data/CUB/images/001.albatross", str(root / "002.auklet")],
    }
    (tmp_path / "data" / "CUB" / "test.json").write_text(json.dumps(spec))
    preview = image_folders.inspect(tmp_path / "data" / "CUB" / "test.json")
    assert preview.root == root
    assert preview.classes.to_dict("list") == {
        "class_name": ["Albatross", "Auklet"],
        "split": ["test"] * 2,
        "n_images": [3, 2],
    }
    spec["class_roots"][0] = "./elsewhere"
    (tmp_path / "data" / "CUB" / "train.json").write_text(json.dumps(spec))
    preview = image_folders.inspect(tmp_path / "data" / "CUB" / "train.json")
    assert "elsewhere (class Albatross)" in items(preview, "missing_file")
    assert easyfsl_reads(tmp_path / "data" / "CUB" / "test.json", tmp_path) == 5


def easyfsl_reads(spec: Path, start: Path) -> int:
    """Number of images that easyfsl itself reads through the spec, as an oracle."""
    code = (
        "from fsviz.features import torchvision_guard; torchvision_guard.install();"
        "from easyfsl.datasets import EasySet;"
        f"print(len(EasySet({str(spec)!r})))"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    out = subprocess.run([sys.executable, "-c", code], cwd=start, env=env, capture_output=True, text=True)
    if out.returncode:
        pytest.skip(f"easyfsl does not run here: {out.stderr[-200:]}")
    return int(out.stdout.split()[-1])


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"class_names": ["a"], "class_roots": []}', '{"class_names": [1], "class_roots": [2]}']
)
def test_broken_specs(text: str, tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(text)
    with pytest.raises(BadInput, match="not an easyfsl spec"):
        image_folders.inspect(tmp_path / "spec.json")


def test_a_spec_without_a_common_folder_or_with_none_there(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps({"class_names": ["a"], "class_roots": ["nowhere"]}))
    with pytest.raises(BadInput, match=r"None of the class folders.*--images"):
        image_folders.inspect(tmp_path / "spec.json")
    with pytest.raises(BadInput, match=r"None of the class folders"):
        (tmp_path / "inside").mkdir()
        (tmp_path / "spec.json").write_text(json.dumps({"class_names": ["a"], "class_roots": [".."]}))
        image_folders.inspect(tmp_path / "spec.json", images=tmp_path / "inside")


def test_a_taxonomy_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Child,Parent,note\ndog,animal,x\ncat,animal,\n,animal,\ndog,animal,\n")
    edges = tables.read_edges(tmp_path / "t.csv")
    assert edges.to_dict("list") == {"child": ["dog", "cat"], "parent": ["animal", "animal"]}
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(BadInput, match="columns child and parent"):
        tables.read_edges(tmp_path / "t.csv")


def list_of(root: Path, text: str) -> Path:
    for i in range(4):
        picture(root / "sub" / f"{i}.png")
    (root / "list.csv").write_text(text, encoding="utf-8")
    return root / "list.csv"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path,class,class\nsub/0.png,a,b\n", "more than one column named 'class'"),
        ("path,class,Path\nsub/0.png,a,sub/1.png\n", "more than one column named 'path'"),
        ("path,class\nsub/0.png,a,3,4\nsub/1.png,a\n", "more cells than its header"),
        ("path,class" + ",x" * 200_000 + "\nsub/0.png,a\n", "has 200,002 columns; at most 1,000"),
        ("path,class\nsub/0.png,a" + ",1" * 200_000 + "\n", "more cells than its header"),
        ("path,class\nsub/0.png,a\nsub/1.png,a" + ",1" * 200_000 + "\n", "cannot be read as CSV"),
        ("path,class\n" + "x" * 2_000_000, "more than 1,000,000 letters"),
        ('path,class\n"' + "x" * 200_000 + '",a\n', "field larger than field limit"),
    ],
)
def test_tables_that_leave_a_column_unclear_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        image_folders.inspect(list_of(tmp_path, text))


def test_other_tables_are_read_without_columns_that_mean_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20,000 columns pandas makes only those that are wanted, which takes a thirtieth of the time."""
    widths, real = [], pd.read_csv

    def counted(*args, **options):
        table = real(*args, **options)
        widths.append(table.shape[1])
        return table

    monkeypatch.setattr(pd, "read_csv", counted)
    more, cells = "".join(f",c{i}" for i in range(20_000)), ",1" * 20_000
    demo = datasets.load("demo")
    with pytest.raises(BadInput, match="other classes"):
        saved_splits.read_split(demo, f"class_name,split{more}\nno class,train{cells}\n".encode(), "split.csv")
    with pytest.raises(BadInput, match="unknown class"):
        testbed_tables.from_csv(f"task,variance,labels,image_id,support{more}\n0,,9999,0,True{cells}\n", demo)
    (tmp_path / "said.csv").write_text(f"task,image_id,predicted,confidence{more}\n0,0,a,1{cells}\n")
    assert user_predictions._table(tmp_path / "said.csv").columns.tolist() == [*user_predictions.COLUMNS, "confidence"]
    assert widths[-3:] == [2, 5, 4]


def test_columns_without_a_name_are_no_attributes_and_infinities_no_numbers(tmp_path: Path) -> None:
    rows = "".join(f"{i},sub/{i}.png,{'ab'[i % 2]},inf,{i},x\n" for i in range(4))
    preview = image_folders.inspect(list_of(tmp_path, ",path,class,price,weight,n_bytes\n" + rows))
    assert preview.attributes == ("price", "weight")  # n_bytes is what fsviz calls the size of a file
    assert preview.images["weight"].tolist() == [0, 1, 2, 3]
    assert preview.images["price"].tolist() == ["inf"] * 4  # nothing to draw a slider from


def test_paths_written_on_windows_are_found(tmp_path: Path) -> None:
    preview = image_folders.inspect(list_of(tmp_path, "path,class\n.\\sub\\0.png,a\nsub\\1.png,b\n"))
    assert sorted(os.path.normpath(p) for p in preview.images["path"]) == ["sub/0.png", "sub/1.png"]


def test_problems_name_the_row_of_the_file(tmp_path: Path) -> None:
    preview = image_folders.inspect(list_of(tmp_path, "path,class\n,a\nsub/0.png,a\nsub/gone.png,a\n"))
    gone = next(problem for problem in preview.problems if problem.kind == "missing_file")
    assert gone.items == ("list.csv row 4: sub/gone.png",)
