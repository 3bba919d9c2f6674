"""The embedded demo, EmojiCoCo: emoji drawings composed on drawn backgrounds, with contexts and attributes.

Every image is drawn on demand from its row in data/demo/images.parquet and two packs of small pictures, with Pillow
alone and no random numbers, so the same row gives the same picture wherever it is drawn. Scripts in scripts/demo
made the packs and the table; data/demo/ATTRIBUTION.md names who drew the emoji.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image, ImageChops, ImageFilter

from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.records import Dataset
from fsviz.shipped import DATA

FOLDER = DATA / "demo"
NATIVE = 224  # pixels per side of an opened image: what the default backbone takes
LARGEST = 1024
ATTRIBUTES = ("style", "family", "pose", "scale", "rotation", "x", "y", "blur", "brightness", "occlusion", "clutter")

# What a drawing looks like in the light of a context: red, green and blue factors.
AMBIENT = {
    "night": (0.50, 0.56, 0.86),
    "underwater": (0.70, 0.93, 1.00),
    "forest": (0.86, 0.96, 0.84),
    "autumn": (1.00, 0.93, 0.84),
    "snow": (0.97, 0.99, 1.00),
    "desert": (1.00, 0.96, 0.86),
    "indoor": (1.00, 0.97, 0.92),
}
# Contexts with ground to throw a shadow on.
GROUND = frozenset({"grass", "snow", "desert", "rock", "autumn", "night", "city", "wood", "indoor", "forest", "road"})
DEFOCUS = 2.9  # blur of a scene behind its object, in pixels of the 320-pixel scene
FRONT_EDGE = 28 / 320  # where the upper edge of a front lies, as a share of a scene's side


def load_demo() -> Dataset:
    """The demo's record: 107 concepts, 14 contexts, WordNet 3.0 taxonomy, images that are drawn on demand."""
    return _dataset()


def open_demo_image(dataset: Dataset, image_id: int, size: int = NATIVE) -> Image.Image:
    """One image of the demo as RGB, `size` pixels per side."""
    return Image.fromarray(compose([image_id], size)[0])


def compose(image_ids: Sequence[int] | np.ndarray, size: int = NATIVE) -> np.ndarray:
    """Images of the demo (n, size, size, 3) uint8, drawn from their rows."""
    if not 8 <= size <= LARGEST:
        raise BadInput(f"The side of a demo image must be 8 to {LARGEST} pixels. Got {size}.")
    recipes = _recipes()
    ids = np.asarray(image_ids, dtype=np.int64).reshape(-1)
    if len(ids) and not (ids.min() >= 0 and ids.max() < len(recipes)):
        raise UnknownName(
            "image", int(ids[(ids < 0) | (ids >= len(recipes))][0]), [], f"The demo has images 0 to {len(recipes) - 1}."
        )
    return compose_rows([recipes[i] for i in ids], size)


def compose_rows(rows: Sequence[dict[str, Any]], size: int = NATIVE) -> np.ndarray:
    """Images (n, size, size, 3) uint8 of rows with the columns of images.parquet."""
    images = np.empty((len(rows), size, size, 3), dtype=np.uint8)
    for k, row in enumerate(rows):
        images[k] = np.asarray(_draw(row, size))
    return images


def hidden_share(row: dict[str, Any], size: int = 96) -> float:
    """The share of the object's own pixels that the second object and the front cover, 0 to 1."""
    object_, left, top = _object(row, size)
    alpha, cover = Image.new("L", (size, size)), Image.new("L", (size, size))
    alpha.paste(object_.getchannel("A"), (left, top))
    if row["second"] >= 0:
        second, second_left, second_top = _second(row, size)
        mask = second.getchannel("A")
        cover.paste(mask, (second_left, second_top), mask)
    if row["front"] >= 0:
        front, edge = _front(row, size, top + object_.height, object_.height)
        mask = front.getchannel("A")
        cover.paste(mask, (0, edge), mask)
    total = np.asarray(alpha, dtype=np.int64).sum()
    return float(np.asarray(ImageChops.multiply(alpha, cover), dtype=np.int64).sum() / max(total, 1))


# ---- drawing one row -----------------------------------------------------------------------------------------------


