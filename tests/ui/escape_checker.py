"""Finds values that reach a text of Streamlit without `escape`: a reading of the pages' code, not of a running app.

Every text of Streamlit is Markdown. Safe is what the code itself says (constants, and what hangs on a NAME IN
CAPITALS), a number written with a number's format, and whatever `escape` or `code` made of a value. Safety is followed
through variables, loops, parameters (then every caller is looked at) and functions of fsviz.ui; everything else is
reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

Function = ast.FunctionDef | ast.Lambda
# Call -> names of its text arguments by position; "" is no text. `help` is a text of all of them.
_WIDGETS = "button checkbox toggle selectbox multiselect radio pills segmented_control slider select_slider expander"
_WIDGETS += " number_input text_input text_area file_uploader download_button link_button popover status dialog badge"
_BODIES = "markdown write caption title header subheader info warning error success toast"
TEXTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_WIDGETS.split(), ("label",)),
    **dict.fromkeys(_BODIES.split(), ("body",)),
    "metric": ("label", "value", "delta"),
    "page_link": ("", "label"),
    "progress": ("", "text"),
    "spinner": ("text",),
    "image": ("", "caption"),
    "tabs": ("tabs",),
}
DRAWN_OPTIONS = {"pills", "segmented_control", "radio"}  # options in Markdown; a select box shows them as they are
NUMBERS = {"len", "int", "round", "sum", "float", "abs", "range"}
OF_SAFE = {"str", "list", "tuple", "sorted", "zip", "enumerate", "dict", "reversed", "min", "max", "next", "iter"}
OF_TEXT = {"join", "capitalize", "lower", "upper", "strip", "rstrip", "removeprefix", "removesuffix", "replace"}
OF_TEXT |= {"split", "partition", "get", "items", "keys", "values"}
NUMBER_TEXTS = {"number_text"}  # of a headline number: written with a number's format
ESCAPING = {"below"}  # of a headline number: escapes its note with the function it is given
DECLARED = {"Page"}  # records that only code writes: a parameter of this type is as safe as a constant
NUMBER_FORMAT = re.compile(r"[+ ]?,?(\.(\d|\{\})+)?[dfge%]?")


@dataclass
class Module:
    path: Path
    tree: ast.Module
    imports: dict[str, str] = field(default_factory=dict)  # name here -> dotted name
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    inside: dict[tuple[ast.AST, str], ast.AST] = field(default_factory=dict)  # functions in functions

    @property
    def dotted(self) -> str:
        parts = self.path.with_suffix("").parts
        start = parts.index("fsviz") if "fsviz" in parts else len(parts) - 1
        return ".".join(parts[start:]).removesuffix(".__init__")


def read(trees: dict[Path, ast.Module]) -> Pages:
    return Pages([_module(path, tree) for path, tree in trees.items()])


def read_text(code: str) -> Pages:
    return Pages([_module(Path("page.py"), ast.parse(code))])


def _module(path: Path, tree: ast.Module) -> Module:
    module = Module(path, tree)
    for node in ast.walk(module.tree):
        module.parents |= dict.fromkeys(ast.iter_child_nodes(node), node)
        if isinstance(node, ast.ImportFrom):
            module.imports |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            module.imports |= {a.asname or a.name: a.name for a in node.names}
    for node in module.parents:
        if isinstance(node, ast.FunctionDef):
            module.inside[_owner(module, node), node.name] = node
    return module


class Pages:
    """The modules of fsviz.ui and the values in them that reach a text without `escape`."""

    def __init__(self, modules: list[Module]) -> None:
        self.modules = modules
        self.by_name = {module.dotted: module for module in modules}
        self.functions = {  # dotted name -> a function at the top of a module
            f"{m.dotted}.{node.name}": (m, node) for m in modules for node in m.tree.body if isinstance(node, Function)
        }
        self.callers: dict[ast.AST, list[tuple[Module, ast.AST]]] = {}
        for module in modules:
            for node in module.parents:
                if isinstance(node, ast.Name | ast.Attribute) and (target := self._function(module, node)):
                    self.callers.setdefault(target[1], []).append((module, node))
        self.findings: set[str] = set()
        self.checked: set[ast.AST] = set()
        self.texts: set[tuple[ast.AST, str]] = set()  # parameters that end in a text: every caller must be safe

    at: tuple[Path, int]  # the text that is looked at

    def problems(self) -> list[str]:
        """file:line of the text: the value that reaches it unescaped, and the line of that."""
        for module in self.modules:
            for node in ast.walk(module.tree):
                if isinstance(node, ast.Call):
                    for argument in self._text_arguments(module, node):
                        self.at = (module.path, argument.lineno)
                        self._check(module, argument)
        n_texts = -1
        while n_texts != len(self.texts):  # a caller's own parameter may become a text in turn
            n_texts = len(self.texts)
            for function, parameter in list(self.texts):
                self._check_callers(function, parameter)
        return sorted(self.findings)

    def _text_arguments(self, module: Module, call: ast.Call) -> Iterator[ast.AST]:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name not in TEXTS or module.imports.get(ast.unparse(call.func.value), "").startswith("fsviz"):
            return  # no call of Streamlit
        if name == "write" and ast.unparse(call.func.value) != "st":
            return  # a file's
        texts = TEXTS[name]
        yield from (a for a, text in zip(call.args, texts) if text)
        yield from (k.value for k in call.keywords if k.arg == "help" or (k.arg and k.arg in texts))
        for unpacked in (k.value for k in call.keywords if k.arg is None):  # **settings
            is_name = isinstance(unpacked, ast.Name)
            for binding in _bindings(module, _owner(module, call), unpacked.id) if is_name else [unpacked]:
                pairs = zip(binding.keys, binding.values) if isinstance(binding, ast.Dict) else ()
                yield from (v for k, v in pairs if isinstance(k, ast.Constant) and k.value in ("help", *texts))
        if name in DRAWN_OPTIONS:
            formatters = [k.value for k in call.keywords if k.arg == "format_func"]
            yield from formatters or [k.value for k in call.keywords if k.arg == "options"] or call.args[1:2]

    # --- is an expression safe? ----------------------------------------------------------------------------------

    def _check(self, module: Module, node: ast.AST) -> None:
        if node in self.checked:
            return
        self.checked.add(node)
        for part in self._parts(module, node):
            self._check(module, part)

    def _parts(self, module: Module, node: ast.AST) -> Iterator[ast.AST]:
        """The parts of an expression that must be safe for it to be; reports it where it can never be."""
        match node:
            case ast.Constant() | ast.Compare() | ast.UnaryOp():
                pass
            case ast.JoinedStr():
                yield from (v.value for v in node.values if isinstance(v, ast.FormattedValue) and not _is_number(v))
            case ast.BinOp(op=ast.Add() | ast.Mult() | ast.BitOr()):
                yield from (node.left, node.right)
            case ast.BinOp(op=ast.Sub() | ast.Div() | ast.FloorDiv()):
                pass  # numbers
            case ast.BoolOp():
                yield from node.values
            case ast.IfExp():
                yield from (node.body, node.orelse)
            case ast.Tuple() | ast.List():
                yield from node.elts
            case ast.Dict():
                yield from node.values
            case ast.Starred():
                yield node.value
            case ast.GeneratorExp() | ast.ListComp():
                yield node.elt
            case ast.DictComp():
                yield node.value
            case ast.Lambda():
                yield node.body
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int(place))):
                for where, returned in self._returns(module, call.func) or [(module, call)]:
                    self._check(where, returned.elts[place] if isinstance(returned, ast.Tuple) else returned)
            case ast.Subscript():
                yield node.value
            case ast.Attribute(attr=attr) if attr in NUMBER_TEXTS:
                pass
            case ast.Attribute(attr="get" | "__getitem__"):  # {...}.get as a format_func
                yield node.value
            case ast.Attribute():
                if not _capital_root(node) and not self._is_safe(module, node.value):
                    self._report(module, node)
            case ast.Name():
                yield from self._name(module, node)
            case ast.Call():
                yield from self._call(module, node)
            case _:
                self._report(module, node)

    def _is_safe(self, module: Module, node: ast.AST) -> bool:
        """The same question without a report: for PAGE in PAGES, page.label is as safe as PAGES."""
        state = self.findings, self.checked, self.texts
        self.findings, self.checked, self.texts = set(), set(), set()
        self._check(module, node)
        safe = not self.findings and not self.texts
        self.findings, self.checked, self.texts = state
        return safe

    def _call(self, module: Module, node: ast.Call) -> Iterator[ast.AST]:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("escape", "escape_markdown", "code") or name in NUMBERS or _capital_root(node.func):
            return
        if name in ESCAPING and [ast.unparse(argument) for argument in node.args] == ["escape"]:
            return
        if name == "map":
            if ast.unparse(node.args[0]).rpartition(".")[2] not in ("escape", "escape_markdown", "code"):
                yield from node.args
            return
        if name in OF_SAFE and isinstance(node.func, ast.Name):
            yield from node.args
            return
        returns = self._returns(module, node.func)
        for where, returned in returns or ():
            self._check(where, returned)
        if returns is not None:
            return
        if isinstance(node.func, ast.Attribute) and name in OF_TEXT:
            yield from (node.func.value, *(node.args if name in ("join", "replace") else ()))
            return
        self._report(module, node)

    def _name(self, module: Module, node: ast.Name) -> Iterator[ast.AST]:
        if node.id.isupper() or node.id == "escape":
            return
        scope = _owner(module, node)
        while True:
            bound = list(_bindings(module, scope, node.id))
            if bound:
                yield from bound
                return
            if isinstance(scope, Function) and node.id in _parameters(scope):
                if _annotation(scope, node.id) in DECLARED:
                    return
                self.texts.add((scope, node.id))
                return
            if isinstance(scope, ast.Module):
                break
            scope = _owner(module, scope)
        returns = self._returns(module, node)  # a function as a format_func
        for where, returned in returns or ():
            self._check(where, returned)
        if returns is None:
            self._report(module, node)

    def _returns(self, module: Module, node: ast.AST) -> list[tuple[Module, ast.AST]] | None:
        """The expressions that a function of fsviz.ui returns; None for any other function."""
        target = self._function(module, node)
        if target is None:
            return None
        where, function = target
        inside = (n for n in ast.walk(function) if isinstance(n, ast.Return) and n.value)
        return [(where, n.value) for n in inside if _owner(where, n) is function]

    # --- callers -------------------------------------------------------------------------------------------------

    def _check_callers(self, function: ast.AST, parameter: str) -> None:
        if function not in self.callers:  # a lambda, or called by nobody here: what it is given is not seen
            home = next(m for m in self.modules if function in m.parents)
            self.at = (home.path, function.lineno)
            self._report(home, function.args)
        for module, node in self.callers.get(function, []):
            call = module.parents[node]
            if not isinstance(call, ast.Call) or call.func is not node:
                self._report(module, node)  # handed on: who calls it with what is not seen here
                continue
            arguments = dict(zip(_parameters(function), call.args)) | {k.arg: k.value for k in call.keywords}
            self.at = (module.path, call.lineno)
            if parameter in arguments:
                self._check(module, arguments[parameter])
            elif any(isinstance(a, ast.Starred) for a in call.args):
                self._report(module, call)

    def _function(self, module: Module, node: ast.AST) -> tuple[Module, ast.AST] | None:
        """The function of fsviz.ui that a name refers to, if any."""
        if isinstance(node, ast.Name):
            scope = _owner(module, node)
            while not isinstance(scope, ast.Module):  # functions inside functions
                if (scope, node.id) in module.inside:
                    return module, module.inside[scope, node.id]
                scope = _owner(module, scope)
            return self.functions.get(module.imports.get(node.id, f"{module.dotted}.{node.id}"))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self.functions.get(f"{module.imports.get(node.value.id, '')}.{node.attr}")
        return None

    def _report(self, module: Module, node: ast.AST) -> None:
        path, line = self.at
        where = getattr(node, "lineno", line)
        origin = "" if (path, line) == (module.path, where) else f" ({module.path.name}:{where})"
        self.findings.add(f"{path}:{line}: {ast.unparse(node)}{origin}")


def _is_number(value: ast.FormattedValue) -> bool:
    """Has it a format that only a number takes?"""
    if value.format_spec is None:
        return False
    spec = "".join(v.value if isinstance(v, ast.Constant) else "{}" for v in value.format_spec.values)
    return bool(spec) and NUMBER_FORMAT.fullmatch(spec) is not None


def _capital_root(node: ast.AST) -> bool:
    """Does it hang on a constant of the code: PAGES, study.DISTANCES[name].title, TITLES.get?"""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(node, ast.Attribute) and node.attr.isupper():
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id.isupper()


def _owner(module: Module, node: ast.AST) -> ast.AST:
    """The function (or module) that a node is in."""
    node = module.parents[node]
    while not isinstance(node, Function | ast.Module):
        node = module.parents[node]
    return node


def _parameters(function: ast.AST) -> list[str]:
    a = function.args
    return [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]


def _annotation(function: ast.AST, name: str) -> str:
    a = function.args
    written = (p.annotation for p in (*a.posonlyargs, *a.args, *a.kwonlyargs) if p.arg == name)
    return next((ast.unparse(annotation) for annotation in written if annotation), "")


def _bindings(module: Module, scope: ast.AST, name: str) -> Iterator[ast.AST]:
    """The expressions that a function binds to a name: assignments, also of parts and by +=, loops, comprehensions."""
    for node in ast.walk(scope):
        if isinstance(node, ast.comprehension | ast.For):
            if _owner(module, node) is scope:
                yield from _looped(node.target, node.iter, name)
            continue
        elif isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            pairs = [(node.target, node.value)]
        else:
            continue
        if _owner(module, node) is scope:
            for target, value in pairs:
                yield from _matched(target, value, name)


def _looped(target: ast.AST, iterable: ast.AST, name: str) -> Iterator[ast.AST]:
    """The expressions that a loop binds to a name; takes zip, enumerate and literal rows apart."""
    function = iterable.func.id if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) else ""
    if function == "zip" and isinstance(target, ast.Tuple):
        for part, argument in zip(target.elts, iterable.args):
            yield from _looped(part, argument, name)
    elif function == "enumerate" and isinstance(target, ast.Tuple):
        yield from _looped(target.elts[1], iterable.args[0], name)
    elif isinstance(iterable, ast.Tuple | ast.List):
        for element in iterable.elts:
            yield from _matched(target, element, name)
    else:
        yield from _matched(target, iterable, name)


def _matched(target: ast.AST, value: ast.AST, name: str) -> Iterator[ast.AST]:
    whole = target.value if isinstance(target, ast.Subscript) else target  # a part of it counts like all of it
    if isinstance(whole, ast.Name) and whole.id == name:
        yield value
    elif isinstance(target, ast.Tuple):
        same = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
        for i, part in enumerate(target.elts):
            place = ast.copy_location(ast.Subscript(value, ast.Constant(i), ast.Load()), value)
            yield from _matched(part, value.elts[i] if same else place, name)
