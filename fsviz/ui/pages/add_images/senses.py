"""Taxonomy of the classes: WordNet senses to check, folders, or a table of edges."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import streamlit as st

from fsviz import text
from fsviz.datasets import image_folders, tables
from fsviz.datasets.preview import Preview, pluralize
from fsviz.errors import FsvizError
from fsviz.records import Dataset
from fsviz.tables import Column, Table
from fsviz.taxonomy import wordnet
from fsviz.taxonomy.senses import FOLDERS, Sense, SenseGuess, guess_senses, taxonomy_from_edges
from fsviz.ui.parts import access, export, shell
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.image_wall import thumbnail_uri
from fsviz.ui.parts.shell import escape
from fsviz.user import images as user_images

WORDNET, NESTED, OWN, NONE = "WordNet", "From folders", "From CSV", "None"
NO_SENSE = "(none: far from every other class)"
MAX_PICTURES = 200  # rows with an image; doubtful senses are first
PICTURE_PX = 40
SENSES = Table(
    "WordNet senses",
    Column("picture", "Image", kind="image", width=48),
    Column("class", "Class", kind="class", width=110),
    Column("sense", "Sense", width=270),
    Column("own", "Senses of this word", width=200),
    Column("doubt", "Check because", width=170),
    Column("definition", "Definition", width=300),
)


@dataclass(frozen=True)
class ChosenSenses:
    """Senses by class name, and the names of the classes whose sense was just changed."""

    senses: dict[str, str] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)


def pick_taxonomy(preview: Preview) -> tuple[ChosenSenses, pd.DataFrame | str | None, bool]:
    """The senses or the taxonomy that the user chose, and whether the dataset can be saved."""
    names = preview.classes["class_name"].tolist()
    st.caption("A taxonomy (poodle < dog < animal) lets fsviz measure semantic distance.")
    nested = sum("/" in name for name in names)
    choices = (WORDNET, *((NESTED,) if nested else ()), OWN, NONE)
    how = st.segmented_control(
        "Taxonomy",
        choices,
        default=NESTED if user_images.is_nested(preview) else WORDNET,
        key="taxonomy_from",
        required=True,
        label_visibility="collapsed",
    )
    if how == NONE:
        st.caption("Without a taxonomy, tasks are sampled uniformly or by distances between features.")
        return ChosenSenses(), None, True
    if how == NESTED:
        st.caption("Classes in the same folder are semantically close.")
        return ChosenSenses(), FOLDERS, True
    if how == OWN:
        return ChosenSenses(), *_own_taxonomy(names)
    with st.spinner("Searching WordNet for the class names …"):
        guesses = cached_call(user_images.senses_of_classes, tuple(names), tuple(preview.senses.items()), keep=8)
    return _edit_senses(guesses, image_folders.preview_dataset("preview", preview)), None, True


def _own_taxonomy(names: list[str]) -> tuple[pd.DataFrame | None, bool]:
    st.caption("A CSV with the columns child and parent: all classes below one root.")
    file = st.file_uploader("Taxonomy CSV", type="csv", key="taxonomy_csv")
    if file is None:
        return None, False
    try:
        edges = _read_edges(file.getvalue())
        taxonomy_from_edges(edges, names)
    except FsvizError as error:
        st.error(escape(str(error)), icon="⚠️")
        return None, False
    st.success(f"{len(edges):,} edges read; all classes are in the taxonomy.", icon="🌳")
    return edges, True


def _read_edges(content: bytes) -> pd.DataFrame:
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(content)
        file.flush()
        return tables.read_edges(file.name)


def _edit_senses(guesses: list[SenseGuess], dataset: Dataset, now: pd.DataFrame | None = None) -> ChosenSenses:
    """A table with one sense per class, its image and the other senses of its name, to choose another one.

    dataset  of the images, with a class per guess
    now      the saved senses (class, synset, by), a row per guess; the guesses by default
    """
    senses = {sense.synset_id: sense for guess in guesses for sense in guess.candidates}
    start = {guess.class_name: guess.synset_id for guess in guesses}
    yours = set()
    if now is not None:
        start = dict(zip(now["class"], now["synset"], strict=True))
        senses |= {synset: wordnet.sense(synset) for synset in start.values() if synset and synset not in senses}
        yours = set(now["class"][now["by"] == "you"])
    word = st.text_input(
        "Search senses",
        key="other_word",
        placeholder="a word, such as crane: adds its senses to the choices",
    )
    if word.strip():
        (matches,) = guess_senses([word.strip()])
        senses |= {sense.synset_id: sense for sense in matches.candidates}
        st.caption(f"Added {escape(pluralize(len(matches.candidates), 'sense'))} of “{escape(word.strip())}”.")
    labels = {synset: _sense_label(sense) for synset, sense in senses.items()}
    synsets = {label: synset for synset, label in labels.items()}
    # The editor keeps changes by row, so the order of the rows stays the same for the same images.
    rows = sorted(guesses, key=lambda guess: not guess.doubt)
    places = {guess.class_name: position for position, guess in enumerate(guesses)}
    key = f"senses_{hash(tuple(start.items()))}"
    changes = (st.session_state.get(key) or {}).get("edited_rows", {})
    new_synsets = {int(row): synsets.get(change["sense"], "") for row, change in changes.items() if "sense" in change}
    current = [new_synsets.get(row, start[guess.class_name]) for row, guess in enumerate(rows)]
    table = pd.DataFrame(
        {
            "picture": _pictures(dataset, [places[guess.class_name] for guess in rows]),
            "class": text.short_names([guess.class_name for guess in rows]),
            "sense": [labels.get(start[guess.class_name], NO_SENSE) for guess in rows],
            "own": [" | ".join(_short_label(sense) for sense in guess.candidates) for guess in rows],
            "definition": [senses[synset].gloss if synset in senses else "" for synset in current],
            "doubt": [
                "your choice"
                if guess.class_name in yours or new_synsets.get(row, start[guess.class_name]) != start[guess.class_name]
                else guess.doubt
                for row, guess in enumerate(rows)
            ],
        }
    )
    edited = st.data_editor(
        table,
        hide_index=True,
        height=min(36 * len(table) + 40, 420),
        disabled=("picture", "class", "own", "doubt", "definition"),
        column_order=[column.name for column in SENSES.columns],
        key=key,
        column_config={
            **export.column_config(SENSES, table),
            "sense": st.column_config.SelectboxColumn(
                "Sense (click to change, type to search)",
                options=[NO_SENSE, *sorted(labels.values())],
                required=True,
                width=270,
            ),
        },
    )
    st.caption(
        f"{sum(bool(guess.doubt) for guess in guesses):,} of {len(table):,} senses need checking (listed first).",
        help="A guess weighs how common a sense is and how close it is to the senses of the other classes.",
    )
    synset_of_class = {
        guess.class_name: synsets.get(sense, "") for guess, sense in zip(rows, edited["sense"], strict=True)
    }
    changed = {name for name, synset in synset_of_class.items() if synset != start[name]}
    listed = pd.DataFrame({"class": list(start), "synset": [synset_of_class[name] for name in start]})
    listed["definition"] = [senses[synset].gloss if synset in senses else "" for synset in listed["synset"]]
    st.download_button("Download as CSV", text.csv(listed), "senses.csv", "text/csv", key="senses_csv", icon="⬇️")
    return ChosenSenses({name: synset_of_class[name] for name in start}, changed)


def _sense_label(sense: Sense) -> str:
    return f"{sense.name} · {' › '.join(sense.path[-4:-1])} ({sense.synset_id})"


def _short_label(sense: Sense) -> str:
    """The concept above a sense, which tells it from other senses of the word."""
    return sense.path[-2] if len(sense.path) > 1 else sense.name


def _pictures(dataset: Dataset, class_ids: list[int]) -> list[str]:
    """Thumbnails of the first image of each class, for the first rows; "" for others."""
    if not dataset.has_pixels:
        return [""] * len(class_ids)
    first = dict(zip(*np.unique(dataset.image_class_ids(), return_index=True), strict=True))
    image_ids = [first.get(c) if row < MAX_PICTURES else None for row, c in enumerate(class_ids)]
    return ["" if image_id is None else thumbnail_uri(dataset, int(image_id), PICTURE_PX) for image_id in image_ids]


def show_senses(dataset: Dataset) -> None:
    """WordNet senses of the classes of a user dataset, to correct them after it was saved."""
    st.subheader(f"WordNet senses of {escape(dataset.title)}", anchor=False)
    if dataset.name not in image_folders.workspace_dataset_names():
        st.info("Senses can be changed for your own datasets only. Choose one under Dataset.", icon="🧩")
        return
    access.show_denied("save")
    now = user_images.class_senses(dataset)
    guesses = cached_call(guess_senses, tuple(now["class"]), keep=8)
    if not (now["synset"] != "").any():
        now = None
        if dataset.taxonomy is not None:
            st.info(
                "The taxonomy comes from your folders or file. Saving senses replaces it with WordNet.",
                icon="🌳",
            )
    corrections = _edit_senses(guesses, dataset, now)
    if st.button(
        "Save senses", type="primary", key="save_senses", disabled=now is not None and not corrections.changed
    ):
        changed = {name: corrections.senses[name] for name in corrections.changed}
        access.do("save", user_images.correct_senses, dataset.name, changed)
        shell.notice(f"{pluralize(len(changed), 'sense')} changed.")
        st.rerun()
    st.caption("Finished runs keep their taxonomy.")
