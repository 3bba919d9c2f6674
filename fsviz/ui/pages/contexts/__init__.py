"""The page Contexts: the cost of a context change, the class–context table, image–text similarity, and naming."""

from __future__ import annotations

from fsviz.analyses import contexts as study
from fsviz.records import Dataset
from fsviz.ui.pages.contexts import naming, shift, table, words
from fsviz.ui.parts import links, navigation, shell
from fsviz.ui.parts.caching import cache_data
from fsviz.ui.parts.controls import pick_section
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

COST, TABLE, WORDS = "Cost of a context change", "Class–context table", "Image–text similarity"
NAMES = "Name contexts"
TABLE_KEYS = (study.ORDER.name, study.CELL.name)  # link keys of the table alone
TASK_KEYS = (shift.LOOKED.name, shift.PLACE.name)  # link keys of the task whose context changes


def show(dataset: Dataset) -> None:
    if not navigation.can_name_contexts(dataset):
        shell.require(dataset, "contexts")
    split = shell.pick_split(dataset)
    section = _pick_section(dataset)
    if section != TABLE:
        links.drop_from_link(*TABLE_KEYS)
    if section != COST:
        links.drop_from_link(*TASK_KEYS)
    if section == NAMES:
        naming.show(dataset, split)
        return
    sentence, more = study.association_answer(_association(dataset, split))
    shell.answer(escape(sentence), escape(more))
    if section == COST:
        shift.show(dataset, split)
    elif section == WORDS:
        words.show(dataset, split)
    else:
        table.show(dataset, split, study.context_table(dataset, split))
        shell.command_popover(study.command(dataset, split))


def _pick_section(dataset: Dataset) -> str:
    """The section of the link; the table opens if the dataset has no images to classify, naming without contexts."""
    sections = [COST, TABLE, WORDS] if dataset.contexts is not None else []
    sections += [NAMES] if navigation.can_name_contexts(dataset) else []
    default = COST if dataset.images is not None and "features" in dataset.capabilities else TABLE
    if dataset.contexts is None or naming.is_under_way(dataset):
        default = NAMES
    if len(sections) == 1:
        return NAMES
    return pick_section("View", sections, default, label_visibility="collapsed")


PAGE = Page(
    slug="contexts",
    label="Contexts",
    icon="🏜️",
    group="Why hard?",
    order=2,
    question="Does the classifier rely on the background?",
    lead="Which class of {dataset} appears in which context, and the cost when the context changes.",
    paper="Zhang et al. (2024), MetaCoCo",
    needs=("contexts",),
    explains=("loss_of_context", "accuracy", "interval", "cramer", "information", "words"),
    keywords=("background", "bias", "shift", "label images", "annotate"),
    show=show,
)


@cache_data("Shuffling the table", 48)
def _association(dataset: Dataset, split: str) -> dict[str, float | None]:
    return study.association(study.context_table(dataset, split))
