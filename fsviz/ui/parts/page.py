"""The record of a page, and all of them: a page is a file in pages/ and the module of the same name in fsviz/ui/pages.

The module declares its PAGE next to its `show`; the file runs it. Nothing else lists a page.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from fsviz.records import Dataset
from fsviz.shipped import ROOT

HOME = "overview"
GROUPS = ("", "Data", "Tasks", "Why hard?", "Results")  # "": in the bar itself


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of the app.

    slug      its address, and the name of its file and of its module
    label     its name in the navigation
    group     one of GROUPS, or a group of its own, which stands last
    order     its position in the group
    question  its title: the question that it answers
    lead      the line below the title; {dataset} is replaced by the dataset's title
    show      draws it
    paper     the paper it follows
    needs     what a dataset must have, or the page stays empty (see shell.OFFERS)
    takes     what it takes of the classes and the task that were selected elsewhere (see selections.arrive)
    action    what a visitor must be allowed to do for the page to be of use
    explains  the quantities in "About this page" (see about.of_page)
    keywords  other words that the search finds it by
    is_view   whether it is a second view of the page before it: in the row of its group, in no menu
    """

    slug: str
    label: str
    icon: str
    group: str
    order: int
    question: str
    lead: str
    show: Callable[[Dataset], object]
    paper: str = ""
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    action: str = ""
    explains: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    is_view: bool = False

    @property
    def file(self) -> str:
        """Its file, as Streamlit's links want it."""
        return f"pages/{self.slug}.py"


class _Pages(Mapping[str, Page]):
    """Every page by its slug, in the order of the navigation: read when first used, since pages import this module."""

    @cached_property
    def _records(self) -> dict[str, Page]:
        slugs = [path.stem for path in (ROOT / "pages").glob("*.py")]
        records = [importlib.import_module(f"fsviz.ui.pages.{slug}").PAGE for slug in slugs]
        groups = [*GROUPS, *sorted({record.group for record in records} - set(GROUPS))]
        return {page.slug: page for page in sorted(records, key=lambda p: (groups.index(p.group), p.order, p.slug))}

    def __getitem__(self, slug: str) -> Page:
        return self._records[slug]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)


PAGES: Mapping[str, Page] = _Pages()
