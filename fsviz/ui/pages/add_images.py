"""The Add images page: from a folder to a dataset with a taxonomy and features, in three steps.

1. say where the images are and look at what was found
2. say what the classes mean
3. save, then let a backbone look at the images
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from fsviz import datasets, jobs, text, workspace
from fsviz.datasets import archives, image_folders, published_images, saved, tables, uploads
from fsviz.datasets.catalog import ENTRIES
from fsviz.datasets.duplicates import largest_groups
from fsviz.datasets.images import SUFFIXES
from fsviz.datasets.preview import Preview, many
from fsviz.errors import FsvizError
from fsviz.features import store
from fsviz.features.backbones import title_of
from fsviz.records import Dataset
from fsviz.sampling import testbeds
from fsviz.settings import Setting
from fsviz.studies import extraction
from fsviz.taxonomy import wordnet
from fsviz.taxonomy.senses import FOLDERS, SenseGuess, guess_senses, taxonomy_from_edges
from fsviz.ui.parts import access, controls, export, run_panel, shell
from fsviz.ui.parts.caching import remember
from fsviz.ui.parts.image_wall import Row, Tile, gallery, task_rows
from fsviz.ui.parts.shell import plain
from fsviz.user import images as user_images
from fsviz.user import torchvision_sets

ADD, EXTRACT, IMPORT = "Add images", "Extract features", "Import features"
MEANING, KEEP = "Meanings", "Rename or delete"
DO = Setting(
    "do",
    "What do you want to do?",
    "",
    "choice",
    ADD,
    choices={name: name for name in (ADD, EXTRACT, IMPORT, MEANING, KEEP)},
)
FOLDER, UPLOAD, DOWNLOAD = "A folder or table on this computer", "Files to upload", "A dataset to download"
WORDNET, NESTED, OWN, NONE = "WordNet", "My folders", "My own taxonomy", "No taxonomy"
MY_OWN = "no, my own classes"
NO_SENSE = "(none: far from every other class)"
N_SAMPLES, N_GROUPS, N_IN_GROUP = 24, 5, 8
LEVELS = {0: "the folder an image lies in", 1: "the first folder", 2: "the second folder", 3: "the third folder"}
GROUPED = {
    "auto": "copies of a picture",
    "folder": "copies, and images of one folder (videos)",
    "none": "none: do not look",
}


@dataclass(frozen=True)
class Chosen:
    """Senses by class name, and which of them a person has just chosen."""

    senses: dict[str, str] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)


def show(dataset: Dataset) -> None:
    if not access.may("save"):
        st.info(access.reason("save"), icon="🔒")
        return
    few = shell.classroom() and st.session_state.get(DO.name, st.query_params.get(DO.name, ADD)) in (ADD, EXTRACT)
    offered = DO.with_(choices={name: name for name in (ADD, EXTRACT)}) if few else DO
    choice = controls.pick(offered, as_buttons=True, label_visibility="collapsed")
    if choice == EXTRACT:
        _extract(dataset)
    elif choice == IMPORT:
        _import()
    elif choice == MEANING:
        _meaning(dataset)
    elif choice == KEEP:
        _keep()
    else:
        _add(dataset)


# 1. Where the images are


def _add(dataset: Dataset) -> None:
    done = st.session_state.get("added")
    if done is not None and done == dataset.name:
        _saved(dataset)
        return
    st.subheader("1 · Where are the images?", anchor=False)
    sources = (*((FOLDER,) if access.may("paths") else ()), UPLOAD, DOWNLOAD)
    where = st.segmented_control(
        "Source", sources, default=sources[0], key="source", required=True, label_visibility="collapsed"
    )
    access.deny("paths")
    if where == UPLOAD:
        preview, upload = _from_upload()
    elif where == DOWNLOAD:
        preview, upload = _from_download(), None
    else:
        preview, upload = _from_path()
    if preview is None:
        if (like := st.query_params.get("like")) in ENTRIES:
            st.session_state["like"] = like
            st.info(
                f"Give the folder that holds the images of **{ENTRIES[like].title}**, one folder per class, named by "
                "class or by WordNet id (n01440764, as in ILSVRC's train folder).",
                icon="🧩",
            )
        _layouts()
        _mine()
        return
    by_size = not shell.classroom() and st.checkbox(
        "Split the classes by size",
        key="by_size",
        help="As MetaCoCo does, whatever the folders say: the 64% of classes with most images train, the next 20% "
        "test, the rest is val.",
    )
    preview = user_images.with_splits_by_size(preview) if by_size else preview
    _found(preview)
    if like := _benchmark(preview):
        _attach(preview, like, upload)
        return
    st.subheader("2 · What do the classes mean?", anchor=False)
    senses, edges, ready = _meanings(preview)
    st.subheader("3 · Save it", anchor=False)
    _save(preview, senses, edges, upload, ready)


def _from_path() -> tuple[Preview | None, Path | None]:
    path = st.text_input(
        "Path of a folder, a CSV table or an easyfsl JSON spec",
        key=f"path_{st.session_state.get('add_turn', 0)}",
        placeholder="/home/you/pictures/pets",
        help="The images stay where they are; only a table that points to them is written.",
    )
    access.say_folders()
    with st.expander("Options for tables and folders"):
        one, two, three = st.columns(3)
        images = one.text_input("Images folder (where the paths of a table start)", key="images_folder")
        first = two.selectbox("The first folders are", image_folders.FIRST_LEVELS, key="first_level")
        level = two.selectbox(
            "A class is",
            tuple(LEVELS),
            format_func=LEVELS.__getitem__,
            key="class_level",
            help="Below the root, or below the splits. Images of folders further inside belong to the class.",
        )
        with three:
            groups = _groups_choice()
        parts = {}
        for column, part in zip(st.columns(5), ("path", "class", "split", "context", "group")):
            parts[part] = column.text_input(f"Column of the {plain(part)}", key=f"column_{part}", placeholder="auto")
    if not path.strip():
        return None, None
    options: dict[str, Any] = {
        "images": access.path(images.strip()) if images.strip() else None,
        "first_level": first,
        "groups": groups,
        "class_level": level,
        "columns": {part: name for part, name in parts.items() if name},
    }
    allowed = access.path(path.strip())
    if archives.is_packed(allowed):  # pickles of a benchmark, or TFRecords: images are written out first
        with st.spinner("Writing the images out …"):
            folder = access.do("upload", archives.unpack, allowed)
        with uploads.kept_if_usable(folder):
            return _look("upload", str(folder), groups=groups), folder
    shell.same_from_terminal(user_images.command(allowed, options))
    return _look("paths", allowed, **options), None


def _groups_choice() -> str:
    return st.selectbox(
        "Images that stay together",
        tuple(GROUPED),
        format_func=GROUPED.__getitem__,
        key="groups",
        help="Copies of a picture and frames of a video must not stand on both sides of a task: a query would be "
        "recognised by its copy. A column group of a table is taken as it is.",
    )


def _from_upload() -> tuple[Preview | None, Path | None]:
    files = st.file_uploader(
        "A zip of one folder per class (or of splits with class folders); or images, zipped or not, with a CSV that "
        "says their classes",
        type=["zip", "csv", *sorted(ending[1:] for ending in SUFFIXES)],
        accept_multiple_files=True,
        key=f"zip_{st.session_state.get('add_turn', 0)}",
    )
    _say_limit("a folder")
    if not files:
        return None, None
    groups = _groups_choice()
    with st.spinner("Checking and unpacking the upload …"):
        folder, table = access.do("upload", uploads.collect, files)
    with uploads.kept_if_usable(folder):
        if table is not None:
            return _look("upload", str(table), groups=groups, images=str(table.parent)), folder
        return _look("upload", str(folder), groups=groups), folder


def _say_limit(what: str) -> None:
    """How much a browser may send, and what to do with more."""
    most = f"A file may have up to {st.get_option('server.maxUploadSize'):,} MB."
    if access.may("paths"):
        st.caption(f"{most} With more, give the path of {what} on this computer instead: nothing is copied then.")
    else:
        st.caption(f"{most} With more, ask whoever runs this server to add it, or pack smaller images.")


def _from_download() -> Preview | None:
    st.caption("torchvision fetches these from their makers' servers; this needs internet and some gigabytes of disk.")
    name = st.selectbox("Dataset", torchvision_sets.names(), key="torchvision")
    if st.button("Download and look", key="download") or st.session_state.get("fetched") == name:
        st.session_state["fetched"] = name
        return _look("download", f"torchvision:{name}")
    return None


def _look(action: str, path: str, **options: Any) -> Preview | None:
    """The preview of a path, kept until the path, the options or the wish to look again change."""
    request = (path, repr(sorted(options.items(), key=str)))
    kept = st.session_state.get("preview")
    if kept is not None and kept[0] == request:
        return kept[1]
    if st.session_state.get("stopped") == request:
        st.info("Looking was stopped.", icon="⏹️")
        if st.button("Look again", key="again"):
            st.session_state.pop("stopped")
            st.rerun()
        return None
    holder = st.empty()
    with holder.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, "Reading the folder …")
        st.button("Stop", key="stop", on_click=_stop, args=(request,))
    try:
        preview = access.do(
            action,
            user_images.find,
            path,
            confined=action == "upload" or access.is_confined(),
            progress=lambda done, total, message: bar.progress(
                done / max(total, 1), f"{plain(message.capitalize())}: {done:,} of {total:,}"
            ),
            **options,
        )
    except FsvizError:
        st.session_state.pop("fetched", None)
        raise
    finally:
        holder.empty()
    st.session_state["preview"] = (request, preview)
    st.session_state.pop("added", None)
    return preview


def _stop(request: tuple[str, str]) -> None:
    st.session_state["stopped"] = request


def _layouts() -> None:
    """What can be given, drawn as it lies on disk; shown while nothing has been given."""
    st.markdown("**Any of these will do:**")
    one, two, three = shell.columns_if_wide("forms", 3)
    one.caption("A folder per class; splits with folders per class; concepts with folders of contexts")
    one.code(
        "pets/\n  dog/  1.jpg  2.jpg\n  cat/  1.jpg  2.jpg\n\npets/\n  train/ dog/ ...\n  test/  cat/ ...\n\n"
        "pets/\n  dog/  grass/ ...  snow/ ...",
        language=None,
    )
    two.caption("A CSV table; further columns become attributes")
    two.code(
        "path,class,split,context,blur\na/1.jpg,dog,train,grass,0.1\na/2.jpg,cat,test,sofa,0.7\n\n"
        "or train.csv, val.csv, test.csv\n(filename,label) beside images/\n\n"
        "or metadata.csv, metadata.jsonl\n(file_name,label) of Hugging Face",
        language=None,
    )
    three.caption("An easyfsl spec, or a folder with train.json, val.json, test.json")
    three.code(
        '{"class_names": ["dog", "cat"],\n "class_roots": ["./pets/dog",\n                 "./pets/cat"]}',
        language=None,
    )


def _mine(title: str = "Added before") -> None:
    """The datasets that were added before."""
    names = image_folders.workspace_dataset_names()
    if not names:
        return
    st.subheader(title, anchor=False)
    for name in names:
        with st.container(horizontal=True, vertical_alignment="center"):
            try:
                mine = shell.load_dataset(name)
                told = f"{mine.n_classes:,} classes, {mine.n_images or 0:,} images"
                told += ", features" if mine.has_features else ", no features yet"
                st.markdown(f"**{plain(mine.title)}** · {told}")
                st.page_link("pages/1_Gallery.py", label="Look", icon="🖼️", query_params=shell.link(mine))
                if access.may("delete"):
                    with st.popover("Rename"):
                        given = st.text_input("Title", mine.title, key=f"title_{name}")
                        st.caption("Pages show the title; links and commands keep the name.")
                        st.button("Save the title", key=f"rename_{name}", on_click=_rename, args=(name, given))
            except FsvizError as error:
                st.markdown(f"**{plain(name)}** · {plain(str(error))}")
            if access.may("delete"):
                with st.popover("Remove"):
                    st.caption(
                        "The dataset leaves fsviz with its features and splits. Your own image folder is not touched, "
                        "and finished runs stay."
                    )
                    st.button(f"Remove {plain(name)}", key=f"remove_{name}", on_click=_remove, args=(name,))


def _rename(name: str, title: str) -> None:
    _or_notice("delete", saved.rename_dataset, name, st.session_state.get(f"title_{name}", title))


def _remove(name: str) -> None:
    _or_notice("delete", image_folders.remove_dataset, name)
    if st.query_params.get("dataset") == name:
        shell.choose_dataset(shell.DEFAULT_DATASET)


def _or_notice(action: str, act: Callable[..., Any], *args: Any) -> None:
    """Acts on behalf of a click; what cannot be done is said on the next page."""
    try:
        access.do(action, act, *args)
    except FsvizError as error:
        shell.notice(str(error))


def _keep() -> None:
    """Everything of one's own that can be renamed or deleted: datasets, features, testbeds."""
    access.deny("delete")
    _mine("Datasets")
    rows = [row for row in store.list_features() if row["origin"] == "workspace"]
    if rows:
        st.subheader("Features", anchor=False)
    for row in rows:
        dataset, backbone = row["dataset"], row["backbone"]
        told = f"{row['n_images'] or 0:,} images, {row['dims'] or 0:,} numbers each"
        _one(
            f"**{plain(title_of(backbone))}** on {plain(shell.dataset_title(dataset))} · {told}",
            f"features_{row['path']}",
            f"They can be {'imported' if row['imported'] else 'extracted'} again; finished runs that used them stay.",
            ("delete", store.remove_features, dataset, backbone),
            ("delete", store.rename_features, dataset, backbone) if row["imported"] else (),
            "Finished runs keep the old name; commands and links need the new one.",
        )
    names = testbeds.list_testbeds()
    if names:
        st.subheader("Testbeds", anchor=False)
    for name in names:
        _one(
            f"**{plain(name)}**",
            f"testbed_{name}",
            "Finished runs on it stay; new ones need another testbed.",
            ("delete", testbeds.delete_testbed, name),
            ("delete", testbeds.rename_testbed, name),
            "Runs keep their own copy of the tasks; commands and links need the new name.",
        )
    if not (rows or names or image_folders.workspace_dataset_names()):
        st.caption("Nothing of your own is here yet: datasets, features and testbeds that you add appear here.")


