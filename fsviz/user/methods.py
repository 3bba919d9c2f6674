"""Methods of the user: a callable, a file with `predict`, an easyfsl class, an entry point of an installed package.

All of them become a Method like the built-in ones, whose `predict` is guarded: gradients work inside it, torch's
generator starts anew at every call, and what it returns must be scores (tasks, ways, queries).
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fsviz.errors import BrokenCode, UnknownName
from fsviz.features import torchvision_guard
from fsviz.methods import METHODS
from fsviz.methods.declaration import UNIT_LENGTH, Method
from fsviz.settings import RawSettings, Setting
from fsviz.user import code as user_code

GROUP = "fsviz.methods"  # of entry points
GIVEN = ("support", "support_mask", "query", "query_mask")
_KINDS = {bool: "flag", int: "int", float: "float", str: "text"}
_ORDER = 1000  # after every built-in one
_UNITS = "nothing is known of what this method does to them"


def is_user_method(name: str) -> bool:
    """Whether a name means a method of the user; built-in names win."""
    return name not in METHODS and (user_code.is_reference(name) or name in user_code.packaged(GROUP))


def packaged() -> list[str]:
    """The methods that installed packages bring, by name."""
    return [name for name in user_code.packaged(GROUP) if name not in METHODS]


def code_of(name: str) -> user_code.Code:
    """Where the method of that name is, not run yet; a name that means nothing is refused."""
    if user_code.is_reference(name):
        code = user_code.locate(name)
        taken = {word.casefold() for method in METHODS.values() for word in (method.name, method.title)}
        return replace(code, name=f"{code.name} (yours)") if code.name.casefold() in taken else code
    offered = user_code.packaged(GROUP)
    if name not in offered:
        raise UnknownName("method", name, [*METHODS, *offered])
    return replace(user_code.locate(offered[name]), name=name)


def load_method(code: user_code.Code) -> Method:
    """The method that this code is; runs it, the first time. Raises BrokenCode where it is none."""
    torchvision_guard.install()  # easyfsl imports torchvision
    found = user_code.load(code)
    given = None
    if inspect.ismodule(found):
        given = getattr(found, "METHOD", None)
        found = _in_module(found, code.name)
    if isinstance(found, Method):
        found, given = found.load(), found
    if inspect.isclass(found):
        method, function = _of_class(found, code.name), _of_classifier(found)
    elif hasattr(found, "process_support_set"):  # an object of such a class, with settings of its own
        method, function = _method(code.name, _kind(found), ()), _of_classifier(found)
    elif callable(found):
        method, function = _of_function(found, code.name), found
    else:
        raise BrokenCode(f"{code.name} is neither a function nor a class, but {type(found).__name__}.")
    if isinstance(given, Method):  # it says of itself what a signature cannot
        method = replace(given, name=code.name, title=code.name, order=_ORDER)
    return replace(method, function=_guarded(function, code.name))


def method_record(code: user_code.Code, method: Method) -> dict[str, Any]:
    """What the spec of a run keeps of it."""
    return {
        "code": code.reference,
        "sha256": code.sha256,
        "kind": method.kind,
        "pairwise": method.pairwise,
        "defaults": {setting.name: setting.default for setting in method.settings},
    }


def load_recorded(name: str, own: RawSettings) -> Method:
    """The method that a run recorded, if its code is still the same."""
    return load_method(replace(user_code.locate(str(own["code"]), str(own["sha256"])), name=name))


# --- what a user may bring ---------------------------------------------------------------------------------------


def _in_module(module: Any, name: str) -> Any:
    if callable(getattr(module, "predict", None)):
        return module.predict
    own = [one for one in vars(module).values() if _is_classifier(one) and one.__module__ == module.__name__]
    if len(own) != 1:
        raise BrokenCode(
            f"{name} must have a function predict({', '.join(GIVEN)}, ...) or one class with process_support_set and "
            f"forward; got {len(own) or 'no'} such classes. To choose one: {name}:NAME."
        )
    return own[0]


def _is_classifier(one: Any) -> bool:
    return inspect.isclass(one) and hasattr(one, "process_support_set") and hasattr(one, "forward")


def _of_function(function: Callable[..., Any], name: str) -> Method:
    parameters = list(inspect.signature(function).parameters.values())
    free = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    first = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][: len(GIVEN)]
    if not free and len(first) < len(GIVEN):
        raise BrokenCode(f"{name} must take ({', '.join(GIVEN)}, ...), but takes {inspect.signature(function)}.")
    return _method(name, "inductive", _settings(parameters[0 if free else len(GIVEN) :], name))


def _of_class(found: type, name: str) -> Method:
    if not _is_classifier(found):
        raise BrokenCode(f"{name} must have process_support_set and forward, as easyfsl's FewShotClassifier has.")
    parameters = [p for p in inspect.signature(found).parameters.values() if p.name != "backbone"]
    return _method(name, _kind(found), _settings(parameters, name))


def _kind(found: Any) -> str:
    """What a classifier says of itself; easyfsl's base class raises where it says nothing."""
    try:
        return "transductive" if found.is_transductive() else "inductive"
    except Exception:
        return "inductive"


