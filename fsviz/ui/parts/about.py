"""About this page: the quantities of a page with formula, symbols and paper.

Measures, distances, samplers and divergences are described where they are declared; QUANTITIES holds the others. The
record of a page names what it explains.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import streamlit as st

from fsviz.difficulty.measures import MEASURES
from fsviz.sampling import SAMPLERS
from fsviz.taxonomy import DISTANCES
from fsviz.ui.parts.page import Page


@dataclass(frozen=True)
class Quantity:
    """A number that pages show.

    description  one or two sentences for a student
    formula      LaTeX, "" if words are enough; symbols names every symbol in it: "W: classes of the task; c_i: ..."
    """

    title: str
    description: str
    formula: str = ""
    symbols: str = ""
    paper: str = ""


QUANTITIES: dict[str, Quantity] = {
    "accuracy": Quantity(
        "Accuracy",
        "Share of queries classified correctly. Chance level: 1 / number of classes.",
        r"a = \frac{1}{M} \sum_{m=1}^{M} [\hat{y}_m = y_m]",
        "a: the accuracy; M: queries of the task; y_m: the class of query m; hat{y}_m: its predicted class",
    ),
    "protonet": Quantity(
        "Nearest prototype (ProtoNet)",
        "Averages the support features of each class into a prototype and picks the nearest prototype.",
        r"\hat{y} = \arg\min_{c} \Big\lVert f(x) - \frac{1}{K} \sum_{k=1}^{K} f(x_{ck}) \Big\rVert",
        "hat{y}: the predicted class; x: a query; f: the backbone, image to features; c: a class of the task; K: "
        "support images per class; x_ck: the k-th of class c",
        "Snell et al. 2017",
    ),
    "interval": Quantity(
        "95% CI",
        "Confidence interval: the range that holds the true mean in 19 of 20 repetitions. It is over tasks of the same "
        "images, over other images, or over other classes; each is wider than the one before.",
        r"\bar{a} \pm t \, s",
        "bar{a}: the mean over tasks; s: its standard error, which counts tasks that share an image (or a class) as "
        "dependent if the interval is over images (or classes); t: 1.96, or more if s rests on few images or classes",
    ),
    "paired": Quantity(
        "Paired difference",
        "Difference between two methods on the same tasks, averaged over tasks. Task difficulty cancels, so small "
        "differences become significant. Several comparisons are corrected by Holm's method.",
        r"\bar{d} = \frac{1}{T} \sum_{t=1}^{T} (a_t - b_t), \quad \bar{d} \pm 1.96 \, s",
        "T: tasks; a_t, b_t: accuracy of the two methods on task t; bar{d}: the mean difference; s: its standard error",
        "Holm 1979",
    ),
    "correlation": Quantity(
        "Correlation",
        "How well a straight line predicts accuracy from a measure: 1 or -1 if it meets every point, 0 if there is no "
        "association. Its square is the share of the variance explained.",
        r"r = \frac{\sum_{t} (v_t - \bar{v})(a_t - \bar{a})}"
        r"{\sqrt{\sum_{t} (v_t - \bar{v})^2 \sum_{t} (a_t - \bar{a})^2}}",
        "r: Pearson's correlation; t: a task; v_t: its measure; a_t: its accuracy; bar{v}, bar{a}: their means over "
        "tasks. Spearman's correlation uses ranks instead",
    ),
    "points": Quantity(
        "Points per cause",
        "Percentage points of accuracy that a cause accounts for between two tasks, on the regression line through all "
        "tasks. Causes overlap, so their points do not add up.",
        r"b \, (v_e - v_h), \quad b = r \, \frac{s_a}{s_v}",
        "v_e, v_h: the cause in the easy and in the hard task; b: accuracy per unit of the cause; r: their "
        "correlation; s_a, s_v: standard deviations of accuracy and cause over tasks",
    ),
    "untypical": Quantity(
        "Support atypicality",
        "Distance of support images from their class centre, relative to the usual distance (1 = typical).",
        r"\frac{1}{NK} \sum_{i=1}^{NK} \frac{\lVert f(x_i) - \mu_i \rVert}{s_i}",
        "N: classes of the task; K: support images per class; x_i: a support image; f: the backbone, image to "
        "features; mu_i: the mean of its class; s_i: the root mean squared distance of the class's images to it",
    ),
    "neighbours": Quantity(
        "Nearest neighbours",
        "Images with the most similar features, by cosine: 1 is the same direction, 0 is unrelated.",
        r"\cos(x, y) = \frac{f(x) \cdot f(y)}{\lVert f(x) \rVert \, \lVert f(y) \rVert}",
        "x, y: two images; f: the backbone, image to features",
    ),
    "map": Quantity(
        "Neighbours preserved by the map",
        "Share of the ten nearest neighbours of an image that are also neighbours on the t-SNE map: how far the map "
        "can be trusted. Distances across the map mean little.",
        r"\frac{1}{n} \sum_{i=1}^{n} \frac{|N_i \cap P_i|}{k}",
        "n: images; N_i: the k nearest images of image i by cosine, in all dimensions; P_i: its k nearest on the map; "
        "k: ten",
        "van der Maaten & Hinton 2008",
    ),
    "gap": Quantity(
        "Attribute shift",
        "Difference between support and queries in an attribute. Categories: half the sum of the differences of shares "
        "(0 the same, 1 nothing in common). Numbers: the difference of means in standard deviations of the dataset.",
        r"\frac{1}{2} \sum_{v} |p_v - q_v| \quad \text{or} \quad \frac{|\bar{p} - \bar{q}|}{s}",
        "v: a value of the attribute; p_v, q_v: its share among support and query images; bar{p}, bar{q}: means of a "
        "numeric attribute over both; s: its standard deviation over the dataset",
        "Basu et al. 2023",
    ),
    "hard_support": Quantity(
        "Hard and easy support sets",
        "Support images with which few (hard) or many (easy) queries of a task are correct. Starting from the set of "
        "FastDiffSel, one image at a time gives way to the image of its class with the fewest or most correct queries, "
        "until nothing changes; the query loss decides ties. A search is no proof: harder sets may exist.",
        r"\min_{S} \; \frac{1}{n} \sum_{i=1}^{n} [\hat{y}_i(S) = y_i]",
        "S: support images, none of them a query; n: queries of the task; y: the class of query i; hat{y}: its "
        "prediction by the nearest prototype of S; min: max for easy sets",
    ),
    "fastdiffsel": Quantity(
        "FastDiffSel",
        "Every image that is not a query gets a weight; one gradient step up the query loss raises the weights of "
        "harmful images, and the largest become the hard support. A step down gives the easy support.",
        r"w_i \leftarrow w_i + \eta \, \frac{\partial L}{\partial w_i}, \quad "
        r"c_j = \frac{\sum_{i} w_i f_i}{\sum_{i} w_i}",
        "i: an image of class j; w_i: its weight; f_i: its features; c_j: the prototype of class j; L: the mean loss "
        "of the queries under the prototypes; eta: the step",
        "Basu et al. 2023",
    ),
    "pair_confusion": Quantity(
        "Class overlap (Louvain)",
        "How mixed two classes are in communities of similar images, which Louvain's algorithm detects without labels: "
        "0 bits separate, 1 bit fully mixed. The graph keeps 20 edges per image, at most a fifth of the images. "
        "Overlap is not error: errors are measured on tasks.",
        r"H(Y \mid C) = \sum_{c} \frac{|c|}{|V|} \, h(p_c) \\[1ex] h(p) = -p \log_2 p - (1 - p) \log_2 (1 - p)",
        "H: remaining uncertainty about the class, in bits; Y: the class; C: the communities; c: one of them; |c|: its "
        "images; |V|: images of both classes; p_c: share of the first class in c; h: the entropy of a share p",
        "Bontonou et al. 2020",
    ),
    "cramer": Quantity(
        "Cramér's V",
        "Strength of the association between class and context: 0 none, 1 perfect.",
        r"V = \sqrt{\frac{\chi^2 / n}{\min(R, K) - 1}}",
        "V: the association; chi: its square is the sum of (observed − expected)² / expected over the table, less what "
        "is expected by chance; n: images; R, K: classes and contexts",
        "Cramér 1946, Bergsma 2013",
    ),
    "information": Quantity(
        "Association of one class with one context",
        "In bits: 1 means that they occur together twice as often as if they were independent.",
        r"\log_2 \frac{p(r, k)}{p(r) \, p(k)}",
        "r, k: a class and a context; p: share of images",
    ),
    "words": Quantity(
        "Image-text similarity",
        "An image-text model compares an image with the text of its class and with that of its context. If the second "
        "is larger, the background dominates.",
        r"M_{n} = \cos(f(x), g(n)), \quad M_{k} = \cos(f(x), g(k))",
        "M_n, M_k: M concept and M context; x: an image; n: the text of its class; k: that of its context; f, g: the "
        "model's features of images and of texts",
        "Zhang et al. 2024",
    ),
    "loss_of_context": Quantity(
        "Cost of context shift",
        "Paired difference in accuracy: the same queries with support images from the queries' contexts, from other "
        "contexts, or from the contexts of another class's queries.",
        r"\frac{1}{T} \sum_{t=1}^{T} (a_t - b_t)",
        "T: tasks; a_t: accuracy of task t with support of the same contexts; b_t: with the other support",
        "Zhang et al. 2024",
    ),
    "clustering": Quantity(
        "A split by divergence (ATG)",
        "Fits two centroids that describe all classes and have the target divergence R. Classes are ordered by how "
        "much more likely one centroid is than the other; one end becomes test and val.",
        r"J = -\sum_{i} \log \frac{p_i + q_i}{2} + \lambda \, (D(p, q) - R)^2 \\[1ex] "
        r"p_i \propto e^{-\lVert x_i - \mu_p \rVert^2}",
        "J: the objective to minimise; i: a class; x_i: its mean feature; mu_p: the train centroid; p_i: the share of "
        "class i under it; q_i: the same under the test centroid; D: the divergence of p and q; R: the target "
        "divergence; lambda: the divergence weight",
        "Arnold & Sha 2021",
    ),
    "nearest_train": Quantity(
        "Nearest training class",
        "Distance from a test class to the most similar training class, averaged over test classes.",
        r"\frac{1}{|E|} \sum_{e \in E} \min_{b \in B} \lVert \mu_e - \mu_b \rVert",
        "E: the test classes; e: one of them; B: the training classes; b: one of them; mu_e, mu_b: mean features of "
        "unit length",
    ),
    "rand": Quantity(
        "Adjusted Rand index",
        "Agreement of clusters with classes over pairs of images, less what is expected by chance: 1 is perfect, 0 is "
        "chance level. Used without labels, where accuracy is not defined.",
        r"\frac{I - E}{X - E}",
        "I: pairs that both clusters and classes keep together; E: pairs expected by chance; X: the maximum of I",
        "Hubert & Arabie 1985",
    ),
    "explained": Quantity(
        "Held-out R²",
        "Share of the variation in accuracy explained on tasks not used for fitting: 1 all, 0 none; below 0 is worse "
        "than always predicting the mean.",
        r"R = 1 - \frac{\sum_{t} (a_t - \hat{a}_t)^2}{\sum_{t} (a_t - \bar{a})^2}",
        "R: held-out R²; t: a task; a_t: its accuracy; hat{a}_t: the predicted accuracy; bar{a}: the mean over tasks",
    ),
    "importance": Quantity(
        "Importance of a cause",
        "Half the drop in held-out R² when the measures of one cause are shuffled between tasks. Half, because "
        "shuffled measures both lose information and add as much noise.",
        r"I_{j} = \frac{1}{2} (R - R_{j})",
        "I_j: the importance of cause j; R: held-out R²; R_j: the same with the values of cause j shuffled",
        "Breiman 2001",
    ),
    "percentile": Quantity(
        "Percentile",
        "Share of the testbed's tasks with a lower value; equal values count half.",
    ),
    "features": Quantity(
        "Features",
        "One vector of numbers per image, computed by a frozen backbone. Every method classifies the same features; "
        "extracting them is the slow step and happens once.",
    ),
    "copies": Quantity(
        "Duplicates",
        "Images of the same picture, saved again or hardly changed: their 16 × 16 pixel thumbnails differ by no more "
        "than saving does. A task never has duplicates in both support and query.",
    ),
    "pixels": Quantity(
        "Pixel attributes",
        "Brightness and contrast: mean and standard deviation of the grey levels (0 to 1). Sharpness: standard "
        "deviation of their Laplacian. Clutter: share of pixels on edges.",
    ),
    "senses": Quantity(
        "WordNet senses",
        "Each class is mapped to a noun of WordNet, by its name or by your correction. Guessed senses are listed and "
        "can be edited.",
        paper="Miller 1995",
    ),
}


def of_page(page: Page) -> list[Quantity]:
    """The quantities that a page explains, each once."""
    from fsviz.analyses.class_splits import DIVERGENCES

    groups = {
        "measures": [_measure(name) for name in MEASURES],
        "distances": [_distance(name) for name in DISTANCES],
        "samplers": [
            Quantity(f"{s.title} sampler", s.description, s.formula, s.symbols, s.paper)
            for s in SAMPLERS.values()
            if s.formula
        ],
        "divergences": [
            Quantity(f"{d.title} divergence", d.description, d.formula, d.symbols, "Arnold & Sha 2021")
            for d in DIVERGENCES.values()
        ],
    }
    quantities: dict[str, Quantity] = {}
    for name in page.explains:
        kind, _, rest = name.partition(":")
        if name in groups:
            several = groups[name]
        elif kind == "distance":
            several = [_distance(rest)]
        else:
            several = [QUANTITIES[name] if name in QUANTITIES else _measure(name)]
        quantities |= {quantity.title: quantity for quantity in several}
    return list(quantities.values())


def show(page: Page) -> None:
    """Shows the paper and the quantities of a page, one below the other."""
    from fsviz.ui.parts.shell import escape, responsive_columns  # which imports this module

    if page.paper:
        st.markdown(f"Paper: {escape(page.paper)}")
    for i, quantity in enumerate(of_page(page)):
        left, right = responsive_columns(f"explained_{i}", 2, gap="large", vertical_alignment="center")
        paper = f" · {escape(quantity.paper)}" if quantity.paper else ""
        left.markdown(f"**{escape(quantity.title)}**{paper}  \n{escape(sentence(quantity.description))}")
        if quantity.formula:
            right.latex(quantity.formula)
            right.caption(as_written(quantity.symbols))


GREEK = (
    "alpha",
    "beta",
    "chi",
    "delta",
    "eta",
    "gamma",
    "lambda",
    "mu",
    "nu",
    "phi",
    "pi",
    "rho",
    "sigma",
    "tau",
    "theta",
)
_GREEK = re.compile(rf"\b({'|'.join(GREEK)})(?![a-z])")
_ACCENT = re.compile(r"\b(hat|bar)(?=\{)")


def sentence(text: str) -> str:
    """A text with a capital letter, unless it begins with a name such as t-SNE."""
    return text if text[1:2] == "-" else text[:1].upper() + text[1:]


def as_written(symbols: str) -> str:
    r"""Named symbols in Markdown, each as in the formula: "mu_c: the centre" as "$\mu_{c}$: the centre"."""
    lines = []
    for line in symbols.split("; "):
        symbol_names, _, words = line.partition(": ")
        written = _ACCENT.sub(r"\\\1", _GREEK.sub(r"\\\1", symbol_names))
        written = ", ".join("$" + re.sub(r"_(\w+)", r"_{\1}", symbol) + "$" for symbol in written.split(", "))
        lines.append(f"{written}: {words}")
    return "; ".join(lines)


def _measure(name: str) -> Quantity:
    m = MEASURES[name]
    return Quantity(m.title, m.tooltip, m.formula, m.symbols, m.source)


def _distance(name: str) -> Quantity:
    d = DISTANCES[name]
    return Quantity(f"{d.title} distance", d.description, d.formula, d.symbols, d.paper)