def _one(
    told: str, key: str, after: str, removal: tuple[Any, ...], renaming: tuple[Any, ...] = (), renamed: str = ""
) -> None:
    """A line with ways to rename and delete what it names, each after a second click.

    removal   the action, the function and what it is called with
    renaming  the same, without the new name that comes last; the last of it is the old name. () for none
    renamed   what another name changes
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(told)
        if not access.may("delete"):
            return
        if renaming:
            with st.popover("Rename"):
                st.text_input("Name", str(renaming[-1]), key=f"new_{key}")
                st.caption(renamed)
                st.button("Save the name", key=f"rename_{key}", on_click=_rename_one, args=(renaming, f"new_{key}"))
        with st.popover("Delete"):
            st.caption(after)
            st.button("Delete it", key=f"delete_{key}", on_click=_or_notice, args=removal)


def _rename_one(renaming: tuple[Any, ...], field: str) -> None:
    _or_notice(*renaming, st.session_state.get(field, renaming[-1]))


def _found(preview: Preview) -> None:
    """Counts, samples and problems."""
    classes = preview.classes
    one, two, three, four = st.columns(4)
    one.metric("Classes", f"{len(classes):,}")
    two.metric("Images", f"{len(preview.images):,}")
    splits = preview.split_counts
    three.metric(
        "Splits", plain(" / ".join(splits)) if len(splits) < 4 else f"{len(splits):,}", help="Sets of classes."
    )
    n_problems = sum(max(1, len(p.items)) for p in preview.problems)
    four.metric("Things to look at", f"{n_problems:,}", help="Problems found; none of them stops you.")
    shown = image_folders.preview_dataset("preview", preview)
    st.caption(
        " ".join([f"Read as a {plain(preview.source)} in {plain(str(preview.root))}.", *map(plain, shown.notes)])
    )
    left, right = st.columns([3, 2], gap="large")
    with left:
        picked = _sample_ids(shown)
        names = shown.classes["class_name"].to_numpy()[shown.image_class_ids()[picked]]
        gallery(shown, [Tile(int(i), str(n)) for i, n in zip(picked, names)], key="samples", tile_px=84)
        st.caption(f"{len(picked)} of {len(preview.images):,} images, from as many classes as possible.")
    with right:
        export.table(
            "Classes found",
            classes if len(splits) > 1 else classes[["class_name", "n_images"]],
            hide_index=True,
            height=min(320, 38 + 35 * len(classes)),
            column_config={
                "class_name": st.column_config.TextColumn("Class", width=90),
                "split": st.column_config.TextColumn("Split", width=60),
                "n_images": st.column_config.ProgressColumn(
                    "Images", format="%d", min_value=0, max_value=int(classes["n_images"].max()), width=110
                ),
            },
        )
    for problem in preview.problems:
        with st.expander(plain(problem.message), icon="⚠️"):
            if problem.kind in ("copies", "two_classes"):
                _show_groups(shown, across=problem.kind == "two_classes")
            elif problem.kind == "frames":
                st.button("Take folders as groups", key="take_folders", on_click=_take_folders)
            if problem.items:
                listed = pd.DataFrame({"which": list(problem.items)})
                export.table("Named by a warning", listed, hide_index=True, height=min(200, 36 * len(listed) + 40))
            else:
                st.caption("Nothing to list.")


def _show_groups(dataset: Dataset, across: bool) -> None:
    """The largest groups of copies as images, a row each."""
    names = dataset.classes["class_name"].to_numpy()[dataset.image_class_ids()]
    rows = [
        Row(
            f"{len(ids):,} images",
            [Tile(int(i), str(names[i])) for i in ids[:N_IN_GROUP]],
            "" if len(ids) <= N_IN_GROUP else f"the first {N_IN_GROUP}",
        )
        for ids in largest_groups(dataset, N_GROUPS, across)
    ]
    task_rows(dataset, rows, key=f"groups_{across}", tile_px=84)


def _take_folders() -> None:
    st.session_state["groups"] = "folder"


def _sample_ids(dataset: Dataset) -> list[int]:
    """Up to N_SAMPLES images, taking turns over the classes; second images of a group come last."""
    groups = dataset.image_groups()
    images = pd.DataFrame({"class_id": dataset.image_class_ids()})
    images["again"] = False if groups is None else pd.Series(groups).duplicated()
    images["turn"] = images.groupby(["again", "class_id"]).cumcount()
    return images.sort_values(["again", "turn"], kind="stable").index[:N_SAMPLES].tolist()


# 2. A benchmark's images, or what the classes mean


def _benchmark(preview: Preview) -> str:
    """The benchmark whose images these are, "" for classes of one's own."""
    setting = Setting(
        "like",
        "Are these the images of a benchmark?",
        "Benchmarks come as class tables without images. Folders named by its classes or by WordNet ids become its "
        "images: its ids, splits and taxonomy are kept.",
        "choice",
        MY_OWN,
        choices={MY_OWN: MY_OWN, **{name: entry.title for name, entry in ENTRIES.items()}},
    )
    like = controls.pick(setting)
    return "" if like == MY_OWN else like