def _draw(row: dict[str, Any], size: int) -> Image.Image:
    context = row["context"]
    scene = _scene(context, row["scene"])
    side, left, top = row["window"], row["window_x"], row["window_y"]
    picture = scene.resize((size, size), Image.Resampling.BICUBIC, box=(left, top, left + side, top + side))
    if row["mirror"]:
        picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    object_, left, top = _object(row, size)
    _stand(picture, object_, left, top, context)
    if row["second"] >= 0:
        _stand(picture, *_second(row, size), context)
    if row["front"] >= 0:
        front, edge = _front(row, size, top + object_.height, object_.height)
        picture.paste(front, (0, edge), front)
    if row["blur"] > 0:
        picture = picture.filter(ImageFilter.GaussianBlur(row["blur"] * size / 100))
    if row["brightness"] != 1:
        picture = picture.point(_exposure(round(row["brightness"] * 1000)))
    return picture


def _object(row: dict[str, Any], size: int) -> tuple[Image.Image, int, int]:
    """The main object, ready to paste, and its left upper corner."""
    sprite = _fitted(_sprite(row["sprite"]), row["scale"] * size, row["rotation"], row["context"])
    return sprite, round(row["x"] * size - sprite.width / 2), round(row["y"] * size - sprite.height / 2)


def _second(row: dict[str, Any], size: int) -> tuple[Image.Image, int, int]:
    """The second object, of another class, and its left upper corner."""
    sprite = _fitted(_sprite(row["second"]), row["clutter"] * size, 0.0, row["context"])
    return sprite, round(row["second_x"] * size - sprite.width / 2), round(row["second_y"] * size - sprite.height / 2)


