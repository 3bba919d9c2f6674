"""A page without a browser, as a link opens it."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

APP = Path(__file__).resolve().parent.parent.parent / "app.py"


def open_link(page: str, dataset: str, fine: bool = True, **query: str | list[str]) -> AppTest:
    """The page ("7_Confusion") of a dataset; `fine`: it shows no error."""
    app = AppTest.from_file(str(APP), default_timeout=600).switch_page(f"pages/{page}.py")
    for name, value in {"dataset": dataset, **query}.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception, [e.message for e in app.exception]
    assert not fine or not app.error, [e.value for e in app.error]
    return app