def _attach(preview: Preview, like: str, upload: Path | None) -> None:
    benchmark = shell.load_dataset(like)
    found = published_images.match(benchmark, preview.classes["class_name"])
    n_there = benchmark.n_classes - len(found.missing)
    st.markdown(
        f"**{n_there:,} of {benchmark.n_classes:,} classes** of {plain(benchmark.title)} are among these folders."
    )
    names = benchmark.classes["class_name"].astype(str)
    for title, items in (
        ("classes without images, which will be in no split", names.iloc[list(found.missing)].tolist()),
        ("folders that are no class of it, which are left out", list(found.unknown)),
    ):
        if items:
            with st.expander(f"{len(items):,} {title}"):
                export.table(
                    "Classes and folders without a partner",
                    pd.DataFrame({"which": items}),
                    hide_index=True,
                    height=min(200, 36 * len(items) + 40),
                )
    st.subheader("2 · Save it", anchor=False)
    one, two = st.columns([3, 1], vertical_alignment="bottom")
    name = one.text_input("Name", f"my_{like}", key=f"attach_name_{like}").strip()
    overwrite = False
    if name in image_folders.workspace_dataset_names():
        overwrite = st.checkbox(f"Replace the dataset {plain(name)} that is there already", key="attach_replace")
    if two.button("Attach images", type="primary", key="attach", disabled=not n_there, width="stretch"):
        with st.spinner("Writing the dataset …"):
            made = access.do("save", user_images.attach_found, name, like, preview, overwrite, "", upload)
        _finish(made["name"])