def _stand(picture: Image.Image, sprite: Image.Image, left: int, top: int, context: str) -> None:
    """Pastes an object into the picture, on its shadow where there is ground."""
    if context in GROUND:
        shadow = _shadow().resize((max(2, round(sprite.width * 0.95)), max(2, round(sprite.width * 0.22))))
        at = (left + (sprite.width - shadow.width) // 2, top + sprite.height - shadow.height * 2 // 3)
        picture.paste((18, 14, 20), at, shadow)
    picture.paste(sprite, (left, top), sprite)


def _fitted(sprite: Image.Image, longer: float, rotation: float, context: str) -> Image.Image:
    """A sprite with its longer side at `longer` pixels, in the light of the context, turned by degrees."""
    factor = longer / max(sprite.size)
    shape = (max(2, round(sprite.width * factor)), max(2, round(sprite.height * factor)))
    fitted = sprite.resize(shape, Image.Resampling.BILINEAR if factor < 1 else Image.Resampling.BICUBIC)
    if context in AMBIENT:
        fitted = fitted.point(_light(context))
    if rotation:
        fitted = fitted.rotate(rotation, Image.Resampling.BICUBIC, expand=True)
        fitted = fitted.crop(fitted.getchannel("A").getbbox())
    return fitted


def _front(row: dict[str, Any], size: int, bottom: int, height: int) -> tuple[Image.Image, int]:
    """The picture in front of the object, hiding about `cover` of its height from below, and its upper edge."""
    front = _front_picture(row["context"], row["front"])
    edge = min(round(bottom - row["cover"] * height - FRONT_EDGE * size), size - 2)
    tall = max(round(front.height / front.width * size), size - edge)
    return front.resize((size, tall), Image.Resampling.BILINEAR), edge


# ---- the packs, read once ------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _recipes() -> list[dict[str, Any]]:
    return _table("images.parquet").to_dict("records")


@lru_cache(maxsize=1)
def sprite_table() -> pd.DataFrame:
    """One row a sprite: class_name, style, family, pose, icon, webp."""
    return _table("sprites.parquet")


@lru_cache(maxsize=1)
def background_table() -> pd.DataFrame:
    """One row a picture: context, part (scene or front), variant, webp."""
    return _table("backgrounds.parquet")


@lru_cache(maxsize=1)
def _backgrounds() -> dict[tuple[str, str, int], bytes]:
    rows = background_table()
    return {(r.context, r.part, r.variant): r.webp for r in rows.itertuples(index=False)}


@lru_cache(maxsize=1024)
def _sprite(number: int) -> Image.Image:
    return Image.open(io.BytesIO(sprite_table()["webp"].iloc[number])).convert("RGBA")


@cache
def _scene(context: str, variant: int) -> Image.Image:
    """A scene slightly out of focus, as behind an object that a camera looks at."""
    sharp = Image.open(io.BytesIO(_backgrounds()[context, "scene", variant])).convert("RGB")
    return sharp.filter(ImageFilter.GaussianBlur(DEFOCUS))


@cache
def _front_picture(context: str, variant: int) -> Image.Image:
    return Image.open(io.BytesIO(_backgrounds()[context, "front", variant])).convert("RGBA")


@cache
def _light(context: str) -> list[int]:
    factors = [round(f * 100) for f in AMBIENT[context]]
    table = [(level * f + 50) // 100 for f in factors for level in range(256)]
    return [*table, *range(256)]  # alpha stays


@lru_cache(maxsize=1024)
def _exposure(thousandths: int) -> list[int]:
    return [min(255, (level * thousandths + 500) // 1000) for level in range(256)] * 3


@lru_cache(maxsize=1)
def _shadow() -> Image.Image:
    """A soft flat spot, (16, 64) levels of darkness."""
    y, x = np.mgrid[0:16, 0:64]
    distance = ((2 * x - 63) ** 2 * 225 + (2 * y - 15) ** 2 * 3969) * 1000 // (3969 * 225)  # 1000 on the rim, integers
    return Image.fromarray(np.clip(110 * (1000 - distance) // 1000, 0, 255).astype(np.uint8))


def _table(name: str) -> pd.DataFrame:
    path = FOLDER / name
    if not path.is_file():
        raise Missing(f"The demo's file {path} is missing. Restore data/demo from the repository.")
    return pd.read_parquet(path)


@lru_cache(maxsize=1)
def _dataset() -> Dataset:
    concepts = pd.read_csv(FOLDER / "concepts.csv", keep_default_na=False)
    recipes = _table("images.parquet")
    sprites = sprite_table()
    images = recipes[["class_id", "context", *ATTRIBUTES]].copy()
    # The path says what is drawn: object, second object, scene. Only this room reads it.
    second = recipes["second"].map(lambda n: f"+{sprites['style'].iloc[n]}:{sprites['icon'].iloc[n]}" if n >= 0 else "")
    object_names = sprites["style"] + ":" + sprites["icon"]
    images.insert(
        1,
        "path",
        object_names.loc[recipes["sprite"]].to_numpy()
        + second
        + "@"
        + recipes["context"]
        + recipes["scene"].astype(str),
    )
    images.index.name = "image_id"
    counts = images["class_id"].value_counts().reindex(range(len(concepts)), fill_value=0)
    classes = concepts[["class_name", "split"]].copy()
    classes["n_images"] = counts.astype("Int64").to_numpy()
    classes["node"] = concepts["node"]
    classes.index.name = "class_id"
    contexts = images.groupby(["class_id", "context"]).size().rename("n_images").reset_index()
    taxonomy = pd.read_csv(FOLDER / "taxonomy.csv", keep_default_na=False)
    names = pd.read_csv(FOLDER / "taxonomy_names.csv", keep_default_na=False)
    return Dataset(
        name="demo",
        title="EmojiCoCo (demo)",
        classes=classes,
        splits={s: np.flatnonzero(classes["split"] == s) for s in ("train", "val", "test")},
        summary=f"{len(classes)} concepts in {images['context'].nunique()} contexts: emoji art composed on drawn "
        "backgrounds, not photographs. Every image is drawn on demand from its row of attributes.",
        source="Emoji of Noto, Noto v1, Firefox OS, Fluent, Fluent flat, Twemoji and Emoji One; backgrounds by fsviz",
        licence="emoji: Apache-2.0, MIT and CC BY 4.0 by set (data/demo/ATTRIBUTION.md); "
        "taxonomy: WordNet 3.0 licence (Princeton)",
        taxonomy=taxonomy,
        node_names=dict(zip(names["node"], names["name"], strict=True)),
        contexts=contexts,
        images=images,
        attributes=ATTRIBUTES,
        origin="demo",
        has_features=(FOLDER / "features" / "efficientnet_lite0.npy").is_file(),
        notes=(
            "Styles drawn by the same hand form a family (Noto and Noto v1; Fluent and Fluent flat): keep a family on "
            "one side of any split by style.",
            "Which context a concept is seen in is uneven on purpose: fish mostly in water, camels mostly in the "
            "desert.",
        ),
    )
