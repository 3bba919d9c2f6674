"""Sources of images: a path on this computer, an upload or a download."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from fsviz.datasets import archives, image_folders, uploads
from fsviz.datasets.images import SUFFIXES
from fsviz.datasets.preview import Preview
from fsviz.errors import FsvizError
from fsviz.ui.parts import access, shell
from fsviz.ui.parts.shell import escape
from fsviz.user import images as user_images
from fsviz.user import torchvision_sets

FOLDER, UPLOAD, DOWNLOAD = "Path", "Upload", "Download"
LEVELS = {0: "the image's folder", 1: "first folder", 2: "second folder", 3: "third folder"}
GROUPED = {
    "auto": "duplicates",
    "folder": "duplicates and folders (videos)",
    "none": "nothing",
}


def from_path() -> tuple[Preview | None, Path | None]:
    path = st.text_input(
        "Path of a folder, a CSV table or an easyfsl JSON spec",
        key=f"path_{st.session_state.get('add_turn', 0)}",
        placeholder="/home/you/pictures/pets",
        help="Images are not copied.",
    )
    access.say_folders()
    with st.expander("Options for tables and folders"):
        images_column, levels_column, groups_column = st.columns(3)
        images = images_column.text_input("Images folder (start of the paths in a table)", key="images_folder")
        first = levels_column.selectbox("Top-level folders", image_folders.FIRST_LEVELS, key="first_level")
        level = levels_column.selectbox(
            "Class folder",
            tuple(LEVELS),
            format_func=LEVELS.__getitem__,
            key="class_level",
            help="Counted from the root, or from the split folder. Images in deeper folders belong to the class.",
        )
        with groups_column:
            groups = _pick_groups()
        parts = {}
        for column, part in zip(st.columns(5), ("path", "class", "split", "context", "group")):
            parts[part] = column.text_input(f"Column of the {escape(part)}", key=f"column_{part}", placeholder="auto")
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
        with uploads.delete_if_unusable(folder):
            return _preview_of("upload", str(folder), groups=groups), folder
    shell.command_popover(user_images.command(allowed, options))
    return _preview_of("paths", allowed, **options), None


def _pick_groups() -> str:
    return st.selectbox(
        "Group images by",
        tuple(GROUPED),
        format_func=GROUPED.__getitem__,
        key="groups",
        help="Groups never straddle support and query, so duplicates cannot leak. A column group of a table is used "
        "as it is.",
    )


def from_upload() -> tuple[Preview | None, Path | None]:
    files = st.file_uploader(
        "A zip with a folder per class (or with split folders), or images with a CSV of their classes",
        type=["zip", "csv", *sorted(ending[1:] for ending in SUFFIXES)],
        accept_multiple_files=True,
        key=f"zip_{st.session_state.get('add_turn', 0)}",
    )
    show_upload_limit("a folder")
    if not files:
        return None, None
    groups = _pick_groups()
    with st.spinner("Checking and unpacking the upload …"):
        folder, table = access.do("upload", uploads.collect, files)
    with uploads.delete_if_unusable(folder):
        if table is not None:
            return _preview_of("upload", str(table), groups=groups, images=str(table.parent)), folder
        return _preview_of("upload", str(folder), groups=groups), folder


def show_upload_limit(source: str) -> None:
    """Shows the size limit of uploaded files, and alternatives for larger ones."""
    most = f"A file may have up to {st.get_option('server.maxUploadSize'):,} MB."
    if access.can("paths"):
        st.caption(f"{most} For more, give the path of {source} on this computer instead.")
    else:
        st.caption(f"{most} For more, ask whoever runs this server, or use smaller images.")


def from_download() -> Preview | None:
    st.caption("Downloaded by torchvision: needs internet and some gigabytes of disk.")
    name = st.selectbox("Dataset", torchvision_sets.names(), key="torchvision")
    if st.button("Download", key="download") or st.session_state.get("fetched") == name:
        st.session_state["fetched"] = name
        return _preview_of("download", f"torchvision:{name}")
    return None


def _preview_of(action: str, path: str, **options: Any) -> Preview | None:
    """The preview of a path, kept until the path, the options or a request to scan again change."""
    request = (path, repr(sorted(options.items(), key=str)))
    previous = st.session_state.get("preview")
    if previous is not None and previous[0] == request:
        return previous[1]
    if st.session_state.get("stopped") == request:
        st.info("Scan stopped.", icon="⏹️")
        if st.button("Scan again", key="again"):
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
                done / max(total, 1), f"{escape(message.capitalize())}: {done:,} of {total:,}"
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


def show_layouts() -> None:
    """Layouts of folders and tables that can be read, shown while no source is named."""
    st.markdown("**Supported layouts**")
    folder_column, table_column, spec_column = shell.responsive_columns("forms", 3)
    folder_column.caption("A folder per class; split folders; class folders with context folders")
    folder_column.code(
        "pets/\n  dog/  1.jpg  2.jpg\n  cat/  1.jpg  2.jpg\n\npets/\n  train/ dog/ ...\n  test/  cat/ ...\n\n"
        "pets/\n  dog/  grass/ ...  snow/ ...",
        language=None,
    )
    table_column.caption("A CSV table; other columns become attributes")
    table_column.code(
        "path,class,split,context,blur\na/1.jpg,dog,train,grass,0.1\na/2.jpg,cat,test,sofa,0.7\n\n"
        "or train.csv, val.csv, test.csv\n(filename,label) next to images/\n\n"
        "or metadata.csv, metadata.jsonl\n(file_name,label) of Hugging Face",
        language=None,
    )
    spec_column.caption("An easyfsl spec, or a folder with train.json, val.json, test.json")
    spec_column.code(
        '{"class_names": ["dog", "cat"],\n "class_roots": ["./pets/dog",\n                 "./pets/cat"]}',
        language=None,
    )
