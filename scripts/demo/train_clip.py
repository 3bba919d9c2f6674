"""Train the demo's small image-text model on captions of concept and context words: data/demo/clip.

    python scripts/demo/train_clip.py [--minutes 15] [--wall 60] [--images 24000]

It learns from freshly drawn images in four families of emoji styles; the fifth, HELD_OUT, is never shown, neither as
object nor as second object, and the measured accuracies are those on it. It is a demo model: it knows the demo's
concepts and contexts and nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import build_images  # noqa: E402

from fsviz.datasets import demo  # noqa: E402
from fsviz.features import image_text, torchvision_guard  # noqa: E402

FOLDER = demo.FOLDER / "clip"
HELD_OUT = "twemoji"
SEED = 5
SIDE = 64
DRAWN = 112  # pixels an image is drawn at before it is made smaller, as it is for users
CONFIG = {
    "embed_dim": 128,
    "vision_cfg": {"image_size": SIDE, "layers": [1, 1, 1, 1], "width": 16, "head_width": 64, "patch_size": None},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 48, "heads": 3, "layers": 2},
}
PHRASES = {
    "grass": "on grass",
    "water": "on the water",
    "underwater": "under water",
    "snow": "in the snow",
    "desert": "in the desert",
    "rock": "on rocks",
    "autumn": "among autumn leaves",
    "night": "at night",
    "city": "in the city",
    "wood": "on wood",
    "sky": "in the sky",
    "indoor": "in a room",
    "forest": "in the forest",
    "road": "on the road",
}
# {a} concept with its article, {c} concept, {p} phrase of the context, {k} plain name of the context
BOTH = (
    "a photo of {a} on {k}",
    "a photo of {a} {p}",
    "{a} {p}",
    "a drawing of {a} {p}",
    "a photo of {a} in {k}",
    "{c} {k}",
)
CONCEPT = ("a photo of {a}", "{c}", "a drawing of {a}", "{a}")
CONTEXT = ("a photo of {k}", "{k}", "{p}", "a photo taken {p}")


def caption(template: str, concept: str, context: str) -> str:
    article = "an" if concept[0].lower() in "aeiou" else "a"
    return template.format(a=f"{article} {concept}", c=concept, p=PHRASES[context], k=context)


def training_rows(n_images: int) -> list[dict]:
    """Fresh rows: every concept in every context about equally often, without the held-out family."""
    concepts = pd.read_csv(demo.FOLDER / "concepts.csv", keep_default_na=False)
    sprites = demo.sprite_table()
    sprites = sprites[sprites["family"] != HELD_OUT]
    rows = []
    for class_id, name in enumerate(concepts["class_name"]):
        rng = np.random.default_rng([SEED, class_id])
        places = rng.permutation(np.resize(list(PHRASES), n_images // len(concepts)))
        rows += build_images.rows_of(class_id, name, places, sprites, rng, measured=False)
    return rows


def draw(rows: list[dict]) -> np.ndarray:
    """Images (n, SIDE, SIDE, 3) uint8."""
    images = np.empty((len(rows), SIDE, SIDE, 3), np.uint8)
    for k, row in enumerate(rows):
        large = Image.fromarray(demo.compose_rows([row], DRAWN)[0])
        images[k] = np.asarray(large.resize((SIDE, SIDE), Image.Resampling.BICUBIC))
    return images


def augmented(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each image shifted by up to 4 pixels and mirrored at random, contrast changed a little."""
    shifted = np.empty_like(pixels)
    padded = np.pad(pixels, ((0, 0), (4, 4), (4, 4), (0, 0)), mode="edge")
    for k, (dy, dx, mirror) in enumerate(zip(*rng.integers(0, 9, (2, len(pixels))), rng.random(len(pixels)) < 0.5)):
        view = padded[k, dy : dy + SIDE, dx : dx + SIDE]
        shifted[k] = view[:, ::-1] if mirror else view
    factor = rng.uniform(0.85, 1.15, (len(pixels), 1, 1, 1))
    return np.clip((shifted - 127.5) * factor + 127.5, 0, 255).astype(np.float32)


