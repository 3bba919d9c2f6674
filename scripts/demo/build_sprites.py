"""Draw the demo's emoji sprites once and pack them, with their licences, into data/demo.

    python scripts/demo/build_sprites.py [--source FOLDER_WITH_TGZ] [--sheet FILE.png]

Without --source the seven icon sets are fetched with `npm pack`. Writes sprites.parquet (one WebP a sprite),
licences/ and ATTRIBUTION.md.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pandas as pd
import resvg_py
from PIL import Image

DEMO = Path(__file__).resolve().parents[2] / "data" / "demo"
SIZE = 160  # pixels of a sprite's longer side

# style -> (family, title, copyright line). Families share drawings and must not straddle a split by style.
STYLES = {
    "noto": ("noto", "Noto Emoji", "Copyright Google LLC and the Noto Emoji contributors"),
    "noto-v1": ("noto", "Noto Emoji (v1)", "Copyright Google LLC and the Noto Emoji contributors"),
    "fxemoji": ("fxemoji", "Firefox OS Emoji", "Copyright Mozilla Foundation"),
    "fluent-emoji": ("fluent", "Fluent Emoji", "Copyright (c) Microsoft Corporation"),
    "fluent-emoji-flat": ("fluent", "Fluent Emoji Flat", "Copyright (c) Microsoft Corporation"),
    "twemoji": ("twemoji", "Twitter Emoji", "Copyright Twitter, Inc and other contributors"),
    "emojione": ("emojione", "Emoji One (v2, colored)", "Copyright Emoji One / EmojiTwo contributors"),
}

MIT_TEXT = """MIT License