# What the classes mean


def _meanings(preview: Preview) -> tuple[Chosen, pd.DataFrame | str | None, bool]:
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
        return Chosen(), None, True
    if how == NESTED:
        st.caption("Classes in the same folder are related, and closer the further down they part.")
        return Chosen(), FOLDERS, True
    if how == OWN:
        return Chosen(), *_own_taxonomy(names)
    with st.spinner("Looking the class names up in WordNet …"):
        guesses = _guesses(tuple(names))
    return _sense_table(guesses), None, True


def _own_taxonomy(names: list[str]) -> tuple[pd.DataFrame | None, bool]:
    st.caption("A CSV with the columns child and parent. Every class must be in it, and everything below one root.")
    file = st.file_uploader("Taxonomy CSV", type="csv", key="taxonomy_csv")
    if file is None:
        return None, False
    try:
        edges = _edges(file.getvalue())
        taxonomy_from_edges(edges, names)
    except FsvizError as error:
        st.error(plain(str(error)), icon="⚠️")
        return None, False
    st.success(f"{len(edges):,} links read; every class has its place.", icon="🌳")
    return edges, True


def _edges(content: bytes) -> pd.DataFrame:
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(content)
        file.flush()
        return tables.read_edges(file.name)


@remember(most=8)
def _guesses(names: tuple[str, ...]) -> list[SenseGuess]:
    return guess_senses(names)


