"""Taxonomy of the classes: WordNet senses to check, folders, or a table of edges."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import streamlit as st

from fsviz import text
from fsviz.datasets import image_folders, tables
from fsviz.datasets.preview import Preview, pluralize
from fsviz.errors import FsvizError
from fsviz.records import Dataset
from fsviz.tables import Column, Table
from fsviz.taxonomy import wordnet
from fsviz.taxonomy.senses import FOLDERS, SenseGuess, guess_senses, taxonomy_from_edges
from fsviz.ui.parts import access, export, shell
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.shell import escape
from fsviz.user import images as user_images

WORDNET, NESTED, OWN, NONE = "WordNet", "My folders", "My own taxonomy", "No taxonomy"
NO_SENSE = "(none: far from every other class)"
MEANINGS = Table(
    "WordNet senses",
    Column("class", "Class", width=110),
    Column("meaning", "Meaning", width=270),
    Column("doubt", "Worth a look because", width=200),
    Column("says", "Definition in WordNet", width=300),
)


@dataclass(frozen=True)
class ChosenSenses:
    """Senses by class name, and which of them a person has just chosen."""

    senses: dict[str, str] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)


# What the classes mean


def pick_meanings(preview: Preview) -> tuple[ChosenSenses, pd.DataFrame | str | None, bool]:
    """The chosen senses, or a taxonomy of the user's own; and whether saving makes sense."""
    names = preview.classes["class_name"].tolist()
    st.caption(
        "A taxonomy is a tree of meanings: a poodle is a dog, a dog is an animal. With it fsviz can tell fine-grained "
        "tasks from easy ones. WordNet is a dictionary that is such a tree; each class needs one of its meanings."
    )
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
        st.caption("Without a taxonomy, tasks can still be drawn uniformly or by distances between features.")
        return ChosenSenses(), None, True
    if how == NESTED:
        st.caption("Classes in the same folder are related, and closer the further down they part.")
        return ChosenSenses(), FOLDERS, True
    if how == OWN:
        return ChosenSenses(), *_own_taxonomy(names)
    with st.spinner("Looking the class names up in WordNet …"):
        guesses = cached_call(guess_senses, tuple(names), keep=8)
    return _edit_senses(guesses), None, True


def _own_taxonomy(names: list[str]) -> tuple[pd.DataFrame | None, bool]:
    st.caption("A CSV with the columns child and parent. Every class must be in it, and everything below one root.")
    file = st.file_uploader("Taxonomy CSV", type="csv", key="taxonomy_csv")
    if file is None:
        return None, False
    try:
        edges = _read_edges(file.getvalue())
        taxonomy_from_edges(edges, names)
    except FsvizError as error:
        st.error(escape(str(error)), icon="⚠️")
        return None, False
    st.success(f"{len(edges):,} links read; every class has its place.", icon="🌳")
    return edges, True


def _read_edges(content: bytes) -> pd.DataFrame:
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(content)
        file.flush()
        return tables.read_edges(file.name)


