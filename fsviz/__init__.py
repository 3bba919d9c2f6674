"""fsviz shows why a few-shot image-classification task is hard.

In a notebook, a few verbs do what the pages do (docs/how-to/notebook.md shows them):

    load, add, extract      a dataset, your images as one, their features
    check, label            a first check of a dataset; contexts and attributes that you give to its images
    sample                  tasks, as a testbed
    evaluate, compare       methods (also yours) on the same tasks; what came out, paired
    hard, measure           support sets that make a classifier fail; numbers that say how hard a task is
    plot                    the figure of any of these, by Plotly
    torch_images, torch_tasks
                            a torch Dataset and BatchSampler over a dataset and a testbed, for your own loop

Importing this package does no work: verbs and rooms (sub-packages) are imported where they are used.
"""

from typing import Any

__version__ = "0.1.0"

VERBS = (
    *("add", "check", "compare", "evaluate", "extract", "hard", "label", "load", "measure", "plot", "sample", "sweep"),
    *("torch_images", "torch_tasks", "Evaluation"),
)


def __getattr__(name: str) -> Any:
    if name not in VERBS:
        raise AttributeError(f"module 'fsviz' has no attribute {name!r}")
    from fsviz import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *VERBS])
