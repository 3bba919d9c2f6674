"""A page without a browser, as a link opens it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

APP = Path(__file__).resolve().parent.parent.parent / "app.py"


@contextmanager
def in_workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A new workspace, in use inside the block: for a module whose tests share what pages compute of it."""
    home = tmp_path_factory.mktemp("shared") / "ws"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSVIZ_HOME", str(home))
        yield home


def link_of(app: AppTest) -> dict[str, str]:
    """The settings in the link of a page, without its dataset."""
    return {k: v[-1] if isinstance(v, list) else v for k, v in app.query_params.items() if k != "dataset"}


def open_link(page: str, dataset: str, fine: bool = True, **query: str | list[str]) -> AppTest:
    """The page ("confusion") of a dataset; `fine`: it shows no error."""
    app = AppTest.from_file(str(APP), default_timeout=600).switch_page(f"pages/{page}.py")
    for name, value in {"dataset": dataset, **query}.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception, [e.message for e in app.exception]
    assert not fine or not app.error, [e.value for e in app.error]
    return app
