"""A key of a link means one thing on every page: what is picked on one page travels to others by it.

Nothing is opened here: the sources of the pages say which settings and names they put into links.
"""

from __future__ import annotations

import ast
import importlib
import math
import pkgutil
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from streamlit.testing.v1 import AppTest

from fsviz import ui
from fsviz.settings import N_QUERY, N_SHOT, N_TASKS, N_WAY, SEED, Setting

# Which argument of a function is a key of the link: its place, or its name.
KEY_OF: dict[str, tuple[int, str]] = {
    "several_of": (1, "key"),
    "names_of": (1, "key"),
    "keep": (0, "key"),
    "selection": (0, "name"),
    "chart": (3, "name"),
    "table": (3, "name"),
    "tasks": (5, "name"),
    "pick_task": (7, "name"),
}
HOLDERS = {"links", "drilldown", "task_list"}


@cache
def tree_of(module: ModuleType) -> ast.Module:
    return ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))


@cache
def assigned(module: ModuleType) -> dict[str, ast.expr]:
    """Assignments at the top level of a module: name -> expression."""
    return {
        target.id: node.value
        for node in tree_of(module).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


@cache
def imported(module: ModuleType) -> dict[str, tuple[str, str]]:
    """Names that a module takes from others of fsviz -> that module and the name there."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in tree_of(module).body
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("fsviz")
        for alias in node.names
    }


def value_of(module: ModuleType, expression: ast.expr) -> Any:
    """The value of an expression at module level; None if only a run of the page could tell."""
    if isinstance(expression, ast.Constant):
        return expression.value
    if isinstance(expression, ast.Name):
        return vars(module).get(expression.id)
    holder = value_of(module, expression.value) if isinstance(expression, ast.Attribute) else None
    return getattr(holder, expression.attr, None) if isinstance(holder, ModuleType | Setting) else None


def name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def declaration(module: ModuleType, expression: ast.expr) -> tuple[str, str] | None:
    """The key of the setting that an expression stands for, and where it is declared; None where it is no setting."""
    here = f"{module.__name__}:{expression.lineno}"
    if isinstance(expression, ast.Call) and name_of(expression) == "Setting":
        key = value_of(module, expression.args[0])
        return (key, here) if isinstance(key, str) else None
    call = expression if isinstance(expression, ast.Call) else None
    if call is not None and name_of(call) == "with_" and isinstance(call.func, ast.Attribute):
        renamed = next((value_of(module, k.value) for k in call.keywords if k.arg == "name"), None)
        return (renamed, here) if renamed else declaration(module, call.func.value)
    if not isinstance(value_of(module, expression), Setting):
        return None
    if isinstance(expression, ast.Attribute):
        return declaration(value_of(module, expression.value), _at_top(expression.attr))
    assert isinstance(expression, ast.Name)
    if expression.id in assigned(module):
        return declaration(module, assigned(module)[expression.id])
    source, name = imported(module)[expression.id]
    return declaration(importlib.import_module(source), _at_top(name))


def _at_top(name: str) -> ast.Name:
    return ast.Name(name, ast.Load(), lineno=0, col_offset=0, end_lineno=0, end_col_offset=0)


def keys_in(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Every key that a module of pages puts into links, and where its meaning is declared.

    Names of what is clicked, and of widgets that Streamlit keeps in the link, have the page as their place.
    """
    page = ".".join(module.__name__.split(".")[:4])  # a page may be a folder of modules
    elsewhere: set[ast.AST] = set()  # settings that are drawn under another key than their own, or only read
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Attribute) and node.attr not in ("with_", "name"):
            elsewhere.add(node.value)
        if isinstance(node, ast.Call):
            keywords = {k.arg: k.value for k in node.keywords}
            if name_of(node) == "pick" and "key" in keywords:
                elsewhere |= set(ast.walk(node.args[0]))
            for expression in _key_arguments(node, keywords):
                key = value_of(module, expression)
                if isinstance(key, str) and not (isinstance(expression, ast.Attribute) and expression.attr == "name"):
                    yield key, page
        if isinstance(node, ast.Call | ast.Name | ast.Attribute) and node not in elsewhere:
            key_and_place = declaration(module, node)
            if key_and_place is not None:
                yield key_and_place