Copyright (c) Microsoft Corporation.

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE
"""


def fetch(source: Path | None, folder: Path) -> dict[str, dict]:
    """The icon sets by style: package.json, info.json and icons.json of each npm package."""
    packs = {}
    for style in STYLES:
        if source is None:
            name = f"@iconify-json/{style}"
            subprocess.run(["npm", "pack", name, "--silent"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        archives = [p for p in (source or folder).glob("iconify-json-*.tgz") if _style_of(p) == style]
        if not archives:
            raise SystemExit(f"No archive of @iconify-json/{style} in {source or folder}.")
        with tarfile.open(sorted(archives)[-1]) as archive:
            packs[style] = {
                part: json.load(archive.extractfile(f"package/{part}.json")) for part in ("package", "info", "icons")
            }
    return packs


def _style_of(archive: Path) -> str:
    return archive.name.removeprefix("iconify-json-").rsplit("-", 1)[0]


def svg_of(icons: dict, name: str) -> str | None:
    """The SVG of one icon, following aliases; None if the set does not have it."""
    for _ in range(5):
        if name in icons["icons"]:
            break
        if name not in icons.get("aliases", {}):
            return None
        name = icons["aliases"][name]["parent"]
    icon = icons["icons"][name]
    width, height = (icon.get(k, icons.get(k, 16)) for k in ("width", "height"))
    box = f"{icon.get('left', 0)} {icon.get('top', 0)} {width} {height}"
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="{box}" width="{width}" height="{height}">{icon["body"]}</svg>'
    )


def draw(svg: str) -> Image.Image:
    """The icon trimmed to what is drawn, its longer side SIZE pixels."""
    large = Image.open(
        io.BytesIO(bytes(resvg_py.svg_to_bytes(svg_string=svg, width=3 * SIZE, skip_system_fonts=True)))
    ).convert("RGBA")
    trimmed = large.crop(large.getchannel("A").point(lambda a: 255 * (a > 12)).getbbox())
    factor = SIZE / max(trimmed.size)
    shape = tuple(max(1, round(side * factor)) for side in trimmed.size)
    return trimmed.convert("RGBa").resize(shape, Image.Resampling.LANCZOS).convert("RGBA")


def as_webp(image: Image.Image, quality: int = 88) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=quality, method=6, alpha_quality=100)
    return buffer.getvalue()


def sprites(packs: dict[str, dict]) -> pd.DataFrame:
    """One row a sprite: class_name, style, family, pose (whole or face), icon, webp."""
    rows = []
    with open(DEMO / "concepts.csv", newline="", encoding="utf-8") as file:
        concepts = list(csv.DictReader(file))
    for concept in concepts:
        heads = set(concept["head_only"].split())
        for column in ("icons", "face_icons"):
            for icon in concept[column].split():
                for style in STYLES:
                    if style in concept["skip"].split():
                        continue
                    # Firefox OS names its icons differently; the name after the slash is the one there.
                    name = icon.split("/")[-1 if style == "fxemoji" else 0]
                    svg = svg_of(packs[style]["icons"], name)
                    if svg is None:
                        continue
                    only_head = column == "face_icons" or bool(heads & {"all", style, f"{style}:{name}"})
                    rows.append(
                        {
                            "class_name": concept["class_name"],
                            "style": style,
                            "family": STYLES[style][0],
                            "pose": "face" if only_head else "whole",
                            "icon": name,
                            "webp": as_webp(draw(svg)),
                        }
                    )
    table = pd.DataFrame(rows)
    # The same drawing under two names (a set without a whole-body icon aliases the head) counts once.
    return table.drop_duplicates(["class_name", "style", "webp"]).reset_index(drop=True)


def write_licences(packs: dict[str, dict]) -> None:
    folder = DEMO / "licences"
    folder.mkdir(exist_ok=True)
    lines = [
        "# Where the demo's drawings come from",
        "",
        "The sprites in `sprites.parquet` are emoji drawings of seven openly licensed sets, rasterised, trimmed and",
        f"scaled to {SIZE} pixels by `scripts/demo/build_sprites.py`; composed images may also turn, blur, darken,",
        "cover and tint them. The backgrounds in `backgrounds.parquet` are drawn by this project's",
        "`scripts/demo/build_backgrounds.py`. The taxonomy in `taxonomy.csv` is from WordNet 3.0, Princeton University",
        "(`licences/WordNet.txt`).",
        "",
        "| style | set | by | licence | npm package | text |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for style, (_, title, holder) in STYLES.items():
        info, package = packs[style]["info"], packs[style]["package"]
        licence, author = info["license"], info["author"]
        spdx = licence["spdx"]
        text = folder / f"{style}.txt"
        if spdx == "MIT":
            text.write_text(MIT_TEXT, encoding="utf-8")
        else:
            full = (
                "; the full text is in Apache-2.0.txt in this folder and" if spdx == "Apache-2.0" else "; the text is"
            )
            text.write_text(
                f"{title}\n{holder}\n{author['url']}\n\nLicensed under {licence['title']} ({spdx})"
                f"{full} at\n{licence['url']}\n"
                "Changes made: rasterised, trimmed and scaled; composed on backgrounds, turned, blurred, shaded.\n",
                encoding="utf-8",
            )
        by = holder.removeprefix("Copyright ").removeprefix("(c) ")
        lines.append(
            f"| {style} | [{title}]({author['url']}) | {by} | {spdx} "
            f"| {package['name']} {package['version']} | `licences/{style}.txt` |"
        )
    (DEMO / "ATTRIBUTION.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def contact_sheet(table: pd.DataFrame, path: Path, px: int = 48) -> None:
    names = list(dict.fromkeys(table["class_name"]))
    wide = int(table.groupby("class_name").size().max())
    sheet = Image.new("RGB", (px * wide, px * len(names)), "white")
    for row, name in enumerate(names):
        for column, webp in enumerate(table.loc[table["class_name"] == name, "webp"]):
            sprite = Image.open(io.BytesIO(webp)).convert("RGBA")
            sprite.thumbnail((px - 4, px - 4))
            sheet.paste(sprite, (column * px + 2, row * px + 2), sprite)
    sheet.save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, help="folder with the packed npm archives (default: fetch them)")
    parser.add_argument("--sheet", type=Path, help="also write a contact sheet here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        packs = fetch(arguments.source, Path(folder))
    table = sprites(packs)
    table.to_parquet(DEMO / "sprites.parquet", index=False, compression="none")
    write_licences(packs)
    per_class = table.groupby("class_name")["style"].nunique()
    print(f"{len(table)} sprites of {len(per_class)} concepts; styles a concept {per_class.min()} to {per_class.max()}")
    print(f"{(DEMO / 'sprites.parquet').stat().st_size / 1e6:.2f} MB")
    if arguments.sheet:
        contact_sheet(table, arguments.sheet)


if __name__ == "__main__":
    main()
