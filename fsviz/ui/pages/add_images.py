"""The Add images page: from a folder to a dataset with a taxonomy and features, in three steps.

1. say where the images are and look at what was found
2. say what the classes mean
3. save, then let a backbone look at the images
"""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from fsviz import datasets, jobs, workspace
from fsviz.datasets import folders, tables, uploads
from fsviz.datasets.copies import largest_groups
from fsviz.datasets.preview import Preview
from fsviz.errors import FsvizError
from fsviz.records import Dataset
from fsviz.studies import extraction, own_images, torchvision_sets
from fsviz.taxonomy.senses import FOLDERS, Guess, guess_senses, taxonomy_from_edges
from fsviz.ui.parts import access, shell
from fsviz.ui.parts.cached import remember
from fsviz.ui.parts.image_wall import Row, Tile, gallery, task_rows
from fsviz.ui.parts.shell import plain

ADD, EXTRACT, IMPORT = "Add images", "Extract features", "Import features"
FOLDER, UPLOAD, DOWNLOAD = "A folder or table on this computer", "A zip file to upload", "A dataset to download"
WORDNET, NESTED, OWN, NONE = "WordNet", "My folders", "My own taxonomy", "No taxonomy"
NO_SENSE = "(none: far from every other class)"
N_SAMPLES, N_GROUPS, N_IN_GROUP = 24, 5, 8
GROUPED = {
    "auto": "copies of a picture",
    "folder": "copies, and images of one folder (videos)",
    "none": "none: do not look",
}


def show(dataset: Dataset) -> None:
    if not access.may("save"):
        st.info(access.reason("save"), icon="🔒")
        return
    choice = st.segmented_control(
        "What do you want to do?",
        (ADD, EXTRACT, IMPORT),
        default=ADD,
        key="do",
        bind="query-params",
        required=True,
        label_visibility="collapsed",
    )
    if choice == EXTRACT:
        _extract(dataset)
    elif choice == IMPORT:
        _import()
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
        preview, upload = _from_path(), None
    if preview is None:
        _layouts()
        _mine()
        return
    by_size = st.checkbox(
        "Split the classes by size",
        key="by_size",
        help="As MetaCoCo does, whatever the folders say: the 64% of classes with most images train, the next 20% "
        "test, the rest is val.",
    )
    preview = own_images.with_splits_by_size(preview) if by_size else preview
    _found(preview)
    st.subheader("2 · What do the classes mean?", anchor=False)
    senses, edges, ready = _meanings(preview)
    st.subheader("3 · Save it", anchor=False)
    _save(preview, senses, edges, upload, ready)


def _from_path() -> Preview | None:
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
        first = two.selectbox("The first folders are", folders.FIRST_LEVELS, key="first_level")
        with three:
            groups = _groups_choice()
        parts = {}
        for column, part in zip(st.columns(5), ("path", "class", "split", "context", "group")):
            parts[part] = column.text_input(f"Column of the {plain(part)}", key=f"column_{part}", placeholder="auto")
    if not path.strip():
        return None
    options = {
        "images": access.path(images.strip()) if images.strip() else None,
        "first_level": first,
        "groups": groups,
        "columns": {part: name for part, name in parts.items() if name},
    }
    return _look("paths", access.path(path.strip()), **options)


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
    archive = st.file_uploader(
        "A zip of one folder per class (or of splits with class folders)",
        type="zip",
        key=f"zip_{st.session_state.get('add_turn', 0)}",
    )
    if archive is None:
        return None, None
    groups = _groups_choice()
    with st.spinner("Checking and unpacking the archive …"):
        folder = access.do("upload", uploads.unpack, archive)
    with uploads.kept_if_usable(folder):
        return _look("upload", str(folder), groups=groups), folder


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
            own_images.find,
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
        "or train.csv, val.csv, test.csv\n(filename,label) beside images/",
        language=None,
    )
    three.caption("An easyfsl spec, or a folder with train.json, val.json, test.json")
    three.code(
        '{"class_names": ["dog", "cat"],\n "class_roots": ["./pets/dog",\n                 "./pets/cat"]}',
        language=None,
    )