def _method(name: str, kind: Any, settings: tuple[Setting, ...]) -> Method:
    return Method(name, name, "", _ORDER, kind, "A method of your own.", settings, scale_free=None, units=_UNITS)


def _settings(parameters: list[inspect.Parameter], name: str) -> tuple[Setting, ...]:
    """What can be set: parameters whose default is a number, a text, or true or false."""
    found = []
    for one in parameters:
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) or one.name == UNIT_LENGTH.name:
            continue
        if one.default is one.empty:
            raise BrokenCode(f"{name} takes {one.name!r}, which has no default. Give it one: {one.name}=...")
        kind: Any = _KINDS.get(type(one.default))
        if kind is not None:
            found.append(Setting(one.name, one.name, f"Of {name}.", kind, one.default, -math.inf, math.inf))
    return tuple(found)


def _of_classifier(found: Any) -> Callable[..., Any]:
    """A class such as easyfsl's FewShotClassifier, or an object of it, as a predict function: a new one per task."""
    wanted = inspect.signature(found).parameters.get("backbone") if inspect.isclass(found) else None
    bare = wanted is not None and wanted.default is wanted.empty

    def new(**settings: Any) -> Any:
        return found(**settings) if inspect.isclass(found) else copy.deepcopy(found)

    def predict(support: Any, support_mask: Any, query: Any, query_mask: Any, **settings: Any) -> Any:
        import torch

        scores = query.new_zeros((*support_mask.shape[:2], query_mask.shape[1]))
        for task in range(len(support)):
            ways = support_mask[task].any(1).nonzero().flatten()
            there, places = support_mask[task][ways], query_mask[task].nonzero().flatten()
            labels = torch.arange(len(ways), device=query.device)[:, None].expand(there.shape)[there]
            classifier = new(**({"backbone": torch.nn.Identity()} if bare else {}), **settings)
            classifier = classifier.to(query.device, query.dtype).eval()
            classifier.process_support_set(support[task][ways][there], labels)
            said = classifier(query[task][places])
            if tuple(said.shape) != (len(places), len(ways)):
                raise ValueError(
                    f"forward must give scores (queries, classes) = {(len(places), len(ways))}, and gave "
                    f"{tuple(said.shape)}"
                )
            scores[task, ways[:, None], places] = said.detach().T.to(scores.dtype)
        return scores

    return predict


def _guarded(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def predict(support: Any, support_mask: Any, query: Any, query_mask: Any, **settings: Any) -> Any:
        import torch

        from fsviz.methods.geometry import with_ways

        images = (support, support_mask, query, query_mask)
        with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng():
            torch.manual_seed(0)
            said = function(*(tensor.clone() for tensor in images), **settings)
        scores = torch.as_tensor(said).detach()
        wanted = (*support_mask.shape[:2], query_mask.shape[1])
        if tuple(scores.shape) != wanted:
            raise BrokenCode(
                f"{name} must return scores of shape (tasks, ways, queries) = {wanted}. Got {tuple(scores.shape)}."
            )
        return with_ways(scores.to(support), support_mask.any(2))

    return predict
