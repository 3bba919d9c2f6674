"""Draw the demo's backgrounds: fourteen contexts, several scenes each, and what may stand in front of an object.

    python scripts/demo/build_backgrounds.py [--sheet FILE.png]

Every scene is a small SVG drawn from a seed of (context, variant), rasterised once into backgrounds.parquet.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import resvg_py
from PIL import Image

DEMO = Path(__file__).resolve().parents[2] / "data" / "demo"
SIZE = 320  # a scene is SIZE x SIZE, a front SIZE x FRONT
FRONT = 200
SCENES = 8
FRONTS = 2
Rng = np.random.Generator


# ---- a few strokes of SVG ------------------------------------------------------------------------------------------


def shape(points: list[tuple[float, float]], fill: str, opacity: float = 1.0) -> str:
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polygon points="{text}" fill="{fill}" fill-opacity="{opacity:.2f}"/>'


def rect(x: float, y: float, w: float, h: float, fill: str, opacity: float = 1.0, radius: float = 0) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{radius:.1f}" fill="{fill}" '
        f'fill-opacity="{opacity:.2f}"/>'
    )


def oval(x: float, y: float, rx: float, ry: float, fill: str, opacity: float = 1.0) -> str:
    return (
        f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{rx:.1f}" ry="{ry:.1f}" fill="{fill}" fill-opacity="{opacity:.2f}"/>'
    )


def line(d: str, colour: str, width: float, opacity: float = 1.0) -> str:
    return (
        f'<path d="{d}" fill="none" stroke="{colour}" stroke-width="{width:.2f}" stroke-linecap="round" '
        f'stroke-opacity="{opacity:.2f}"/>'
    )


def gradient(name: str, *colours: str) -> str:
    stops = "".join(f'<stop offset="{i / (len(colours) - 1):.3f}" stop-color="{c}"/>' for i, c in enumerate(colours))
    return f'<linearGradient id="{name}" x1="0" y1="0" x2="0" y2="1">{stops}</linearGradient>'


def ridge(rng: Rng, base: float, height: float, waves: float, fill: str, rough: float = 0.0, step: int = 8) -> str:
    """Hills: a filled outline of a few sines, optionally rough."""
    xs = np.arange(-step, SIZE + 2 * step, step)
    phase = rng.uniform(0, 6.28, 3)
    ys = sum(np.sin(xs / SIZE * 6.28 * waves * (k + 1) * 0.6 + phase[k]) / (k + 1) for k in range(3))
    ys = base - height * (ys / 1.8 * 0.5 + 0.5) + rough * rng.uniform(-1, 1, len(xs))
    return shape([(-20, SIZE + 10), *zip(xs, ys, strict=True), (SIZE + 20, SIZE + 10)], fill)


def cloud(rng: Rng, x: float, y: float, w: float, colour: str = "#ffffff", opacity: float = 0.9) -> str:
    puffs = [oval(x, y, w * 0.5, w * 0.11, colour, opacity)]
    for _ in range(6):
        dx, r = rng.uniform(-0.36, 0.36) * w, w * rng.uniform(0.11, 0.2)
        puffs.append(oval(x + dx, y - r * 0.55, r, r * 0.85, colour, opacity))
    return "".join(puffs)


def blade(rng: Rng, x: float, y: float, h: float, colour: str, width: float = 3.0) -> str:
    lean = rng.uniform(-0.45, 0.45) * h
    return (
        f'<path d="M{x - width / 2:.1f},{y:.1f} Q{x + lean * 0.25:.1f},{y - h * 0.6:.1f} {x + lean:.1f},{y - h:.1f} '
        f'Q{x + lean * 0.35 + width * 0.4:.1f},{y - h * 0.55:.1f} {x + width / 2:.1f},{y:.1f}Z" fill="{colour}"/>'
    )


def leaf(rng: Rng, x: float, y: float, s: float, colour: str) -> str:
    """A pointed leaf with its vein, or a five-lobed maple leaf, turned at random."""
    turn = rng.uniform(0, 360)
    if rng.random() < 0.55:
        body = f'<path d="M0,{-s:.1f} Q{s * 0.75:.1f},0 0,{s:.1f} Q{-s * 0.75:.1f},0 0,{-s:.1f}Z" fill="{colour}"/>'
    else:
        tips = []
        for k in range(10):
            angle = -np.pi / 2 + k * np.pi / 5
            radius = s * (1.05 if k % 2 == 0 else 0.45)
            tips.append((radius * np.cos(angle), radius * np.sin(angle)))
        body = shape(tips, colour)
    vein = line(f"M0,{-s * 0.7:.1f} L0,{s * 1.35:.1f}", "#5b3210", max(0.7, s * 0.09), 0.65)
    return f'<g transform="translate({x:.1f},{y:.1f}) rotate({turn:.0f})">{body}{vein}</g>'


def pine(x: float, y: float, h: float, colour: str, snow: str = "") -> str:
    parts = [rect(x - h * 0.04, y - h * 0.12, h * 0.08, h * 0.14, "#4d3422")]
    for k in range(3):
        top, half = y - h + k * h * 0.24, h * (0.17 + 0.075 * k)
        bottom = top + h * 0.42
        parts.append(shape([(x, top), (x + half, bottom), (x - half, bottom)], colour))
        if snow:
            parts.append(
                shape(
                    [(x, top), (x + half * 0.5, top + h * 0.17), (x, top + h * 0.13), (x - half * 0.5, top + h * 0.17)],
                    snow,
                )
            )
    return "".join(parts)


def boulder(rng: Rng, x: float, y: float, w: float, h: float, colours: tuple[str, str, str]) -> str:
    angles = np.linspace(np.pi, 2 * np.pi, 8)
    radius = rng.uniform(0.82, 1.08, 8)
    rim = [(x + w / 2 * np.cos(a) * r, y + h * np.sin(a) * r) for a, r in zip(angles, radius, strict=True)]
    lit = [*rim[2:6], (x + w * 0.12, y - h * 0.45), (x - w * 0.2, y - h * 0.5)]
    shade = [*rim[5:], (x + w * 0.1, y)]
    crack = line(
        f"M{x - w * 0.1:.1f},{y - h * 0.5:.1f} l{w * 0.08:.1f},{h * 0.2:.1f} l{-w * 0.05:.1f},{h * 0.2:.1f}",
        "#3c3a38",
        1.2,
        0.5,
    )
    return (
        shape([*rim, (x + w / 2, y + 2), (x - w / 2, y + 2)], colours[1])
        + shape(lit, colours[0], 0.9)
        + shape(shade, colours[2], 0.8)
        + crack
    )


def pick(rng: Rng, *choices: str) -> str:
    return choices[int(rng.integers(len(choices)))]


# ---- scenes --------------------------------------------------------------------------------------------------------


def grass(rng: Rng) -> str:
    horizon = rng.uniform(95, 150)
    sky = [("#5fb1ef", "#d6efff"), ("#79c4f5", "#eaf7ff"), ("#8fb8e8", "#fdeccb")][int(rng.integers(3))]
    parts = [
        f"<defs>{gradient('s', *sky)}{gradient('g', '#a4d65a', '#57a639', '#2f7d2b')}</defs>",
        rect(0, 0, SIZE, SIZE, "url(#s)"),
    ]
    parts += [cloud(rng, rng.uniform(20, 300), rng.uniform(20, 70), rng.uniform(60, 110)) for _ in range(3)]
    parts.append(ridge(rng, horizon + 8, 34, 1.2, "#7fb98a"))
    parts.append(f'<rect x="0" y="{horizon:.0f}" width="320" height="{SIZE - horizon:.0f}" fill="url(#g)"/>')
    greens = ["#8ccf4d", "#6dbb3f", "#4f9f35", "#3d8a2e", "#2f7427"]
    for y in np.linspace(horizon + 4, SIZE + 16, 26):
        depth = (y - horizon) / (SIZE - horizon)
        for x in rng.uniform(-5, 325, int(64 - 28 * depth)):
            parts.append(
                blade(
                    rng,
                    x,
                    y + rng.uniform(-4, 4),
                    6 + 34 * depth * rng.uniform(0.6, 1.1),
                    greens[min(4, max(0, int(depth * 4 + rng.uniform(-1.2, 1.2))))],
                    1.6 + 3.2 * depth,
                )
            )
        if rng.random() < 0.55:
            x, r = rng.uniform(10, 310), 1.5 + 3.5 * depth
            petal = pick(rng, "#ffffff", "#ffd93b", "#ff8fb1", "#c59bff")
            parts += [
                oval(x + r * np.cos(a), y - 8 * depth + r * np.sin(a), r * 0.7, r * 0.7, petal)
                for a in np.arange(0, 6.2, 1.257)
            ]
            parts.append(oval(x, y - 8 * depth, r * 0.55, r * 0.55, "#f2a81d"))
    return "".join(parts)


def water(rng: Rng) -> str:
    horizon = rng.uniform(80, 125)
    sky, sea = [
        (("#6db9f2", "#e6f6ff"), ("#3f9fd8", "#1f78b8", "#0d4f8c")),
        (("#f6a868", "#ffe6b8"), ("#d9a27a", "#3d7fae", "#17497d")),
        (("#9fc7e8", "#f4f9fd"), ("#56b6c8", "#2790ab", "#0f5f80")),
    ][int(rng.integers(3))]
    parts = [f"<defs>{gradient('s', *sky)}{gradient('w', *sea)}</defs>", rect(0, 0, SIZE, SIZE, "url(#s)")]
    sun = rng.uniform(50, 270)
    parts.append(oval(sun, horizon - rng.uniform(25, 55), 16, 16, "#fff6c9", 0.95))
    parts += [
        cloud(rng, rng.uniform(10, 310), rng.uniform(18, 50), rng.uniform(60, 110), opacity=0.8) for _ in range(2)
    ]
    if rng.random() < 0.5:
        x = rng.uniform(30, 290)
        parts.append(oval(x, horizon + 2, 46, 12, "#5d8c66"))
    parts.append(f'<rect x="0" y="{horizon:.0f}" width="320" height="{SIZE - horizon:.0f}" fill="url(#w)"/>')
    for y in horizon + (SIZE - horizon) * np.linspace(0.02, 1, 19) ** 1.5:
        depth = (y - horizon) / (SIZE - horizon)
        length, height = 22 + 62 * depth, 1.5 + 9 * depth
        start = rng.uniform(-length, 0)
        crest = f"M{start:.1f},{y:.1f} " + " ".join(
            f"q{length / 4:.1f},{-height:.1f} {length / 2:.1f},0 q{length / 4:.1f},{height:.1f} {length / 2:.1f},0"
            for _ in range(int(SIZE / length) + 3)
        )
        parts.append(line(crest, "#ffffff", 0.8 + 2.2 * depth, 0.55))
        parts.append(line(crest.replace(f",{y:.1f} ", f",{y + 2 + 4 * depth:.1f} ", 1), "#083b6b", 1 + 3 * depth, 0.25))
    for _ in range(26):
        y = rng.uniform(horizon + 4, SIZE)
        parts.append(oval(sun + rng.normal(0, 10 + (y - horizon) * 0.22), y, rng.uniform(3, 12), 1.3, "#fff8d8", 0.6))
    return "".join(parts)


def underwater(rng: Rng) -> str:
    top = pick(rng, "#6fe0e6", "#58c8f0", "#7ee6d2")
    parts = [f"<defs>{gradient('w', top, '#1f8fc4', '#0c4f8f', '#0a3266')}</defs>", rect(0, 0, SIZE, SIZE, "url(#w)")]
    for _ in range(6):
        x, w, slant = rng.uniform(-20, 320), rng.uniform(12, 36), rng.uniform(-60, 60)
        parts.append(shape([(x, -5), (x + w, -5), (x + w * 1.9 + slant, 270), (x - w + slant, 270)], "#eaffff", 0.13))
    parts.append(ridge(rng, 305, 30, 1.5, "#d9c38a"))
    parts.append(ridge(rng, 318, 22, 2.1, "#c4a96b"))
    for _ in range(9):
        x, h, colour = rng.uniform(0, 320), rng.uniform(50, 135), pick(rng, "#2f9e5b", "#1f7d4c", "#57b957")
        sway = rng.uniform(8, 16)
        d = f"M{x:.0f},318 " + " ".join(f"q{sway * (-1) ** k:.0f},{-h / 8:.1f} 0,{-h / 4:.1f}" for k in range(4))
        parts.append(line(d, colour, rng.uniform(5, 9)))
    for _ in range(4):
        x, colour = rng.uniform(10, 310), pick(rng, "#ff7f6b", "#ff9fb8", "#c977e0", "#ffb24d")
        for a in np.linspace(-1.1, 1.1, 5):
            h = rng.uniform(18, 38)
            parts.append(
                line(f"M{x:.0f},308 q{h * np.sin(a) * 0.3:.0f},{-h * 0.5:.0f} {h * np.sin(a):.0f},{-h:.0f}", colour, 6)
            )
    for _ in range(28):
        x, y, r = rng.uniform(0, 320), rng.uniform(0, 290), rng.uniform(1.5, 7)
        parts.append(
            f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{r:.1f}" fill="#ffffff" fill-opacity="0.18" '
            f'stroke="#e9ffff" stroke-opacity="0.8" stroke-width="1"/>'
        )
        parts.append(oval(x - r * 0.3, y - r * 0.35, r * 0.25, r * 0.25, "#ffffff", 0.9))
    return "".join(parts)


def snow(rng: Rng) -> str:
    sky = [("#9dbfe0", "#eef5fb"), ("#b9c7d6", "#f3f6f9"), ("#86a8d8", "#fbe3dd")][int(rng.integers(3))]
    parts = [
        f"<defs>{gradient('s', *sky)}{gradient('g', '#ffffff', '#dbe8f5')}</defs>",
        rect(0, 0, SIZE, SIZE, "url(#s)"),
        ridge(rng, 150, 60, 1.3, "#c3d5e8"),
    ]
    parts.append(ridge(rng, 172, 36, 1.7, "#dbe7f3"))
    for x in np.sort(rng.uniform(0, 320, 9)):
        parts.append(pine(x, rng.uniform(160, 190), rng.uniform(42, 85), pick(rng, "#3c6e5a", "#2f5d50"), "#ffffff"))
    parts.append(ridge(rng, 215, 34, 1.1, "#f2f7fc"))
    parts.append(ridge(rng, 262, 34, 1.4, "url(#g)"))
    for _ in range(5):
        x, y = rng.uniform(0, 300), rng.uniform(225, 312)
        parts.append(line(f"M{x:.0f},{y:.0f} q30,-9 62,0", "#b9cde2", 2.2, 0.8))
    for _ in range(70):
        x, y, r = rng.uniform(0, 320), rng.uniform(0, 320), rng.uniform(1.2, 3.4)
        parts.append(oval(x, y, r, r, "#ffffff", 0.95))
    for _ in range(9):
        x, y, r = rng.uniform(0, 320), rng.uniform(0, 230), rng.uniform(5, 9)
        parts += [
            line(
                f"M{x - r * np.cos(a):.1f},{y - r * np.sin(a):.1f} L{x + r * np.cos(a):.1f},{y + r * np.sin(a):.1f}",
                "#ffffff",
                1.8,
                0.95,
            )
            for a in (0, 1.047, 2.094)
        ]
    return "".join(parts)


def desert(rng: Rng) -> str:
    sky = [("#f9b36a", "#ffe9bd"), ("#6fbdee", "#fdf0d2"), ("#ef8d5d", "#ffd79a")][int(rng.integers(3))]
    parts = [f"<defs>{gradient('s', *sky)}</defs>", rect(0, 0, SIZE, SIZE, "url(#s)")]
    x, y = rng.uniform(40, 280), rng.uniform(35, 75)
    parts += [oval(x, y, 36, 36, "#fff3b8", 0.35), oval(x, y, 24, 24, "#fff1a6")]
    colours = ["#e8b873", "#e0a75c", "#d7974a", "#e6ad60", "#efbd74"]
    for k, base in enumerate((150, 185, 225, 268, 312)):
        colour = colours[k]
        crest = rng.uniform(40, 280)
        top = base - rng.uniform(28, 50)
        parts.append(
            f'<path d="M-10,{base + 60} L-10,{base:.0f} Q{crest * 0.6:.0f},{base - 6:.0f} {crest:.0f},{top:.0f} '
            f'Q{crest + (330 - crest) * 0.4:.0f},{base - 10:.0f} 330,{base - 8:.0f} L330,{base + 60} Z" '
            f'fill="{colour}"/>'
        )
        parts.append(
            f'<path d="M{crest:.0f},{top:.0f} Q{crest + (330 - crest) * 0.4:.0f},{base - 10:.0f} 330,{base - 8:.0f} '
            f'L330,{base + 60} L{crest + 40:.0f},{base + 60} Q{crest + 46:.0f},{base - 4:.0f} {crest:.0f},{top:.0f}Z" '
            f'fill="#9c5f2a" fill-opacity="0.35"/>'
        )
    parts.append(rect(0, 296, SIZE, 30, colours[4]))
    for y in np.linspace(240, 318, 9):
        x = rng.uniform(-10, 190)
        parts.append(line(f"M{x:.0f},{y:.0f} q18,-6 36,0 t36,0 t36,0 t36,0", "#b97a36", 1.6, 0.6))
    return "".join(parts)


def rock(rng: Rng) -> str:
    sky = [("#8fb7dd", "#e8f1f8"), ("#a9b4c2", "#e9ecef"), ("#7fa6d6", "#f6e5d3")][int(rng.integers(3))]
    parts = [
        f"<defs>{gradient('s', *sky)}{gradient('g', '#a39b92', '#6f6862')}</defs>",
        rect(0, 0, SIZE, SIZE, "url(#s)"),
    ]
    for x, w, h in [
        (rng.uniform(-10, 90), 230, rng.uniform(130, 170)),
        (rng.uniform(210, 330), 240, rng.uniform(110, 165)),
        (rng.uniform(110, 210), 210, rng.uniform(90, 140)),
    ]:
        base, peak = 225, 225 - h
        parts.append(shape([(x - w / 2, base), (x, peak), (x + w / 2, base)], "#8a8784"))
        parts.append(
            shape([(x, peak), (x + w / 2, base), (x + w * 0.1, base), (x + w * 0.05, base - h * 0.5)], "#63605e")
        )
        parts.append(
            shape(
                [
                    (x, peak),
                    (x + w * 0.15, peak + h * 0.3),
                    (x + w * 0.06, peak + h * 0.25),
                    (x, peak + h * 0.34),
                    (x - w * 0.07, peak + h * 0.24),
                    (x - w * 0.15, peak + h * 0.3),
                ],
                "#f7fafc",
            )
        )
        for _ in range(4):
            px, py = x + rng.uniform(-0.25, 0.2) * w, base - rng.uniform(0.1, 0.55) * h
            parts.append(line(f"M{px:.0f},{py:.0f} l{rng.uniform(-14, 14):.0f},22", "#55524f", 1.8, 0.6))
    parts.append(ridge(rng, 232, 16, 2, "url(#g)", rough=4))
    for _ in range(70):
        y = rng.uniform(235, 318)
        parts.append(
            oval(
                rng.uniform(0, 320), y, rng.uniform(2, 7), rng.uniform(1, 3), pick(rng, "#857d76", "#b8b0a7", "#5d5751")
            )
        )
    for y in np.sort(rng.uniform(228, 322, 11)):
        s = 0.5 + (y - 228) / 94
        parts.append(
            boulder(
                rng,
                rng.uniform(-10, 330),
                y,
                rng.uniform(34, 72) * s,
                rng.uniform(20, 42) * s,
                [("#bdb7b0", "#918a83", "#625c57"), ("#b3aeb0", "#85807f", "#575453")][int(rng.integers(2))],
            )
        )
    return "".join(parts)


LEAVES = ("#d9531e", "#e8862a", "#f2b233", "#b8381f", "#c76a1e", "#8f4a1c", "#f4cf52")


def autumn(rng: Rng) -> str:
    horizon = rng.uniform(95, 135)
    sky = [("#cfe3f2", "#fff3dd"), ("#f5d9a8", "#fff4de")][int(rng.integers(2))]
    parts = [
        f"<defs>{gradient('s', *sky)}{gradient('g', '#b9772f', '#7a4519')}</defs>",
        rect(0, 0, SIZE, SIZE, "url(#s)"),
    ]
    for x in np.sort(rng.uniform(-10, 330, 7)):
        w = rng.uniform(7, 13)
        parts.append(rect(x - w / 2, 20, w, horizon, "#5c3d26"))
        for _ in range(13):
            parts.append(
                oval(
                    x + rng.normal(0, 22),
                    rng.uniform(-5, 66),
                    rng.uniform(12, 22),
                    rng.uniform(10, 16),
                    pick(rng, *LEAVES[:5]),
                    0.9,
                )
            )
    parts.append(f'<rect x="0" y="{horizon:.0f}" width="320" height="{SIZE - horizon:.0f}" fill="url(#g)"/>')
    for y in np.linspace(horizon, SIZE + 8, 24):
        depth = (y - horizon) / (SIZE - horizon)
        for x in rng.uniform(-8, 328, int(40 - 22 * depth)):
            parts.append(
                leaf(rng, x, y + rng.uniform(-5, 5), (3 + 10.5 * depth) * rng.uniform(0.8, 1.2), pick(rng, *LEAVES))
            )
    for _ in range(10):
        parts.append(leaf(rng, rng.uniform(0, 320), rng.uniform(20, 150), rng.uniform(5, 8), pick(rng, *LEAVES)))
    return "".join(parts)


def night(rng: Rng) -> str:
    sky = [("#070b26", "#1b2a5c", "#3d4f8a"), ("#060818", "#151c46", "#4b3f78"), ("#03101f", "#0d2c4f", "#2f5b7c")][
        int(rng.integers(3))
    ]
    parts = [f"<defs>{gradient('s', *sky)}</defs>", rect(0, 0, SIZE, SIZE, "url(#s)")]
    for _ in range(110):
        r = rng.choice([0.8, 1.1, 1.6])
        parts.append(
            oval(
                rng.uniform(0, 320),
                rng.uniform(0, 210),
                r,
                r,
                pick(rng, "#ffffff", "#fff3c4", "#cfe0ff"),
                rng.uniform(0.5, 1),
            )
        )
    for _ in range(5):
        x, y = rng.uniform(10, 310), rng.uniform(10, 150)
        parts += [line(f"M{x - 5:.0f},{y:.0f} h10", "#ffffff", 1.2), line(f"M{x:.0f},{y - 5:.0f} v10", "#ffffff", 1.2)]
    x, y, r = rng.uniform(50, 270), rng.uniform(45, 85), rng.uniform(20, 30)
    parts += [
        oval(x, y, r * 1.9, r * 1.9, "#fdf6cf", 0.10),
        oval(x, y, r * 1.4, r * 1.4, "#fdf6cf", 0.14),
        oval(x, y, r, r, "#fdf3c0"),
    ]
    if rng.random() < 0.5:
        parts.append(oval(x + r * 0.45, y - r * 0.15, r * 0.86, r * 0.86, sky[0]))
    else:
        parts += [
            oval(x + dx * r, y + dy * r, s * r, s * r, "#dccf93", 0.8)
            for dx, dy, s in ((-0.3, -0.2, 0.2), (0.3, 0.3, 0.26), (0.2, -0.45, 0.12))
        ]
    parts.append(ridge(rng, 235, 44, 1.3, "#16213f"))
    for x in np.sort(rng.uniform(0, 320, 8)):
        parts.append(pine(x, rng.uniform(238, 262), rng.uniform(45, 95), "#0d1630"))
    parts.append(ridge(rng, 268, 26, 1.2, "#0b1226"))
    for x in rng.uniform(0, 320, 60):
        parts.append(blade(rng, x, 322, rng.uniform(10, 26), "#131d38", 3))
    return "".join(parts)


def city(rng: Rng) -> str:
    sky = [("#7db7e8", "#e3f1fb"), ("#f3a683", "#fde6c4"), ("#a8b6c8", "#e6ebf0")][int(rng.integers(3))]
    parts = [f"<defs>{gradient('s', *sky)}</defs>", rect(0, 0, SIZE, SIZE, "url(#s)")]
    parts.append(cloud(rng, rng.uniform(30, 290), rng.uniform(20, 50), 80, opacity=0.7))
    for layer, (colours, low, high) in enumerate(
        [
            (("#9fb0c4", "#a9b6c9", "#94a5bb"), 120, 200),
            (("#5f6f8a", "#7a5a58", "#6d7f78", "#80715f", "#4f6480"), 85, 185),
        ]
    ):
        x = rng.uniform(-30, 0)
        while x < SIZE:
            w, h = rng.uniform(34, 62), rng.uniform(low, high)
            colour = pick(rng, *colours)
            y = 252 - h
            parts.append(rect(x, y, w, h, colour))
            parts.append(rect(x + w * 0.82, y, w * 0.18, h, "#000000", 0.14))
            if layer:
                if rng.random() < 0.4:
                    parts.append(rect(x + w * 0.45, y - 16, 3, 16, colour))
                lit = rng.choice(["#ffe9a3", "#d6ecff"])
                for wy in np.arange(y + 8, 236, 15):
                    for wx in np.arange(x + 6, x + w - 9, 12):
                        parts.append(rect(wx, wy, 6.5, 9, str(lit) if rng.random() < 0.72 else "#2d3648", 0.95))
            x += w + (0 if layer else rng.uniform(0, 6))
    parts.append(rect(0, 250, SIZE, 26, "#b9b7b2"))
    parts.append(rect(0, 250, SIZE, 3, "#d8d6d0"))
    parts += [rect(x, 250, 1.5, 26, "#8f8d88") for x in range(12, 320, 36)]
    parts.append(rect(0, 276, SIZE, 44, "#565a61"))
    parts += [rect(x, 296, 30, 4, "#f1f1ec") for x in range(int(rng.integers(-30, 0)), 320, 58)]
    for x in rng.uniform(10, 310, 3):
        parts += [
            rect(x - 1.5, 176, 3, 76, "#3a3f47"),
            oval(x, 174, 7, 5, "#ffe58c"),
            rect(x - 6, 168, 12, 4, "#3a3f47"),
        ]
    return "".join(parts)


def wood(rng: Rng) -> str:
    base, dark = [("#c48a52", "#8a5426"), ("#b5743c", "#6f3f1c"), ("#d3a56d", "#94683a"), ("#9a6a45", "#5b3920")][
        int(rng.integers(4))
    ]
    parts = [rect(0, 0, SIZE, SIZE, base)]
    height = float(rng.choice([53.4, 64, 80]))
    for k, y in enumerate(np.arange(0, SIZE, height)):
        tone = rng.uniform(0.0, 0.16)
        parts.append(rect(0, y, SIZE, height, "#000000" if k % 2 else "#ffffff", tone))
        for _ in range(10):
            gy = y + rng.uniform(4, height - 4)
            d = f"M-5,{gy:.1f} " + " ".join(
                f"q20,{rng.uniform(-5, 5):.1f} 41,{rng.uniform(-2, 2):.1f}" for _ in range(8)
            )
            parts.append(line(d, dark, rng.uniform(0.7, 1.8), rng.uniform(0.35, 0.7)))
        for _ in range(int(rng.integers(1, 3))):
            kx, ky = rng.uniform(20, 300), y + height / 2 + rng.uniform(-8, 8)
            for r in (13, 9.5, 6.5, 3.5):
                parts.append(
                    f'<ellipse cx="{kx:.0f}" cy="{ky:.0f}" rx="{r * 1.5:.1f}" ry="{r * 0.8:.1f}" fill="{dark}" '
                    f'fill-opacity="0.22" stroke="{dark}" stroke-opacity="0.8" stroke-width="1"/>'
                )
        parts.append(rect(0, y + height - 3.5, SIZE, 3.5, "#2c170a", 0.75))
        parts.append(rect(0, y, SIZE, 1.5, "#fff0d8", 0.45))
        joint = rng.uniform(40, 280)
        parts.append(rect(joint, y, 2.5, height, "#2c170a", 0.65))
        parts += [oval(joint + dx, y + dy, 2.2, 2.2, "#3a2a1e") for dx in (-9, 11) for dy in (9, height - 12)]
    return "".join(parts)


def sky(rng: Rng) -> str:
    tones = [("#2f86d8", "#8cc8f5", "#dff2ff"), ("#4a9be8", "#a9d8fa", "#f3fbff"), ("#5b7fd0", "#f0b8b0", "#ffe9c9")][
        int(rng.integers(3))
    ]
    parts = [f"<defs>{gradient('s', *tones)}</defs>", rect(0, 0, SIZE, SIZE, "url(#s)")]
    if rng.random() < 0.6:
        x, y = rng.uniform(40, 280), rng.uniform(35, 90)
        parts += [oval(x, y, r, r, "#fff7cf", o) for r, o in ((44, 0.2), (32, 0.35), (21, 1))]
    for _ in range(6):
        x, y = rng.uniform(0, 320), rng.uniform(40, 300)
        w = rng.uniform(80, 170)
        state = rng.bit_generator.state
        parts.append(f'<g transform="translate(0,{w * 0.05:.1f})">{cloud(rng, x, y, w, "#b7cfe6", 0.8)}</g>')
        rng.bit_generator.state = state
        parts.append(cloud(rng, x, y, w, "#ffffff", 1.0))
    for _ in range(int(rng.integers(2, 5))):
        x, y, s = rng.uniform(20, 300), rng.uniform(20, 160), rng.uniform(5, 9)
        parts.append(
            line(
                f"M{x - s:.0f},{y:.0f} q{s / 2:.1f},{-s * 0.7:.1f} {s:.1f},0 q{s / 2:.1f},{-s * 0.7:.1f} {s:.1f},0",
                "#37506e",
                1.6,
            )
        )
    return "".join(parts)


def indoor(rng: Rng) -> str:
    wall, stripe = [("#f1dfc4", "#e6cfae"), ("#cfe0e6", "#bdd3dc"), ("#e7cfd4", "#dcbfc6"), ("#d5e0c4", "#c6d4b1")][
        int(rng.integers(4))
    ]
    floor, dark = [("#b98352", "#8c5d35"), ("#a8754a", "#74492a"), ("#c9a27a", "#9c7650")][int(rng.integers(3))]
    level = rng.uniform(205, 235)
    parts = [rect(0, 0, SIZE, level, wall)]
    parts += [rect(x, 0, 12, level, stripe) for x in range(0, 320, 26)]
    parts.append(rect(0, level, SIZE, SIZE - level, floor))
    parts += [
        line(f"M{160 + (x - 160) * 0.55:.0f},{level:.0f} L{160 + (x - 160) * 1.5:.0f},322", dark, 1.8, 0.8)
        for x in range(-160, 500, 32)
    ]
    parts += [line(f"M0,{y:.0f} H320", dark, 1.2, 0.5) for y in (level + 26, level + 60)]
    parts += [rect(0, level - 11, SIZE, 11, "#fbf7ef"), rect(0, level - 1, SIZE, 3, "#6b4a30", 0.5)]
    on_the_left = rng.random() < 0.5
    x = 34 if on_the_left else 186
    parts += [
        rect(x, 30, 100, 118, "#ffffff"),
        rect(x + 7, 37, 86, 104, "#a9dbf7"),
        oval(x + 70, 60, 12, 12, "#fff3b0"),
        f'<svg x="{x + 7}" y="37" width="86" height="104" viewBox="0 0 86 104">',
        oval(20, 106, 46, 30, "#7cb765") + oval(72, 110, 40, 34, "#5fa04f") + "</svg>",
        rect(x + 47, 37, 6, 104, "#ffffff"),
        rect(x + 7, 86, 86, 6, "#ffffff"),
        rect(x - 8, 146, 116, 9, "#f4efe6"),
    ]
    curtain = pick(rng, "#c8553d", "#4d7ea8", "#7a9e5f", "#b07ab5")
    for cx, flip in ((x - 16, 1), (x + 116, -1)):
        parts.append(
            f'<path d="M{cx},22 h{26 * flip} q{4 * flip},60 {-8 * flip},140 h{-18 * flip} Z" fill="{curtain}"/>'
        )
        parts += [
            line(f"M{cx + d * flip},24 q{2 * flip},60 {-3 * flip},136", "#000000", 1.2, 0.18) for d in (7, 14, 20)
        ]
    parts.append(rect(x - 26, 18, 152, 5, "#6b4a30", 1, 2))
    opposite_x = 232 if on_the_left else 52
    if rng.random() < 0.5:
        parts += [
            rect(opposite_x + 24, 95, 4, level - 100, "#5a4636"),
            oval(opposite_x + 26, level - 3, 20, 5, "#5a4636"),
            shape(
                [(opposite_x + 8, 95), (opposite_x + 44, 95), (opposite_x + 36, 58), (opposite_x + 16, 58)], "#ffdf8a"
            ),
            oval(opposite_x + 26, 84, 54, 44, "#fff0b8", 0.25),
        ]
    else:
        parts += [
            rect(opposite_x - 6, 52, 68, 54, "#7b5a3c"),
            rect(opposite_x, 58, 56, 42, "#fdf6e6"),
            shape([(opposite_x + 4, 98), (opposite_x + 24, 70), (opposite_x + 38, 98)], "#6f9bb8"),
            shape([(opposite_x + 22, 98), (opposite_x + 40, 78), (opposite_x + 54, 98)], "#48718c"),
            oval(opposite_x + 44, 68, 5, 5, "#f5b942"),
        ]
    parts.append(oval(160, level + 62, 120, 26, pick(rng, "#8f3b3b", "#3f5f85", "#5c7a4c"), 0.75))
    parts.append(oval(160, level + 62, 100, 20, "#f4e3c3", 0.35))
    return "".join(parts)


def forest(rng: Rng) -> str:
    tones = [("#d9efb0", "#7db56a", "#3f7d45"), ("#c7e6c0", "#5f9f6e", "#2f6548"), ("#eef0b5", "#93b85c", "#4a7a38")][
        int(rng.integers(3))
    ]
    parts = [
        f"<defs>{gradient('s', *tones)}{gradient('g', '#4f7d38', '#2b4a22')}</defs>",
        rect(0, 0, SIZE, SIZE, "url(#s)"),
    ]
    for layer, (count, w0, colour, ground) in enumerate(
        [(11, 8, "#7a8f63", 215), (8, 15, "#5d5a3a", 235), (4, 28, "#4a3320", 268)]
    ):
        for x in rng.uniform(-10, 330, count):
            w = w0 * rng.uniform(0.8, 1.25)
            parts.append(
                shape(
                    [
                        (x - w * 0.42, -5),
                        (x + w * 0.42, -5),
                        (x + w * 0.5, ground - 8),
                        (x + w * 0.85, ground + 4),
                        (x - w * 0.85, ground + 4),
                        (x - w * 0.5, ground - 8),
                    ],
                    colour,
                )
            )
            if layer:
                parts.append(rect(x + w * 0.12, 0, w * 0.3, ground - 4, "#000000", 0.18))
                for _ in range(7 * layer):
                    by = rng.uniform(5, ground - 14)
                    parts.append(
                        line(
                            f"M{x - w * 0.3 + rng.uniform(0, w * 0.4):.0f},{by:.0f} v{rng.uniform(6, 18):.0f}",
                            "#1e1409",
                            1.3,
                            0.5,
                        )
                    )
        if layer == 1:
            parts.append(ridge(rng, 250, 22, 1.6, "#3d6b33", rough=3))
    for _ in range(34):
        parts.append(
            oval(
                rng.uniform(-10, 330),
                rng.uniform(-15, 38),
                rng.uniform(16, 34),
                rng.uniform(12, 22),
                pick(rng, "#2f6a2f", "#3f8238", "#579a45", "#255726"),
                0.92,
            )
        )
    for _ in range(4):
        x = rng.uniform(0, 260)
        parts.append(shape([(x, 0), (x + 26, 0), (x + 96, 290), (x + 36, 290)], "#fdffd6", 0.12))
    parts.append(ridge(rng, 282, 20, 1.3, "url(#g)", rough=2))
    for _ in range(13):
        x, y = rng.uniform(0, 320), rng.uniform(275, 322)
        for a in np.linspace(-1.25, 1.25, 7):
            h = rng.uniform(16, 30)
            parts.append(
                line(
                    f"M{x:.0f},{y:.0f} q{h * np.sin(a) * 0.4:.0f},{-h * 0.8:.0f} "
                    f"{h * np.sin(a):.0f},{-h * np.cos(a) * 0.75:.0f}",
                    pick(rng, "#5fae45", "#468f38", "#7cc255"),
                    3,
                )
            )
    for _ in range(4):
        x, y = rng.uniform(10, 310), rng.uniform(288, 316)
        parts += [rect(x - 2, y - 8, 4, 9, "#f3e8d2"), oval(x, y - 8, 7, 4.5, "#b5482f")]
    return "".join(parts)


def road(rng: Rng) -> str:
    horizon = rng.uniform(105, 140)
    tones = [("#6fb6ee", "#e6f5ff"), ("#f2a57a", "#fff0d0"), ("#9fb3c6", "#edf1f4")][int(rng.integers(3))]
    field = pick(rng, "#8dbb57", "#c9b45e", "#79a860")
    parts = [
        f"<defs>{gradient('s', *tones)}{gradient('r', '#7d7f84', '#4b4d52')}</defs>",
        rect(0, 0, SIZE, SIZE, "url(#s)"),
    ]
    parts += [
        cloud(rng, rng.uniform(20, 300), rng.uniform(20, 60), rng.uniform(60, 100), opacity=0.85) for _ in range(2)
    ]
    parts.append(ridge(rng, horizon + 4, 30, 1.4, "#7f9fb0"))
    parts.append(rect(0, horizon, SIZE, SIZE - horizon, field))
    vanish = rng.uniform(120, 200)
    for side in (-1, 1):
        for t in np.linspace(0.12, 0.85, 6):
            y = horizon + (SIZE - horizon) * t * 0.55
            x, s = vanish + side * (26 + 250 * t), 8 + 52 * t
            parts += [
                rect(x - s * 0.06, y - s * 0.5, s * 0.12, s * 0.55, "#5b4230"),
                oval(x, y - s * 0.85, s * 0.36, s * 0.5, "#4d8a41"),
                oval(x - s * 0.1, y - s * 0.95, s * 0.2, s * 0.28, "#6aa658"),
            ]
    parts.append(shape([(vanish - 9, horizon), (vanish + 9, horizon), (372, 322), (-52, 322)], "url(#r)"))
    for side, foot in ((-1, -34), (1, 354)):
        parts.append(
            shape(
                [
                    (vanish + side * 7.6, horizon),
                    (vanish + side * 8.6, horizon),
                    (foot + side * -2, 322),
                    (foot + side * -14, 322),
                ],
                "#f4f4ee",
            )
        )
    for t0 in (0.03, 0.10, 0.2, 0.34, 0.54, 0.8):
        t1 = t0 * 1.38 + 0.012
        y0, y1 = (horizon + (SIZE - horizon) * t for t in (t0, t1))
        x0, x1 = (vanish + (160 - vanish) * t for t in (t0, t1))
        parts.append(
            shape(
                [(x0 - 0.6 - 6 * t0, y0), (x0 + 0.6 + 6 * t0, y0), (x1 + 0.6 + 6 * t1, y1), (x1 - 0.6 - 6 * t1, y1)],
                "#f6d64a",
            )
        )
    return "".join(parts)


# ---- what may stand in front of an object: the lower part of a picture, its upper edge near y = 20 -----------------


def front_grass(rng: Rng) -> str:
    greens = ["#4f9f35", "#3d8a2e", "#6dbb3f", "#2f7427", "#81c748"]
    rows = [rect(0, 90, SIZE, 120, "#37822b")]
    for y in (90, 125, 160, 200):
        rows += [blade(rng, x, y + 12, rng.uniform(55, 92), pick(rng, *greens), 8) for x in rng.uniform(-5, 325, 58)]
    return "".join(rows)


def front_water(rng: Rng) -> str:
    parts = [f"<defs>{gradient('w', '#3fa3dc', '#0f5a9a')}</defs>"]
    for k, y in enumerate((30, 66, 108, 150)):
        start = -rng.uniform(0, 70)
        d = f"M{start:.0f},{y} " + " ".join("q18,-20 36,0 q18,16 36,0" for _ in range(6))
        parts.append(f'<path d="{d} V210 H-80 Z" fill="url(#w)" fill-opacity="{0.86 + 0.04 * k:.2f}"/>')
        parts.append(line(d, "#ffffff", 4, 0.85))
    return "".join(parts)


def front_underwater(rng: Rng) -> str:
    parts = [ridge(rng, 110, 24, 1.7, "#d9c38a"), rect(0, 108, SIZE, 100, "#d0b87c")]
    for _ in range(16):
        x, h, sway = rng.uniform(0, 320), rng.uniform(70, 150), rng.uniform(9, 18)
        parts.append(
            line(
                f"M{x:.0f},180 " + " ".join(f"q{sway * (-1) ** k:.0f},{-h / 8:.1f} 0,{-h / 4:.1f}" for k in range(4)),
                pick(rng, "#2f9e5b", "#1f7d4c", "#57b957"),
                rng.uniform(9, 14),
            )
        )
    for _ in range(7):
        x, colour = rng.uniform(5, 315), pick(rng, "#ff7f6b", "#ff9fb8", "#c977e0", "#ffb24d")
        parts += [
            line(f"M{x:.0f},150 q{h * np.sin(a) * 0.3:.0f},{-h * 0.5:.0f} {h * np.sin(a):.0f},{-h:.0f}", colour, 11)
            for a in np.linspace(-1, 1, 5)
            for h in [rng.uniform(50, 90)]
        ]
    return "".join(parts)


def front_snow(rng: Rng) -> str:
    parts = [
        f"<defs>{gradient('g', '#ffffff', '#cfe0f0')}</defs>",
        ridge(rng, 60, 42, 1.6, "url(#g)"),
        ridge(rng, 110, 36, 2.0, "#eef5fb"),
    ]
    parts += [oval(rng.uniform(0, 320), rng.uniform(50, 195), 2.6, 2.6, "#c4d8ea") for _ in range(40)]
    return "".join(parts)


def front_desert(rng: Rng) -> str:
    parts = [
        f"<defs>{gradient('g', '#f0c27c', '#cf9148')}</defs>",
        ridge(rng, 60, 42, 1.1, "url(#g)"),
        ridge(rng, 118, 34, 1.6, "#dba458"),
    ]
    parts += [
        line(f"M{rng.uniform(-20, 200):.0f},{y:.0f} q18,-6 36,0 t36,0 t36,0", "#b97a36", 2, 0.6)
        for y in np.linspace(60, 190, 9)
    ]
    return "".join(parts)


def front_rock(rng: Rng) -> str:
    parts = [rect(0, 110, SIZE, 100, "#7b746e")]
    for y in (110, 150, 205):
        parts += [
            boulder(rng, x, y, rng.uniform(75, 115), rng.uniform(60, 92), ("#bdb7b0", "#918a83", "#625c57"))
            for x in np.arange(10, 330, 58) + rng.uniform(-14, 14)
        ]
    return "".join(parts)


def front_autumn(rng: Rng) -> str:
    parts = [ridge(rng, 62, 28, 1.7, "#9a5a22"), rect(0, 62, SIZE, 150, "#8a4d1c")]
    for y in np.linspace(34, 204, 12):
        parts += [
            leaf(rng, x, y + rng.uniform(-6, 6), rng.uniform(11, 17), pick(rng, *LEAVES))
            for x in rng.uniform(-6, 326, 24)
        ]
    return "".join(parts)


def front_night(rng: Rng) -> str:
    parts = [
        oval(
            x, rng.uniform(70, 95), rng.uniform(34, 52), rng.uniform(36, 60), pick(rng, "#0c152e", "#111c3a", "#0a1124")
        )
        for x in np.arange(-10, 340, 30)
    ]
    parts += [rect(0, 85, SIZE, 125, "#0b1226")] + [
        blade(rng, x, 110, rng.uniform(50, 90), "#18244a", 6) for x in rng.uniform(0, 320, 44)
    ]
    return "".join(parts)


def front_city(rng: Rng) -> str:
    colour = pick(rng, "#c9c6bf", "#b85c48", "#8896a6")
    parts = [rect(0, 26, SIZE, 184, colour), rect(0, 18, SIZE, 14, "#efece4")]
    for k, y in enumerate(range(40, 210, 18)):
        parts.append(line(f"M0,{y} H320", "#4b4843", 1.6, 0.55))
        parts += [line(f"M{x},{y} v18", "#4b4843", 1.6, 0.55) for x in range(0 if k % 2 else 20, 330, 40)]
    return "".join(parts)


def front_wood(rng: Rng) -> str:
    parts = [rect(0, 22, SIZE, 188, "#8f5a2c")]
    for k, y in enumerate(range(22, 210, 46)):
        parts += [rect(0, y, SIZE, 43, ("#c28a52", "#b67c44")[k % 2]), rect(0, y, SIZE, 2.5, "#f3d6ac", 0.7)]
        parts += [
            line(
                f"M-5,{y + g} " + " ".join(f"q20,{rng.uniform(-4, 4):.1f} 41,0" for _ in range(8)), "#7a4a22", 1.3, 0.6
            )
            for g in (9, 18, 27, 35)
        ]
    parts += [
        rect(x, 12, 26, 198, "#a66b36") + rect(x + 22, 12, 4, 198, "#5f3716", 0.5)
        for x in (int(rng.integers(20, 90)), int(rng.integers(200, 270)))
    ]
    return "".join(parts)


def front_sky(rng: Rng) -> str:
    parts = [
        oval(x, rng.uniform(70, 90), rng.uniform(32, 54), rng.uniform(34, 56), "#dbe9f6")
        for x in np.arange(-10, 340, 34)
    ]
    parts += [
        oval(x, rng.uniform(80, 100), rng.uniform(32, 52), rng.uniform(32, 54), "#ffffff")
        for x in np.arange(-20, 340, 30)
    ]
    return "".join([*parts, rect(0, 95, SIZE, 115, "#ffffff")])


def front_indoor(rng: Rng) -> str:
    colour, light = [("#8a5f9e", "#a67fba"), ("#4f7d6d", "#6c9d8c"), ("#b0583f", "#cb7a62")][int(rng.integers(3))]
    parts = [rect(-20, 24, 360, 190, colour, 1, 26)]
    for x in (0, 108, 216):
        parts += [
            rect(x - 2, 34, 104, 180, light, 1, 18),
            oval(x + 50, 80, 4, 4, colour),
            oval(x + 50, 140, 4, 4, colour),
        ]
    return "".join(parts)


def front_forest(rng: Rng) -> str:
    parts = [rect(0, 112, SIZE, 100, "#2f5a27")]
    for y in (112, 150, 195):
        for x in rng.uniform(0, 320, 13):
            tone = pick(rng, "#5fae45", "#468f38", "#7cc255", "#35792f")
            for a in np.linspace(-1.35, 1.35, 9):
                h = rng.uniform(60, 96)
                parts.append(
                    line(
                        f"M{x:.0f},{y + 10:.0f} q{h * np.sin(a) * 0.35:.0f},{-h * 0.85:.0f} "
                        f"{h * np.sin(a):.0f},{-h * np.cos(a) * 0.8:.0f}",
                        tone,
                        7,
                    )
                )
    return "".join(parts)


def front_road(rng: Rng) -> str:
    parts = [rect(0, 24, SIZE, 70, "#f2f2ee"), rect(0, 94, SIZE, 116, "#5d5f64")]
    shift = int(rng.integers(-60, 0))
    parts += [shape([(x, 24), (x + 34, 24), (x + 4, 94), (x - 30, 94)], "#d63b30") for x in range(shift, 400, 68)]
    parts += [rect(0, 24, SIZE, 3, "#8d8d88"), rect(0, 91, SIZE, 5, "#8d8d88")]
    return "".join([*parts, *(rect(x, 94, 20, 116, "#8d9096") for x in (40, 250))])


CONTEXTS: dict[str, tuple[Callable[[Rng], str], Callable[[Rng], str]]] = {
    "grass": (grass, front_grass),
    "water": (water, front_water),
    "underwater": (underwater, front_underwater),
    "snow": (snow, front_snow),
    "desert": (desert, front_desert),
    "rock": (rock, front_rock),
    "autumn": (autumn, front_autumn),
    "night": (night, front_night),
    "city": (city, front_city),
    "wood": (wood, front_wood),
    "sky": (sky, front_sky),
    "indoor": (indoor, front_indoor),
    "forest": (forest, front_forest),
    "road": (road, front_road),
}


def render(body: str, height: int) -> Image.Image:
    box = f'viewBox="0 0 {SIZE} {height}" width="{SIZE}" height="{height}"'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{body}</svg>'
    png = bytes(resvg_py.svg_to_bytes(svg_string=svg, width=SIZE, skip_system_fonts=True))
    return Image.open(io.BytesIO(png))


def as_webp(image: Image.Image, quality: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=quality, method=6)
    return buffer.getvalue()


def backgrounds() -> pd.DataFrame:
    """One row a picture: context, part (scene or front), variant, webp."""
    rows = []
    for number, (context, painters) in enumerate(CONTEXTS.items()):
        for part, painter, count, height, mode in (
            ("scene", painters[0], SCENES, SIZE, "RGB"),
            ("front", painters[1], FRONTS, FRONT, "RGBA"),
        ):
            for variant in range(count):
                rng = np.random.default_rng([7, number, part == "front", variant])
                image = render(painter(rng), height).convert(mode)
                rows.append({"context": context, "part": part, "variant": variant, "webp": as_webp(image, 84)})
    return pd.DataFrame(rows)


def contact_sheet(table: pd.DataFrame, path: Path, px: int = 150) -> None:
    columns = [("scene", v) for v in range(SCENES)] + [("front", v) for v in range(FRONTS)]
    sheet = Image.new("RGB", (px * len(columns), px * len(CONTEXTS)), "#c8a2c8")
    for row in table.itertuples():
        image = (
            Image.open(io.BytesIO(row.webp))
            .convert("RGBA")
            .resize((px, px if row.part == "scene" else px * FRONT // SIZE))
        )
        sheet.paste(image, (px * columns.index((row.part, row.variant)), px * list(CONTEXTS).index(row.context)), image)
    sheet.save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sheet", type=Path, help="also write a contact sheet here")
    arguments = parser.parse_args()
    table = backgrounds()
    table.to_parquet(DEMO / "backgrounds.parquet", index=False, compression="none")
    weight = (DEMO / "backgrounds.parquet").stat().st_size / 1e6
    print(f"{len(table)} pictures of {len(CONTEXTS)} contexts, {weight:.2f} MB")
    if arguments.sheet:
        contact_sheet(table, arguments.sheet)


if __name__ == "__main__":
    main()