def _mine() -> None:
    """The datasets that were added before."""
    names = folders.workspace_dataset_names()
    if not names:
        return
    st.subheader("Added before", anchor=False)
    for name in names:
        with st.container(horizontal=True, vertical_alignment="center"):
            try:
                mine = shell.load_dataset(name)
                told = f"{mine.n_classes:,} classes, {mine.n_images or 0:,} images"
                told += ", features" if mine.has_features else ", no features yet"
                st.markdown(f"**{plain(mine.title)}** · {told}")
                st.page_link("pages/1_Gallery.py", label="Look", icon="🖼️", query_params=shell.link(mine))
            except FsvizError as error:
                st.markdown(f"**{plain(name)}** · {plain(str(error))}")
            with st.popover("Remove"):
                st.caption("The dataset leaves fsviz. Your own image folder is not touched.")
                st.button(f"Remove {plain(name)}", key=f"remove_{name}", on_click=_remove, args=(name,))


def _remove(name: str) -> None:
    try:
        access.do("delete", folders.remove_dataset, name)
    except FsvizError as error:
        shell.notice(str(error))
    if st.query_params.get("dataset") == name:
        shell.choose_dataset(shell.DEFAULT_DATASET)


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
    shown = folders.preview_dataset("preview", preview)
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
        st.dataframe(
            classes if len(splits) > 1 else classes[["class_name", "n_images"]],
            hide_index=True,
            height=320,
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
                st.dataframe(listed, hide_index=True, height=min(200, 36 * len(listed) + 40))
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


# 2. What the classes mean


def _meanings(preview: Preview) -> tuple[dict[str, str], pd.DataFrame | str | None, bool]:
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
        default=NESTED if nested == len(names) else WORDNET,
        key="taxonomy_from",
        required=True,
        label_visibility="collapsed",
    )
    if how == NONE:
        st.caption("Without a taxonomy, tasks can still be drawn uniformly or by distances between features.")
        return {}, None, True
    if how == NESTED:
        st.caption("Classes in the same folder are related, and closer the further down they part.")
        return {}, FOLDERS, True
    if how == OWN:
        return _own_taxonomy(names)
    with st.spinner("Looking the class names up in WordNet …"):
        guesses = _guesses(tuple(names))
    return _sense_table(guesses, preview), None, True


def _own_taxonomy(names: list[str]) -> tuple[dict[str, str], pd.DataFrame | None, bool]:
    st.caption("A CSV with the columns child and parent. Every class must be in it, and everything below one root.")
    file = st.file_uploader("Taxonomy CSV", type="csv", key="taxonomy_csv")
    if file is None:
        return {}, None, False
    try:
        edges = _edges(file.getvalue())
        taxonomy_from_edges(edges, names)
    except FsvizError as error:
        st.error(plain(str(error)), icon="⚠️")
        return {}, None, False
    st.success(f"{len(edges):,} links read; every class has its place.", icon="🌳")
    return {}, edges, True


def _edges(content: bytes) -> pd.DataFrame:
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(content)
        file.flush()
        return tables.read_edges(file.name)


@remember(most=8)
def _guesses(names: tuple[str, ...]) -> list[Guess]:
    return guess_senses(names)


def _sense_table(guesses: list[Guess], preview: Preview) -> dict[str, str]:
    """A table with one meaning per class, to be corrected by choosing another one."""
    senses = {sense.synset_id: sense for guess in guesses for sense in guess.candidates}
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
    table = pd.DataFrame(
        {
            "class": [guess.class_name for guess in guesses],
            "meaning": [labels.get(guess.synset_id, NO_SENSE) for guess in guesses],
            "doubt": [guess.doubt for guess in guesses],
            "says": [guess.sense.gloss if guess.sense else "" for guess in guesses],
        }
    )
    doubtful = int((table["doubt"] != "").sum())
    # The editor keeps changes by row: rows stand in the same order as long as the same images are looked at.
    order = table["doubt"].eq("").sort_values(kind="stable").index
    edited = st.data_editor(
        table.loc[order],
        hide_index=True,
        height=min(36 * len(table) + 40, 420),
        disabled=("class", "doubt", "says"),
        key=f"senses_{hash(tuple(table['class']))}",
        column_config={
            "class": st.column_config.TextColumn("Class", width="small"),
            "meaning": st.column_config.SelectboxColumn(
                "Meaning (click to change, type to search)",
                options=[NO_SENSE, *sorted(labels.values())],
                required=True,
                width=420,
            ),
            "doubt": st.column_config.TextColumn("Worth a look because", width=240),
            "says": st.column_config.TextColumn("The guess in WordNet's words", width="large"),
        },
    )
    st.caption(f"{doubtful:,} of {len(table):,} guesses are worth a look; they stand at the top.")
    return {row["class"]: synsets.get(row["meaning"], "") for _, row in edited.iterrows()}