def _edit_senses(guesses: list[SenseGuess], now: pd.DataFrame | None = None) -> ChosenSenses:
    """A table with one meaning per class, to be corrected by choosing another one.

    now  what the classes of a dataset mean so far (class, synset, by), a row per guess; else the guesses stand
    """
    senses = {sense.synset_id: sense for guess in guesses for sense in guess.candidates}
    start = {guess.class_name: guess.synset_id for guess in guesses}
    yours = set()
    if now is not None:
        start = dict(zip(now["class"], now["synset"], strict=True))
        senses |= {synset: wordnet.sense(synset) for synset in start.values() if synset and synset not in senses}
        yours = set(now["class"][now["by"] == "you"])
    word = st.text_input(
        "Look for another meaning",
        key="other_word",
        placeholder="a word, such as crane: its meanings join the choices of the table",
    )
    if word.strip():
        (other,) = guess_senses([word.strip()])
        senses |= {sense.synset_id: sense for sense in other.candidates}
        st.caption(f"{len(other.candidates)} meanings of “{escape(word.strip())}” can now be chosen below.")
    labels = {synset: _sense_label(sense) for synset, sense in senses.items()}
    synsets = {label: synset for synset, label in labels.items()}
    # The editor keeps changes by row: rows stand in the same order as long as the same images are looked at.
    rows = sorted(guesses, key=lambda guess: not guess.doubt)
    key = f"senses_{hash(tuple(start.items()))}"
    changes = (st.session_state.get(key) or {}).get("edited_rows", {})
    chosen = {int(row): synsets.get(change["meaning"], "") for row, change in changes.items() if "meaning" in change}
    taken = [chosen.get(row, start[guess.class_name]) for row, guess in enumerate(rows)]
    table = pd.DataFrame(
        {
            "class": [guess.class_name for guess in rows],
            "meaning": [labels.get(start[guess.class_name], NO_SENSE) for guess in rows],
            "says": [senses[synset].gloss if synset in senses else "" for synset in taken],
            "doubt": [
                "you chose this"
                if guess.class_name in yours or chosen.get(row, start[guess.class_name]) != start[guess.class_name]
                else guess.doubt
                for row, guess in enumerate(rows)
            ],
        }
    )
    edited = st.data_editor(
        table,
        hide_index=True,
        height=min(36 * len(table) + 40, 420),
        disabled=("class", "doubt", "says"),
        column_order=[
            column.name for column in MEANINGS.columns
        ],  # a narrow window shows the doubt, and scrolls to the gloss
        key=key,
        column_config={
            **export.column_config(MEANINGS, table),
            "meaning": st.column_config.SelectboxColumn(
                "Meaning (click to change, type to search)",
                options=[NO_SENSE, *sorted(labels.values())],
                required=True,
                width=270,
            ),
        },
    )
    st.caption(
        f"{sum(bool(guess.doubt) for guess in guesses):,} of {len(table):,} guesses are worth a look; they stand at "
        "the top. A guess weighs how usual a meaning is and how near it is to what the other classes mean."
    )
    found = {row["class"]: synsets.get(row["meaning"], "") for _, row in edited.iterrows()}
    changed = {name for name, synset in found.items() if synset != start[name]}
    listed = pd.DataFrame({"class": list(start), "synset": [found[name] for name in start]})
    listed["meaning"] = [senses[synset].gloss if synset in senses else "" for synset in listed["synset"]]
    st.download_button("Download as CSV", text.csv(listed), "senses.csv", "text/csv", key="senses_csv", icon="⬇️")
    return ChosenSenses({name: found[name] for name in start}, changed)


def _sense_label(sense: Any) -> str:
    return f"{sense.name} · {' › '.join(sense.path[-4:-1])} ({sense.synset_id})"


def show_meanings(dataset: Dataset) -> None:
    """Meanings of the classes of a user dataset, to be corrected after it was saved."""
    st.subheader(f"What do the classes of {escape(dataset.title)} mean?", anchor=False)
    if dataset.name not in image_folders.workspace_dataset_names():
        st.info("Meanings can be changed for datasets of your own. Pick one in the sidebar.", icon="🧩")
        return
    access.show_denied("save")
    now = user_images.class_senses(dataset)
    guesses = cached_call(guess_senses, tuple(now["class"]), keep=8)
    if not (now["synset"] != "").any():
        now = None
        if dataset.taxonomy is not None:
            st.info(
                "The taxonomy comes from your folders or file. Saving meanings here puts WordNet's in its place.",
                icon="🌳",
            )
    chosen = _edit_senses(guesses, now)
    if st.button("Save meanings", type="primary", key="save_meanings", disabled=now is not None and not chosen.changed):
        given = {name: chosen.senses[name] for name in chosen.changed}
        access.do("save", user_images.correct_senses, dataset.name, given)
        shell.notice(f"Saved. {pluralize(len(given), 'meaning')} changed; images, features and runs stay.")
        st.rerun()
    st.caption("Runs that were made before keep the taxonomy of their time.")
