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
    """The code of the method with that name, not run yet; refuses an unknown name."""
    if user_code.is_reference(name):
        code = user_code.locate(name)
        used_names = {word.casefold() for method in METHODS.values() for word in (method.name, method.title)}
        return replace(code, name=f"{code.name} (yours)") if code.name.casefold() in used_names else code
    offered = user_code.packaged(GROUP)
    if name not in offered:
        raise UnknownName("method", name, [*METHODS, *offered])
    return replace(user_code.locate(offered[name]), name=name)


def load_method(code: user_code.Code) -> Method:
    """The method that this code is; runs it, the first time. Raises BrokenCode if it is none."""
    torchvision_guard.install()  # easyfsl imports torchvision
    loaded = user_code.load(code)
    declaration = None
    if inspect.ismodule(loaded):
        declaration = getattr(loaded, "METHOD", None)
        loaded = _in_module(loaded, code.name)
    if isinstance(loaded, Method):
        loaded, declaration = loaded.load(), loaded
    if inspect.isclass(loaded):
        method, function = _of_class(loaded, code.name), _of_classifier(loaded)
    elif hasattr(loaded, "process_support_set"):  # an object of such a class, with settings of its own
        method, function = _method(code.name, _kind(loaded), ()), _of_classifier(loaded)
    elif callable(loaded):
        method, function = _of_function(loaded, code.name), loaded
    else:
        raise BrokenCode(f"{code.name} is neither a function nor a class, but {type(loaded).__name__}.")
    if isinstance(declaration, Method):  # it says of itself what a signature cannot
        method = replace(declaration, name=code.name, title=code.name, order=_ORDER)
    return replace(method, function=_guarded(function, code.name))


def method_record(code: user_code.Code, method: Method) -> dict[str, Any]:
    """The record of a user method in the spec of a run."""
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
    own = [value for value in vars(module).values() if _is_classifier(value) and value.__module__ == module.__name__]
    if len(own) != 1:
        raise BrokenCode(
            f"{name} must have a function predict({', '.join(GIVEN)}, ...) or one class with process_support_set and "
            f"forward; got {len(own) or 'no'} such classes. To choose one: {name}:NAME."
        )
    return own[0]


def _is_classifier(value: Any) -> bool:
    return inspect.isclass(value) and hasattr(value, "process_support_set") and hasattr(value, "forward")


def _of_function(function: Callable[..., Any], name: str) -> Method:
    parameters = list(inspect.signature(function).parameters.values())
    free = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    first = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][: len(GIVEN)]
    if not free and len(first) < len(GIVEN):
        raise BrokenCode(f"{name} must take ({', '.join(GIVEN)}, ...), but takes {inspect.signature(function)}.")
    return _method(name, "inductive", _settings(parameters[0 if free else len(GIVEN) :], name))


def _of_class(classifier: type, name: str) -> Method:
    if not _is_classifier(classifier):
        raise BrokenCode(f"{name} must have process_support_set and forward, as easyfsl's FewShotClassifier has.")
    parameters = [p for p in inspect.signature(classifier).parameters.values() if p.name != "backbone"]
    return _method(name, _kind(classifier), _settings(parameters, name))


def _kind(classifier: Any) -> str:
    """Kind of a classifier, by its own statement; easyfsl's base class raises if there is none."""
    try:
        return "transductive" if classifier.is_transductive() else "inductive"
    except Exception:
        return "inductive"


def _method(name: str, kind: Any, settings: tuple[Setting, ...]) -> Method:
    return Method(name, name, "", _ORDER, kind, "A method of your own.", settings, scale_free=None, units=_UNITS)


def _settings(parameters: list[inspect.Parameter], name: str) -> tuple[Setting, ...]:
    """The settings: parameters whose default is a number, a text, or true or false."""
    settings = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or parameter.name == UNIT_LENGTH.name:
            continue
        if parameter.default is parameter.empty:
            raise BrokenCode(
                f"{name} takes {parameter.name!r}, which has no default. Give it one: {parameter.name}=..."
            )
        kind: Any = _KINDS.get(type(parameter.default))
        if kind is not None:
            settings.append(
                Setting(parameter.name, parameter.name, f"Of {name}.", kind, parameter.default, -math.inf, math.inf)
            )
    return tuple(settings)


def _of_classifier(source: Any) -> Callable[..., Any]:
    """A class such as easyfsl's FewShotClassifier, or an object of it, as a predict function: a new one per task."""
    parameter = inspect.signature(source).parameters.get("backbone") if inspect.isclass(source) else None
    bare = parameter is not None and parameter.default is parameter.empty

    def new(**settings: Any) -> Any:
        return source(**settings) if inspect.isclass(source) else copy.deepcopy(source)

    def predict(support: Any, support_mask: Any, query: Any, query_mask: Any, **settings: Any) -> Any:
        import torch

        scores = query.new_zeros((*support_mask.shape[:2], query_mask.shape[1]))
        for task in range(len(support)):
            ways = support_mask[task].any(1).nonzero().flatten()
            is_image, places = support_mask[task][ways], query_mask[task].nonzero().flatten()
            labels = torch.arange(len(ways), device=query.device)[:, None].expand(is_image.shape)[is_image]
            classifier = new(**({"backbone": torch.nn.Identity()} if bare else {}), **settings)
            classifier = classifier.to(query.device, query.dtype).eval()
            classifier.process_support_set(support[task][ways][is_image], labels)
            answer = classifier(query[task][places])
            if tuple(answer.shape) != (len(places), len(ways)):
                raise ValueError(
                    f"forward must give scores (queries, classes) = {(len(places), len(ways))}, and gave "
                    f"{tuple(answer.shape)}"
                )
            scores[task, ways[:, None], places] = answer.detach().T.to(scores.dtype)
        return scores

    return predict


def _guarded(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def predict(support: Any, support_mask: Any, query: Any, query_mask: Any, **settings: Any) -> Any:
        import torch

        from fsviz.methods.geometry import with_ways

        images = (support, support_mask, query, query_mask)
        with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng():
            torch.manual_seed(0)
            answer = function(*(tensor.clone() for tensor in images), **settings)
        scores = torch.as_tensor(answer).detach()
        shape = (*support_mask.shape[:2], query_mask.shape[1])
        if tuple(scores.shape) != shape:
            raise BrokenCode(f"{name} must return shape (tasks, ways, queries) = {shape}. Got {tuple(scores.shape)}.")
        return with_ways(scores.to(support), support_mask.any(2))

    return predict
