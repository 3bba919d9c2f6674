"""About this page: the numbers that it shows, with their formula, every symbol named, and their paper.

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

TITLE = "About this page"


@dataclass(frozen=True)
class Quantity:
    """A number that pages show.

    what     in a sentence or two for a student
    formula  LaTeX, "" where words are enough; symbols names every symbol in it: "W: classes of the task; c_i: ..."
    """

    title: str
    what: str
    formula: str = ""
    symbols: str = ""
    paper: str = ""


QUANTITIES: dict[str, Quantity] = {
    "accuracy": Quantity(
        "Accuracy",
        "The share of a task's queries that are named rightly. Guessing gets one in as many as the task has classes.",
        r"a = \frac{1}{M} \sum_{m=1}^{M} [\hat{y}_m = y_m]",
        "a: the accuracy; M: queries of the task; y_m: the class of query m; hat{y}_m: the class that it is given",
    ),
    "protonet": Quantity(
        "Nearest prototype (ProtoNet)",
        "The support images of a class are averaged, as features, into its prototype; a query gets the class of the "
        "nearest one.",
        r"\hat{y} = \arg\min_{c} \Big\lVert f(x) - \frac{1}{K} \sum_{k=1}^{K} f(x_{ck}) \Big\rVert",
        "hat{y}: the answer; x: a query; f: the backbone, image to features; c: a class of the task; K: support images "
        "per class; x_ck: the k-th of class c",
        "Snell et al. 2017",
    ),
    "interval": Quantity(
        "95% interval",
        "What stands after ±. Other tasks of these images would give a mean within it nineteen times in twenty. Other "
        "images or other classes may differ more: an interval over images or classes says so, and is wider.",
        r"\bar{a} \pm t \, s",
        "bar{a}: the mean over tasks; s: its standard error, for which tasks that share an image (or a class) are not "
        "independent where the interval is over images (or classes); t: 1.96, or more where little is known of s",
    ),
    "paired": Quantity(
        "Difference on the same tasks",
        "Two methods that saw the same tasks are compared task by task: what makes a task hard for both cancels, so "
        "that small differences can be told from chance. Where many are compared, p is raised by Holm's rule.",
        r"\bar{d} = \frac{1}{T} \sum_{t=1}^{T} (a_t - b_t), \quad \bar{d} \pm 1.96 \, s",
        "T: tasks; a_t, b_t: accuracy of the two methods on task t; bar{d}: the mean difference; s: its standard error",
        "Holm 1979",
    ),
    "correlation": Quantity(
        "Correlation",
        "How well a straight line through all tasks would do: 1 or -1 where it meets every point, 0 where a measure "
        "tells nothing. Its square is the share of the variance that the line explains.",
        r"r = \frac{\sum_{t} (v_t - \bar{v})(a_t - \bar{a})}"
        r"{\sqrt{\sum_{t} (v_t - \bar{v})^2 \sum_{t} (a_t - \bar{a})^2}}",
        "r: Pearson's correlation; t: a task; v_t: its measure; a_t: its accuracy; bar{v}, bar{a}: their means over "
        "tasks. Spearman's is the same of ranks",
    ),
    "points": Quantity(
        "Points that go with a cause",
        "The line through all tasks, read at two of them. Causes overlap, so their points do not add up.",
        r"b \, (v_e - v_h), \quad b = r \, \frac{s_a}{s_v}",
        "v_e, v_h: the cause in the easy and in the hard task; b: accuracy per unit of the cause; r: their "
        "correlation; s_a, s_v: standard deviations of accuracy and cause over tasks",
    ),
    "untypical": Quantity(
        "How typical support images are",
        "How far the support images of a task are from the middle of their class, by how far its images usually are: "
        "1 is usual, more is less typical.",
        r"\frac{1}{NK} \sum_{i=1}^{NK} \frac{\lVert f(x_i) - \mu_i \rVert}{s_i}",
        "N: classes of the task; K: support images per class; x_i: a support image; f: the backbone, image to "
        "features; mu_i: the mean of its class; s_i: the root mean squared distance of the class's images to it",
    ),
    "neighbours": Quantity(
        "Nearest neighbours",
        "What a backbone sees of an image is a list of numbers, its features. Images are compared by the angle between "
        "them: 1 is the same direction, 0 has nothing in common.",
        r"\cos(x, y) = \frac{f(x) \cdot f(y)}{\lVert f(x) \rVert \, \lVert f(y) \rVert}",
        "x, y: two images; f: the backbone, image to features",
    ),
    "map": Quantity(
        "Neighbours kept by the map",
        "t-SNE puts images that are near each other in all dimensions near each other on paper. Distances across the "
        "map mean little; how many of the nearest ten are still neighbours on it tells how far it can be trusted.",
        r"\frac{1}{n} \sum_{i=1}^{n} \frac{|N_i \cap P_i|}{k}",
        "n: images looked at; N_i: the k nearest images of image i by cosine, in all dimensions; P_i: its k nearest on "
        "the map; k: ten",
        "van der Maaten & Hinton 2008",
    ),
    "gap": Quantity(
        "Attribute gap",
        "How much support and queries differ in context, style, blur and the like: for kinds, half the sum of the "
        "differences of shares (0 the same, 1 nothing in common); for numbers, the difference of means in standard "
        "deviations of the dataset.",
        r"\frac{1}{2} \sum_{v} |p_v - q_v| \quad \text{or} \quad \frac{|\bar{p} - \bar{q}|}{s}",
        "v: a value of the attribute; p_v, q_v: its share among support and query images; bar{p}, bar{q}: means of a "
        "numeric attribute over both; s: its standard deviation over the dataset",
        "Basu et al. 2023",
    ),
    "fastdiffsel": Quantity(
        "Hard and easy support sets (FastDiffSel)",
        "Every image that is no query could be in the support. Each gets a weight; one step uphill on the loss of the "
        "queries raises the weights of images that hurt, and the heaviest are the hard support. Downhill gives the "
        "easy one.",
        r"w_i \leftarrow w_i + \eta \, \frac{\partial L}{\partial w_i}, \quad "
        r"c_j = \frac{\sum_{i} w_i f_i}{\sum_{i} w_i}",
        "i: an image of class j; w_i: its weight; f_i: its features; c_j: the prototype of class j; L: the mean loss "
        "of the queries under the prototypes; eta: the step",
        "Basu et al. 2023",
    ),
    "pair_confusion": Quantity(
        "Confusion of two classes",
        "All images of both are joined by how alike they look, and Louvain's algorithm finds communities without "
        "looking at labels. 0 bits: every community is of one class; 1 bit: communities know nothing of the classes.",
        r"H(Y \mid C) = \sum_{c} \frac{|c|}{|V|} \, h(p_c) \\[1ex] h(p) = -p \log_2 p - (1 - p) \log_2 (1 - p)",
        "H: what is left unknown of the class, in bits; Y: the class; C: the communities; c: one of them; |c|: its "
        "images; |V|: images of both classes; p_c: the share of c that is of the first class; h: the entropy of a "
        "share p",
        "Bontonou et al. 2020",
    ),
    "cramer": Quantity(
        "How concept and context are tied (Cramér's V)",
        "0 where every concept is seen in every context alike, 1 where one decides the other; beside it what chance "
        "alone would give.",
        r"V = \sqrt{\frac{\chi^2 / n}{\min(R, K) - 1}}",
        "V: the tie; chi: its square is the sum of (seen − expected)² / expected over the table, less what chance "
        "adds; n: images; R, K: concepts and contexts",
        "Cramér 1946, Bergsma 2013",
    ),
    "information": Quantity(
        "Tie of one concept to one context",
        "In bits: 1 means the two come together twice as often as if they had nothing to do with each other.",
        r"\log_2 \frac{p(r, k)}{p(r) \, p(k)}",
        "r, k: a concept and a context; p: share of images",
    ),
    "words": Quantity(
        "Image against words",
        "An image-text model puts images and texts into one space. An image is compared with the words for its concept "
        "and with those for its context; where the second is larger, the background speaks louder.",
        r"M_{n} = \cos(f(x), g(n)), \quad M_{k} = \cos(f(x), g(k))",
        "M_n, M_k: M concept and M context; x: an image; n: the text of its concept; k: that of its context; f, g: the "
        "model's features of images and of texts",
        "Zhang et al. 2024",
    ),
    "loss_of_context": Quantity(
        "What other contexts cost",
        "The same classes and the same queries, with support images of the queries' contexts, of others, or of those "
        "in which other classes are asked: the difference of the accuracies, task by task.",
        r"\frac{1}{T} \sum_{t=1}^{T} (a_t - b_t)",
        "T: tasks; a_t: accuracy of task t with support of the same contexts; b_t: with the other support",
        "Zhang et al. 2024",
    ),
    "clustering": Quantity(
        "A split by divergence (ATG)",
        "Two centroids are sought that describe all classes together and are as far apart as was asked for. Classes "
        "stand in the order of how much more likely one centroid is than the other; the test end is test and val.",
        r"J = -\sum_{i} \log \frac{p_i + q_i}{2} + \lambda \, (D(p, q) - R)^2 \\[1ex] "
        r"p_i \propto e^{-\lVert x_i - \mu_p \rVert^2}",
        "J: what is minimised; i: a class; x_i: its mean feature; mu_p: the train centroid; p_i: the share of class i "
        "under it; q_i: the same under the test centroid; D: the divergence of p and q; R: the one that is asked for; "
        "lambda: how much missing it costs",
        "Arnold & Sha 2021",
    ),
    "nearest_train": Quantity(
        "Nearest training class",
        "How far a test class is from the training class that is most like it, mean over test classes.",
        r"\frac{1}{|E|} \sum_{e \in E} \min_{b \in B} \lVert \mu_e - \mu_b \rVert",
        "E: the test classes; e: one of them; B: the training classes; b: one of them; mu_e, mu_b: mean features of "
        "unit length",
    ),
    "rand": Quantity(
        "Adjusted Rand index",
        "Without labels there is no accuracy. How well clusters agree with classes is counted over pairs of images, "
        "less what chance would give: 1 is perfect, 0 is chance.",
        r"\frac{I - E}{X - E}",
        "I: pairs that clusters and classes both keep together; E: how many chance would; X: the most there could be",
        "Hubert & Arabie 1985",
    ),
    "explained": Quantity(
        "Share explained",
        "How much of the differences between tasks a prediction explains, on tasks that it was not fitted to: 1 is "
        "all, 0 is no better than always saying the mean; below 0 is worse.",
        r"R = 1 - \frac{\sum_{t} (a_t - \hat{a}_t)^2}{\sum_{t} (a_t - \bar{a})^2}",
        "R: the share; t: a task; a_t: its accuracy; hat{a}_t: the predicted one; bar{a}: the mean over tasks",
    ),
    "importance": Quantity(
        "Importance of a cause",
        "What is lost of the share explained when the numbers of one cause are dealt to the wrong tasks, on tasks "
        "that the prediction was not fitted to. Half of it: a wrong number lacks what it knew, and adds as much noise.",
        r"I_{j} = \frac{1}{2} (R - R_{j})",
        "I_j: the importance of cause j; R: the share explained; R_j: the same with the values of cause j shuffled",
        "Breiman 2001",
    ),
    "percentile": Quantity(
        "Percentile",
        "The share of the testbed's tasks whose measure is lower than this task's, equal ones counted half.",
    ),
    "features": Quantity(
        "Features",
        "What a frozen backbone makes of an image: a list of some hundred or thousand numbers. fsviz classifies by "
        "them, so that every method sees the same; extracting them is the slow step, and is done once.",
    ),
    "copies": Quantity(
        "Copies",
        "Images that are the same picture, saved again or hardly changed: their glimpses of 16 × 16 pixels differ by "
        "no more than saving does. A task keeps them on one side, else it would ask what it has shown.",
    ),
    "pixels": Quantity(
        "Attributes of the pixels",
        "Brightness and contrast are the mean and the standard deviation of the grey levels (0 to 1), sharpness that "
        "of their Laplacian, which is the difference of a pixel to its neighbours; clutter is the share of pixels at "
        "edges.",
    ),
    "senses": Quantity(
        "Senses",
        "A class gets its place among meanings through a noun of WordNet: its name, or what you say it means. What was "
        "guessed is told, and can be corrected.",
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
    found: dict[str, Quantity] = {}
    for name in page.explains:
        kind, _, one = name.partition(":")
        if name in groups:
            several = groups[name]
        elif kind == "distance":
            several = [_distance(one)]
        else:
            several = [QUANTITIES[name] if name in QUANTITIES else _measure(name)]
        found |= {quantity.title: quantity for quantity in several}
    return list(found.values())


def show(page: Page) -> None:
    """The paper and the numbers of a page, one below the other."""
    from fsviz.ui.parts.shell import escape, responsive_columns  # which imports this module

    if page.paper:
        st.markdown(f"Paper: {escape(page.paper)}")
    for i, quantity in enumerate(of_page(page)):
        left, right = responsive_columns(f"explained_{i}", 2, gap="large", vertical_alignment="center")
        paper = f" · {escape(quantity.paper)}" if quantity.paper else ""
        left.markdown(f"**{escape(quantity.title)}**{paper}  \n{escape(quantity.what[:1].upper() + quantity.what[1:])}")
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


def as_written(symbols: str) -> str:
    r"""Named symbols in Markdown, each as the formula writes it: "mu_c: the centre" as "$\mu_{c}$: the centre"."""
    said = []
    for line in symbols.split("; "):
        named, _, words = line.partition(": ")
        written = _ACCENT.sub(r"\\\1", _GREEK.sub(r"\\\1", named))
        written = ", ".join("$" + re.sub(r"_(\w+)", r"_{\1}", one) + "$" for one in written.split(", "))
        said.append(f"{written}: {words}")
    return "; ".join(said)


def _measure(name: str) -> Quantity:
    m = MEASURES[name]
    return Quantity(m.title, m.tooltip, m.formula, m.symbols, m.source)


def _distance(name: str) -> Quantity:
    d = DISTANCES[name]
    return Quantity(f"{d.title} distance", d.description, d.formula, d.symbols, d.paper)