def _sense_table(guesses: list[SenseGuess], now: pd.DataFrame | None = None) -> Chosen:
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
        st.caption(f"{len(other.candidates)} meanings of “{plain(word.strip())}” can now be chosen below.")
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
        column_order=("class", "meaning", "doubt", "says"),  # a narrow window shows the doubt, and scrolls to the gloss
        key=key,
        column_config={
            "class": st.column_config.TextColumn("Class", width=110),
            "meaning": st.column_config.SelectboxColumn(
                "Meaning (click to change, type to search)",
                options=[NO_SENSE, *sorted(labels.values())],
                required=True,
                width=270,
            ),
            "says": st.column_config.TextColumn("In WordNet's words", width=300),
            "doubt": st.column_config.TextColumn("Worth a look because", width=200),
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
    return Chosen({name: found[name] for name in start}, changed)


def _sense_label(sense: Any) -> str:
    return f"{sense.name} · {' › '.join(sense.path[-4:-1])} ({sense.synset_id})"


# 3. Save


def _meaning(dataset: Dataset) -> None:
    """What the classes of a dataset of one's own mean, to be corrected after it was saved."""
    st.subheader(f"What do the classes of {plain(dataset.title)} mean?", anchor=False)
    if dataset.name not in image_folders.workspace_dataset_names():
        st.info("Meanings can be changed for datasets of your own. Pick one in the sidebar.", icon="🧩")
        return
    access.deny("save")
    now = user_images.meanings(dataset)
    guesses = _guesses(tuple(now["class"]))
    if not (now["synset"] != "").any():
        now = None
        if dataset.taxonomy is not None:
            st.info(
                "The taxonomy comes from your folders or file. Saving meanings here puts WordNet's in its place.",
                icon="🌳",
            )
    chosen = _sense_table(guesses, now)
    if st.button("Save meanings", type="primary", key="save_meanings", disabled=now is not None and not chosen.changed):
        given = {name: chosen.senses[name] for name in chosen.changed}
        access.do("save", user_images.correct, dataset.name, given)
        shell.notice(f"Saved. {many(len(given), 'meaning')} changed; images, features and runs stay.")
        st.rerun()
    st.caption("Runs that were made before keep the taxonomy of their time.")


def _save(preview: Preview, senses: Chosen, edges: pd.DataFrame | str | None, upload: Path | None, ready: bool) -> None:
    one, two, three = st.columns([2, 2, 1], vertical_alignment="bottom")
    suggested = re.sub(r"[^A-Za-z0-9_.+=-]+", "_", preview.root.name).strip("._-") or "my_images"
    if upload is not None and preview.root == upload:
        suggested = "my_images"
    name = one.text_input("Name", suggested, key="new_name", help="Letters, digits and . _ + = - only.").strip()
    title = two.text_input("Title", "", key="new_title", placeholder=name).strip()
    overwrite = False
    if name in image_folders.workspace_dataset_names():
        overwrite = st.checkbox(f"Replace the dataset {plain(name)} that is there already", key="replace")
        if edges is None and (kept := user_images.corrections(name, preview.classes["class_name"].tolist())):
            st.caption(f"Meanings that you chose for it before stay, where you choose none here: {len(kept):,}.")
    if three.button("Save dataset", type="primary", key="save", disabled=not ready, width="stretch"):
        with st.spinner("Writing the dataset …"):
            made = access.do(
                "save",
                user_images.save,
                name,
                preview,
                senses.senses,
                edges,
                title,
                overwrite=overwrite,
                upload=upload,
                corrected=senses.changed,
            )
        _finish(made.name)
    st.caption(
        f"The table is written to {plain(str(workspace.folder('datasets')))}; images are not copied, except uploads."
    )


def _finish(name: str) -> None:
    """Shows what was saved; the fields start empty next time."""
    for key in ("preview", "fetched"):
        st.session_state.pop(key, None)
    st.session_state["added"] = name
    st.session_state["add_turn"] = st.session_state.get("add_turn", 0) + 1
    shell.choose_dataset(name)
    st.rerun()


def _saved(dataset: Dataset) -> None:
    st.success(
        f"**{plain(dataset.title)}** is saved: {dataset.n_classes:,} classes, {dataset.n_images or 0:,} images"
        f"{', with a taxonomy' if dataset.taxonomy is not None else ''}.",
        icon="✅",
    )
    for note in dataset.notes:
        st.caption(plain(note))
    _extract(dataset)
    if st.button("Add another dataset", icon="➕", key="another"):
        st.session_state.pop("added", None)
        st.rerun()


def _doors(dataset: Dataset) -> None:
    st.markdown("**Go on with this dataset**")
    with st.container(horizontal=True):
        for page in shell.pages()[1:-1]:
            st.page_link(page.file, label=page.label, icon=page.icon, query_params=shell.link(dataset))


# Features


def _extract(dataset: Dataset) -> None:
    st.subheader(f"Let a backbone look at {plain(dataset.title)}", anchor=False)
    asked, engine = st.session_state.pop("extract_asked", (None, None))
    if asked is not None:  # said before anything that takes time
        with st.status(
            f"Queued: {plain(title_of(asked['backbone']))} on {plain(dataset.title)}. Loading the backbone …"
        ):
            access.do("run", jobs.submit, asked, engine)
        st.rerun()
    if not dataset.has_pixels:
        st.info(
            f"{plain(dataset.title)} has no images here, so features cannot be extracted. Pick another dataset in the "
            "sidebar, or add your own copy of the images.",
            icon="🧩",
        )
        return
    st.caption(
        "A backbone is a trained image network; its features are the list of numbers it makes of every image. "
        "Methods and measures work on them. Attributes such as brightness are read from the pixels on the way."
    )
    rows = extraction.choices(dataset)
    there = [row["backbone"] for row in rows if row["extracted"]]
    if there:
        st.success(f"Features are there under {plain(', '.join(map(title_of, there)))}.", icon="✅")
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    names = [row["backbone"] for row in rows]
    warnings = {row["backbone"]: row["warning"] for row in rows}
    backbone = left.selectbox(
        "Backbone",
        names,
        format_func=title_of,
        key="extract_with",
        accept_new_options=True,
        help="Or type the name of any timm model or open_clip tower; those are downloaded when there is internet.",
    )
    if warnings.get(backbone):
        st.caption(f"⚠️ {plain(title_of(backbone))}: {plain(warnings[backbone])}.")
    run = _latest_run(dataset.name)
    active = run is not None and run.active
    spec: extraction.Spec = {"study": "extraction", "dataset": dataset.name, "backbone": backbone}
    if weights := _checkpoint():
        spec["checkpoint"] = weights
    right.button(
        "Extract features",
        key="extract",
        type="primary",
        disabled=active,
        width="stretch",
        on_click=_ask_to_extract,
        args=(spec, run_panel.where("extract")),
    )
    st.caption(f"Runs on {plain(extraction.device_in_words())}, in the background: you may close this page.")
    if run is not None:
        if run.active:
            _progress(run.id)
        else:
            _ended(run)
    _doors(dataset)


def _checkpoint() -> str:
    """Weights of one's own for the backbone, "" where none are given."""
    if not access.may("upload"):
        return ""
    with st.expander("Weights of your own (a checkpoint)"):
        st.caption("Tensors only: safetensors, or a torch file of a state dict. The backbone must be of the same kind.")
        file = st.file_uploader("Checkpoint file", [ending[1:] for ending in uploads.WEIGHTS], key="checkpoint_file")
        _say_limit("the file")
        path = ""
        if access.may("paths"):
            path = st.text_input("or its path", key="checkpoint_path", placeholder="/home/you/resnet12.pth").strip()
        if file is not None:
            return str(access.do("upload", uploads.keep_weights, file))
        return access.path(path) if path else ""


def _ask_to_extract(spec: extraction.Spec, engine: jobs.Engine) -> None:
    st.session_state["extract_asked"] = spec, engine


def _latest_run(name: str) -> jobs.Run | None:
    return next((run for run in jobs.list_runs("extraction") if run.spec.get("dataset") == name), None)


@st.fragment(run_every=1.0)
@shell.sentences()
def _progress(run_id: str) -> None:
    try:
        run = jobs.status(run_id)
    except FsvizError:  # it was deleted elsewhere
        st.rerun()
    if not run.active:
        st.rerun()
    summary = run.summary or {}
    total, done = int(run.spec.get("n_images") or 0), int(summary.get("n_images") or 0)
    speed = done / run.seconds if run.seconds else None
    told = f"{plain(title_of(str(run.spec.get('backbone'))))}: {done:,} of {total:,} images"
    if speed:
        told += f", {speed:,.1f} per second, about {_duration((total - done) / speed)} left"
    elif run.state == "queued":
        told += ", waiting for a free worker"
    elif run.started is not None:
        told += f", {_duration(time.time() - run.started)} so far"
    left, right = st.columns([5, 1], vertical_alignment="center")
    left.progress(min(1.0, done / total) if total else run.share_done, told)
    if right.button("Cancel", key="cancel_extraction", width="stretch"):
        access.do("run", jobs.cancel, run_id)
        st.rerun()


def _ended(run: jobs.Run) -> None:
    summary = run.summary or {}
    backbone = plain(title_of(str(run.spec.get("backbone"))))
    if run.state == "finished":
        skipped = summary.get("skipped") or []
        st.caption(
            f"Last extraction: {summary.get('n_images', 0):,} images under {backbone}, {summary.get('dims') or 0:,} "
            f"numbers each, in {_duration(run.seconds)}; {len(skipped):,} images could not be read."
            + (f" They are {plain(summary['precision'])}." if summary.get("precision") else "")
        )
        if skipped:
            with st.expander("Images that could not be read", icon="⚠️"):
                export.table("Images that could not be read", pd.DataFrame(skipped), hide_index=True)
        return
    st.warning(f"The extraction under {backbone} was {plain(run.state)}. {plain(run.error or '')}", icon="⚠️")
    if run.resumable and st.button("Go on where it stopped", key="resume_extraction"):
        access.do("run", jobs.resume, run.id)
        st.rerun()


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )


