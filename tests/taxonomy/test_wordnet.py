from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fsviz.errors import BadInput, Missing
from fsviz.taxonomy import wordnet


def test_dog_is_the_imagenet_dog() -> None:
    first = wordnet.senses("dog")[0]
    assert first.synset_id == "n02084071"
    assert first.is_physical
    assert first.path[0] == "entity"
    assert first.path[-1] == "dog"


@pytest.mark.parametrize(
    ("name", "synset_id"),
    [
        ("090.canna lily", "n12350959"),
        ("Great_White_Shark", "n01484850"),
        ("red kitchen chair", "n03001627"),
        ("dogs", "n02084071"),
    ],
)
def test_class_names_of_many_spellings_are_found(name: str, synset_id: str) -> None:
    assert wordnet.senses(name)[0].synset_id == synset_id


@pytest.mark.parametrize("name", ["", "   ", "qwertzuiop", "🐕", "<b>x</b>", "12."])
def test_an_unknown_name_has_no_senses(name: str) -> None:
    assert wordnet.senses(name) == []


def test_the_closure_reaches_the_root_and_names_every_node() -> None:
    edges, names = wordnet.hypernym_closure(["n02084071", "n02121620"])
    assert set(edges["child"]) | set(edges["parent"]) == set(names)
    assert set(edges["parent"]) - set(edges["child"]) == {"n00001740"}
    # WordNet gives dog two parents: canine and domestic animal.
    assert set(edges["parent"][edges["child"] == "n02084071"]) == {"n02083346", "n01317541"}


@pytest.mark.parametrize("synset_id", ["n00000001", "dog", "n2084071", "v02084071", ""])
def test_a_wrong_id_is_one_sentence(synset_id: str) -> None:
    with pytest.raises(BadInput, match="fsviz senses"):
        wordnet.sense(synset_id)


@pytest.fixture
def writable_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The shipped WordNet as a clone with umask 002 leaves it."""
    shutil.copytree(wordnet.SHIPPED, tmp_path / "wordnet")
    for path in [tmp_path / "wordnet", *(tmp_path / "wordnet").rglob("*")]:
        path.chmod(0o775 if path.is_dir() else 0o664)
    monkeypatch.setattr(wordnet, "SHIPPED", tmp_path / "wordnet")
    yield tmp_path / "wordnet"


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_a_clone_that_its_group_may_write_to_is_read(writable_by_others: Path) -> None:
    assert wordnet.senses("dog")[0].synset_id == "n02084071"


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_a_changed_copy_that_others_may_write_to_is_refused(writable_by_others: Path) -> None:
    with open(writable_by_others / "corpora" / "wordnet" / "noun.exc", "a") as file:
        file.write("doggos dog\n")
    with pytest.raises(Missing, match="Restore data/wordnet"):
        wordnet.senses("dog")