def train(minutes: float, wall: float, n_images: int, batch: int, rate: float) -> tuple[object, dict]:
    import torch

    torchvision_guard.install()
    import open_clip

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{image_text.DEMO}.json"
    path.write_text(json.dumps(CONFIG, indent=2), encoding="utf-8")
    open_clip.add_model_config(path)
    path.rename(FOLDER / "model_config.json")
    model = open_clip.create_model(image_text.DEMO, load_weights=False)
    preprocessing = image_text.preprocessing_of(model)
    mean, std = (255 * torch.tensor(v).view(1, 3, 1, 1) for v in (preprocessing.mean, preprocessing.std))
    tokenizer = open_clip.get_tokenizer(image_text.DEMO)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters", flush=True)

    rows = training_rows(n_images)
    started = time.time()
    pixels = draw(rows)
    print(f"{len(rows)} images drawn in {time.time() - started:.0f} s", flush=True)
    names = pd.read_csv(demo.FOLDER / "concepts.csv", keep_default_na=False)["class_name"].tolist()
    concepts = np.array([row["class_id"] for row in rows])
    contexts = np.array([list(PHRASES).index(row["context"]) for row in rows])
    places = list(PHRASES)

    decay = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    optimiser = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0}], lr=rate
    )
    rng = np.random.default_rng(SEED)
    started, begun, step = time.process_time(), time.time(), 0
    model = model.to(memory_format=torch.channels_last)
    model.train()
    while True:
        share = max((time.process_time() - started) / minutes, (time.time() - begun) / wall) / 60
        if share >= 1:
            break
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1, (step + 1) / 60) * (0.5 * (1 + np.cos(np.pi * share)) + 0.01)
        indices = rng.choice(len(rows), batch, replace=False)
        # A caption names both words, or only the concept, or only the context; what it leaves out it does not deny.
        kind = rng.choice(3, batch, p=(0.5, 0.3, 0.2))
        texts = [
            caption(
                rng.choice((BOTH, CONCEPT, CONTEXT)[t]) if t else rng.choice(BOTH),
                names[concepts[i]],
                places[contexts[i]],
            )
            for i, t in zip(indices, kind)
        ]
        same_concept = (concepts[indices][:, None] == concepts[indices][None]) | (kind == 2)[None]
        same_context = (contexts[indices][:, None] == contexts[indices][None]) | (kind == 1)[None]
        fits = torch.from_numpy(same_concept & same_context).float()  # (images, captions)
        x = torch.from_numpy(augmented(pixels[indices], rng)).permute(0, 3, 1, 2)
        image, text, scale = model((x - mean) / std, tokenizer(texts))[:3]
        logits = scale * image @ text.T
        loss = -(
            (fits / fits.sum(1, keepdim=True) * logits.log_softmax(1)).sum(1).mean()
            + (fits / fits.sum(0, keepdim=True) * logits.log_softmax(0)).sum(0).mean()
        )
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, np.log(100))
        step += 1
        if step % 25 == 0:
            print(f"step {step}, {100 * share:.0f}% of the time, loss {loss.item():.3f}", flush=True)
    model.eval()
    return model, {
        "steps": step,
        "batch": batch,
        "images_drawn": len(rows),
        "cpu_minutes": round((time.process_time() - started) / 60, 1),
        "seed": SEED,
    }


def save(model: object) -> None:
    from safetensors.torch import save_file

    weights = {
        name: (value.half() if value.is_floating_point() else value).contiguous()
        for name, value in model.state_dict().items()
    }
    save_file(weights, FOLDER / "model.safetensors", metadata={"model": image_text.DEMO})
    (FOLDER / "model.safetensors").chmod(0o644)


