from __future__ import annotations

import pytest

from fsviz.errors import BadInput
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
    with pytest.raises(BadInput, match="python -m fsviz senses"):
        wordnet.sense(synset_id)