def _import() -> None:
    st.subheader("Features that you have already", anchor=False)
    if not access.may("paths"):
        access.deny("paths")
        return
    st.caption(
        "npz or npy with labels, easyfsl parquet (embedding, class_name), HDF5 (all_feats, all_labels), or a torch "
        "file of tensors. Pickles are refused, because opening one can run any code. To join a dataset that is here, "
        "give its name: rows find their images by a column or array of paths (path, image) or of image ids."
    )
    path = st.text_input("File of features", key="features_file", placeholder="/home/you/features.npz").strip()
    access.say_folders()
    one, two, three = st.columns(3, vertical_alignment="bottom")
    labels = one.text_input("File of labels, or of paths and labels (for .npy)", key="labels_file").strip()
    likes = ["(none)", *(n for n in datasets.names() if n not in ("demo", "digits"))]
    like = two.selectbox(
        "Classes of", likes, key="like", format_func=lambda n: n if n == "(none)" else shell.dataset_title(n)
    )
    parent = None if like == "(none)" else shell.load_dataset(like)
    splits = ["(every class)", *(parent.splits if parent else ())]
    split = three.selectbox("Numeric labels count through", splits, key="like_split", disabled=parent is None)
    four, five, six = st.columns([2, 2, 1], vertical_alignment="bottom")
    name = four.text_input("Name of the dataset", "my_features", key="features_name").strip()
    backbone = five.text_input("What the features are called", "imported", key="features_backbone").strip()
    replace = st.checkbox("Replace a dataset of the same name", key="features_replace")
    if six.button("Import", type="primary", key="import", disabled=not path, width="stretch"):
        with st.spinner("Reading the features …"):
            st.session_state["imported"] = access.do(
                "save",
                user_images.import_features,
                name,
                access.path(path),
                labels=access.path(labels) if labels else None,
                like=parent,
                split=None if split == "(every class)" else split,
                backbone=backbone,
                replace=replace,
            )
    made = st.session_state.get("imported")
    if made and made["dataset"] in datasets.names():  # it may have been removed since
        st.success(
            f"**{plain(made['dataset'])}**: {made['n_images']:,} images of {made['n_classes']:,} classes with "
            f"{made['dims']:,} numbers each, as {plain(made['backbone'])}.",
            icon="✅",
        )
        for note in filter(None, (made["joined"], *made["notes"])):
            st.caption(plain(note))
        _doors(shell.load_dataset(made["dataset"]))
