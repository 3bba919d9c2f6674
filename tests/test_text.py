"""Names as they were written: what each outlet's function does, and that nobody goes around it."""

from __future__ import annotations

import ast
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import text
from tests.hostile import NAMES

ROOM = Path(text.__file__).parent


@pytest.mark.parametrize("name", NAMES)
def test_markdown_is_the_name_with_every_mark_escaped(name: str) -> None:
    visible = text.escape_markdown(name)
    assert not re.search(r"(?<!\\)(?:\\\\)*[\[\]<>|`*_$]", visible.replace(":gray[]", ""))
    assert re.sub(r"\\(.)", r"\1", visible.replace(":gray[]", "")).split() == re.sub("[\u202e\u2066]", "", name).split()
    assert not re.search(r"https?://|www\.|\w@\w|:material/|(?<!\S)(->|--)(?!\S)", re.sub(r"\\(.)", r"\1", visible))


def test_markdown_by_hand() -> None:
    assert text.escape_markdown("two  words\n# no heading") == r"two words \# no heading"
    assert text.escape_markdown("http://a.b") == r"http\::gray[]//a.b"
    assert (
        text.escape_markdown(12) == "12"
        and text.escape_markdown("16: x (y) - z.") == "16: x (y) - z."
        and text.escape_markdown("x:") == r"x\:"
    )
    assert [text.escape_markdown(start) for start in ("1. x", "- x", "2) y", "=", "1.5")] == [
        r"1\. x",
        r"\- x",
        r"2\) y",
        r"\=",
        r"1\.5",
    ]


def test_what_is_drawn_by_plotly_is_decoded_to_the_name() -> None:
    from html import unescape

    for name in NAMES:
        visible = text.escape_plotly(name)
        assert not re.search(r"[<>{$]", visible)
        assert unescape(visible) == re.sub("[\u202e\u2066]", "", name)


def test_no_cell_of_a_csv_is_a_formula_and_numbers_stay_numbers() -> None:
    cells = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "fine", "a=b", "x\r=1"]
    table = pd.DataFrame({"=name": cells, "number": np.linspace(-1, 1, len(cells)), "right": True}, index=cells)
    written = text.csv(table, index_label="name")
    read = pd.read_csv(io.StringIO(written), keep_default_na=False)
    assert list(read) == ["name", "'=name", "number", "right"]
    assert read["'=name"].tolist()[:4] == ["'=1+1", "'+1", "'-1", "'@x"]
    assert not any(str(v).startswith(("=", "+", "-", "@", "\t", "\r")) for v in [*read["'=name"], *read["name"]])
    assert read["'=name"].tolist()[6:] == ["fine", "a=b", "x =1"]
    assert np.array_equal(read["number"], table["number"]) and read["right"].all()


@pytest.mark.parametrize("parting", [";", "\t"])
def test_no_cell_is_a_formula_where_a_spreadsheet_parts_cells_otherwise(parting: str) -> None:
    names = [f"x{parting}=1+1", f"x{parting} @y", f"a{parting}b", f"{parting}{parting}+1"]
    cells = text.csv(pd.DataFrame({"name": names})).replace('"', "").replace("\n", parting).split(parting)
    assert "'=1+1" in cells and "b" in cells
    assert not any(cell.strip().startswith(("=", "+", "-", "@")) for cell in cells)


@pytest.mark.parametrize("name", ["=1+1", "x;=1", "x; @y", "plain", "a;b", "+a;-b", "it's", "；", "-"])
def test_a_cell_of_a_csv_is_read_back_as_it_was(name: str) -> None:
    read = pd.read_csv(io.StringIO(text.csv(pd.DataFrame({"name": [name]}))), dtype=str, keep_default_na=False)
    assert text.from_csv(read["name"][0]) == name


def test_one_writer_of_csv() -> None:
    """Whoever writes a CSV that leaves fsviz writes it with `text.csv`."""
    inside = {"text.py", "features/store.py", "datasets/saved.py"}  # a hash, and a file that only fsviz reads
    result = {
        str(path.relative_to(ROOM))
        for path in ROOM.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("to_csv", "writer", "DictWriter")
        if ast.unparse(node) != "testbeds.to_csv"
    }
    assert result == inside


def test_only_a_whole_share_is_100_per_cent() -> None:
    assert [text.percent(share) for share in (0, 0.446, 0.994, 0.9999, 1.0)] == ["0%", "45%", "99%", "99%", "100%"]


def test_short_names_lose_only_the_folders_that_they_do_not_need() -> None:
    names = ("Fruit/Apple/Granny", "Fruit/Lemon", "Veg/Lemon", "plum", "Veg/Onion/")
    assert text.short_names(names) == ["Granny", "Fruit/Lemon", "Veg/Lemon", "plum", "Onion"]
    assert text.short_names(("a/a", "a")) == ["a/a", "a"]
    assert text.short_names(("x/Lime", "x/Lime")) == ["Lime", "Lime"]  # one class, named twice


@pytest.mark.parametrize("name", ["F/A-18", "F-16A/B", "Speed limit (20km/h)", "dog/01", "", "/"])
def test_a_slash_that_parts_no_folders_stays(name: str) -> None:
    assert text.short_names([name, "Fruit/Lime"]) == [name, "Lime"]


def test_a_long_name_is_cut_in_the_middle() -> None:
    assert text.shorten("Arla-Ecological-Medium-Fat-Milk", 18) == "Arla-Ecol…Fat-Milk"
    assert text.shorten("Lime", 4) == "Lime" and len(text.shorten("x" * 40)) == 22
    assert text.short_names(["Packages/Milk/Arla-Ecological-Medium-Fat-Milk", "b"], 18) == ["Arla-Ecol…Fat-Milk", "b"]


def test_a_cut_keeps_the_part_in_which_similar_names_differ() -> None:
    juices = ["God-Morgon-Apple-Juice", "God-Morgon-Orange-Juice"]
    assert text.short_names(juices, 18) == ["God-Mo…Apple-Juice", "God-M…Orange-Juice"]
    milks = ["Garant-Ecological-Standard-Milk", "Garant-Ecological-Medium-Fat-Milk", "Arla-Sour-Milk"]
    assert text.short_names(milks, 19) == ["Garan…Standard-Milk", "Gar…Medium-Fat-Milk", "Arla-Sour-Milk"]
    ends = [f"{start}-wide-angle-lens-cover" for start in ("camera-a", "camera-b")]
    assert text.short_names(ends, 13) == ["camera-a…over", "camera-b…over"]


@pytest.mark.parametrize("max_length", [6, 10, 14, 18, 22])
def test_cut_names_stay_distinct(max_length: int) -> None:
    flavours = ("Orange", "Apple", "Red-Grapefruit", "Orange-Red-Grapefruit")
    names = [f"Packages/Juice/God-Morgon-{flavour}-Juice" for flavour in flavours]
    names += ["Vegetables/Brown-Cap-Mushroom", "Vegetables/Mushroom/Brown-Cap-Mushroom", "Fruit/Kiwi"]
    short = text.short_names(names, max_length)
    assert len(set(short)) == len(names) and short[-1] == "Kiwi"
    assert all(len(cut) <= len(whole) for cut, whole in zip(short, text.short_names(names), strict=True))
    assert text.short_names(["ab" * 20, "ab" * 21], 6)[0] != text.short_names(["ab" * 20, "ab" * 21], 6)[1]