def _sense_label(sense: Any) -> str:
    return f"{sense.name} · {' › '.join(sense.path[-4:-1])} ({sense.synset_id})"


# 3. Save


def _save(
    preview: Preview, senses: dict[str, str], edges: pd.DataFrame | str | None, upload: Path | None, ready: bool
) -> None:
    one, two, three = st.columns([2, 2, 1], vertical_alignment="bottom")
    suggested = re.sub(r"[^A-Za-z0-9_.+=-]+", "_", preview.root.name).strip("._-") or "my_images"
    if upload is not None and preview.root == upload:
        suggested = "my_images"
    name = one.text_input("Name", suggested, key="new_name", help="Letters, digits and . _ + = - only.").strip()
    title = two.text_input("Title", "", key="new_title", placeholder=name).strip()
    overwrite = False
    if name in folders.workspace_dataset_names():
        overwrite = st.checkbox(f"Replace the dataset {plain(name)} that is there already", key="replace")
    if three.button("Save dataset", type="primary", key="save", disabled=not ready, width="stretch"):
        with st.spinner("Writing the dataset …"):
            saved = access.do(
                "save", own_images.save, name, preview, senses, edges, title, overwrite=overwrite, upload=upload
            )
        for key in ("preview", "fetched"):
            st.session_state.pop(key, None)
        st.session_state["added"] = saved.name
        st.session_state["add_turn"] = st.session_state.get("add_turn", 0) + 1  # the fields start empty next time
        shell.choose_dataset(saved.name)
        st.rerun()
    st.caption(
        f"The table is written to {plain(str(workspace.folder('datasets')))}; images are not copied, except uploads."
    )


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
    if not dataset.has_pixels:
        st.info(
            f"{plain(dataset.title)} has no images here, so features cannot be extracted. Pick another dataset in the "
            "sidebar, or add your own copy of the images.",
            icon="🧩",
        )
        return
    st.caption(
        "A backbone is a trained image network; its features are the list of numbers it makes of every image. "
        "Methods and measures work on them."
    )
    rows = extraction.choices(dataset)
    there = [row["backbone"] for row in rows if row["extracted"]]
    if there:
        st.success(f"Features are there under {plain(', '.join(there))}.", icon="✅")
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    names = [row["backbone"] for row in rows]
    warnings = {row["backbone"]: row["warning"] for row in rows}
    backbone = left.selectbox(
        "Backbone",
        names,
        key="extract_with",
        accept_new_options=True,
        help="Or type the name of any timm model or open_clip tower; those are downloaded when there is internet.",
    )
    if warnings.get(backbone):
        st.caption(f"⚠️ {plain(backbone)}: {plain(warnings[backbone])}.")
    run = _latest_run(dataset.name)
    active = run is not None and run.active
    if right.button("Extract features", key="extract", type="primary", disabled=active, width="stretch"):
        with st.spinner("Loading the backbone …"):
            spec: extraction.Spec = {"study": "extraction", "dataset": dataset.name, "backbone": backbone}
            access.do("run", jobs.submit, spec)
        st.rerun()
    st.caption(f"Runs on {plain(extraction.device_in_words())}, in the background: you may close this page.")
    if run is not None:
        if run.active:
            _progress(run.id)
        else:
            _ended(run)
    _doors(dataset)


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
    told = f"{plain(run.spec.get('backbone'))}: {done:,} of {total:,} images"
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
    backbone = plain(run.spec.get("backbone"))
    if run.state == "finished":
        skipped = summary.get("skipped") or []
        st.caption(
            f"Last extraction: {summary.get('n_images', 0):,} images under {backbone}, {summary.get('dims') or 0:,} "
            f"numbers each, in {_duration(run.seconds)}; {len(skipped):,} images could not be read."
            + (f" They are {plain(summary['precision'])}." if summary.get("precision") else "")
        )
        if skipped:
            with st.expander("Images that could not be read", icon="⚠️"):
                st.dataframe(pd.DataFrame(skipped), hide_index=True)
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
    one, two, three = st.columns(3)
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
                own_images.import_features,
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