def measure() -> dict:
    """Zero-shot accuracies of the shipped weights on the demo's own images, by way of the features room."""
    dataset = demo.load_demo()
    model = image_text.load_image_text(image_text.DEMO, on="cpu")
    names = dataset.classes["class_name"].tolist()
    by_concept = model.encode_texts([caption("a photo of {a}", name, "grass") for name in names])
    by_context = model.encode_texts([caption("a photo taken {p}", names[0], place) for place in PHRASES])
    results = {}
    for title, keep in (
        ("held_out_style", dataset.images["family"] == HELD_OUT),
        ("seen_styles_new_images", dataset.images["family"] != HELD_OUT),
    ):
        table = dataset.images[keep]
        table = table.iloc[np.random.default_rng(0).permutation(len(table))[:1000]]
        images = model.encode_images([demo.open_demo_image(dataset, int(i)) for i in table.index])
        concept, context = table["class_id"].to_numpy(), table["context"].map(list(PHRASES).index).to_numpy()
        order = np.argsort(-(images @ by_concept.T), axis=1)
        pairs = model.encode_texts(
            [caption("a photo of {a} {p}", names[c], list(PHRASES)[k]) for c, k in zip(concept, context)]
        )
        scores = images @ pairs.T
        # An image finds its caption when none of another concept or context lies nearer.
        fits = (concept[:, None] == concept[None]) & (context[:, None] == context[None])
        best = scores.argmax(1)
        results[title] = {
            "n_images": len(table),
            "concept_top1": round(float((order[:, 0] == concept).mean()), 4),
            "concept_top5": round(float((order[:, :5] == concept[:, None]).any(1).mean()), 4),
            "context_top1": round(float(((images @ by_context.T).argmax(1) == context).mean()), 4),
            "caption_top1": round(float(fits[np.arange(len(table)), best].mean()), 4),
            "captions": len({(c, k) for c, k in zip(concept, context)}),
        }
    return {"held_out_family": HELD_OUT, "chance_concept_top1": round(1 / len(names), 4), **results}


def write_card(about: dict, metrics: dict) -> None:
    (FOLDER / "metrics.json").write_text(json.dumps({**metrics, "training": about}, indent=2) + "\n", encoding="utf-8")
    held, same_style = metrics["held_out_style"], metrics["seen_styles_new_images"]
    lines = [
        "# demo_clip: a small image-text model for the demo",
        "",
        "A demo model, not CLIP: it knows the words for the demo's 107 concepts and 14 contexts and nothing else. An",
        f"open_clip model with its own small configuration (`model_config.json`): a residual network for {SIDE}-pixel",
        "images and a two-layer text transformer, 128 shared dimensions, weights in float16.",
        "",
        f"Trained by `scripts/demo/train_clip.py` for {about['cpu_minutes']:g} minutes of one CPU core",
        f"({about['steps']} steps of {about['batch']} images) on {about['images_drawn']:,} freshly drawn images with",
        'captions such as "a photo of a dog on grass". Concepts and contexts were mixed evenly. The emoji family',
        f"{HELD_OUT} was never shown. All concepts were, those of the test split too (in other drawings): few-shot",
        "accuracies with its features are therefore optimistic.",
        "",
        f"| measured on the demo's own images | {HELD_OUT}, never seen | other styles, new images |",
        "| --- | --- | --- |",
        f"| images | {held['n_images']} | {same_style['n_images']} |",
        f"| right concept of 107 (chance 0.9%) | {held['concept_top1']:.1%} | {same_style['concept_top1']:.1%} |",
        f"| right concept among the best five | {held['concept_top5']:.1%} | {same_style['concept_top5']:.1%} |",
        f"| right context of 14 (chance 7.1%) | {held['context_top1']:.1%} | {same_style['context_top1']:.1%} |",
        f"| right caption of {held['captions']} / {same_style['captions']} | {held['caption_top1']:.1%} "
        f"| {same_style['caption_top1']:.1%} |",
    ]
    (FOLDER / "CARD.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15, help="CPU minutes of training")
    parser.add_argument("--wall", type=float, default=60, help="end after this many minutes by the clock at the latest")
    parser.add_argument("--images", type=int, default=24_000, help="training images to draw")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=1e-3, help="largest learning rate")
    arguments = parser.parse_args()
    model, about = train(arguments.minutes, arguments.wall, arguments.images, arguments.batch, arguments.rate)
    save(model)
    metrics = measure()
    write_card(about, metrics)
    print(json.dumps(metrics, indent=2))


if __name__ == "__main__":
    main()