def _key_arguments(call: ast.Call, keywords: dict[str | None, ast.expr]) -> Iterator[ast.expr]:
    if "bind" in keywords or (name_of(call) == "pick" and "key" in keywords):
        yield keywords["key"]
    holder = getattr(getattr(call.func, "value", None), "id", "")
    if holder in HOLDERS and name_of(call) in KEY_OF:
        place, name = KEY_OF[name_of(call)]
        if name in keywords or len(call.args) > place:
            yield keywords[name] if name in keywords else call.args[place]


def pages() -> Iterator[ModuleType]:
    for module_info in pkgutil.walk_packages(ui.__path__, "fsviz.ui."):
        yield importlib.import_module(module_info.name)


def namespaces() -> list[dict[str, Any]]:
    """Module-level names of all pages and of the modules that they import."""
    of_pages = [vars(module) for module in pages()]
    return of_pages + [vars(v) for names in of_pages for v in list(names.values()) if isinstance(v, ModuleType)]


def test_a_key_is_declared_once_for_all_pages() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for module in pages():
        for key, place in keys_in(module):
            places[key].add(place)
    assert {"split", "classes", "task", "task_name", "image", "show", "bar", "table_order"} <= set(places)
    assert {key: sorted(key_places) for key, key_places in places.items() if len(key_places) > 1} == {}


def test_numbers_have_the_same_limits_under_the_same_key() -> None:
    """A page or study may have another default; limits that depend on the dataset are set where tasks are drawn.

    Settings of a training have their own keys in links.
    """
    shared = {setting.name: setting for setting in (N_WAY, N_SHOT, N_QUERY, N_TASKS, SEED)}
    declared = [
        item
        for namespace in namespaces()
        if namespace["__name__"].startswith("fsviz.") and namespace["__name__"] != "fsviz.studies.training"
        for value in namespace.values()
        for item in (value.values() if isinstance(value, dict) else (value,))
        if isinstance(item, Setting) and item.name in shared
    ]
    assert {item.name for item in declared} == set(shared) and len(declared) > 30
    assert [item for item in declared if item.high != shared[item.name].high] == []


def numeric_settings() -> dict[str, Setting]:
    """Every number that a page or study declares, by where it is declared."""
    return {
        f"{namespace['__name__']}.{setting.name}": setting
        for namespace in namespaces()
        if namespace.get("__name__", "").startswith("fsviz.")
        for value in namespace.values()
        for setting in (value.values() if isinstance(value, dict) else (value,))
        if isinstance(setting, Setting) and setting.kind in ("int", "float")
    }


def _one_setting_from_its_link() -> None:
    import streamlit as st

    from fsviz.ui.parts import controls, links

    setting, text, as_slider = st.session_state["request"]
    st.query_params[setting.name] = text
    controls.pick(setting, as_slider=as_slider)
    st.session_state["ignored"] = links.ignored({setting.name: text})


def test_a_link_beyond_the_limits_of_a_number_is_reported_and_replaced_by_the_default() -> None:
    declared = numeric_settings()
    assert {"alpha", "n_way", "n_shot", "seed"} <= {setting.name for setting in declared.values()}
    assert len(declared) > 30
    for where, setting in {(s.name, s.low, s.high): (at, s) for at, s in declared.items()}.values():
        step = 1 if setting.kind == "int" else 0.5
        beyond = [setting.low - step, *([] if math.isinf(setting.high) else [setting.high + step])]
        for text in [*map(setting.text, beyond), "nan", "-1e300", "many"]:
            app = AppTest.from_function(_one_setting_from_its_link, default_timeout=60)
            as_slider = not math.isinf(setting.high) and setting.low < setting.high
            app.session_state["request"] = (setting, text, as_slider)
            app.run()
            assert not app.exception, (where, text)
            assert app.session_state[setting.name] == setting.default, (where, text)
            assert app.session_state["ignored"] == [f"{setting.name}={text[:40]}"], (where, text)
            assert setting.name not in app.query_params, (where, text)
