"""Python code of the user: files, modules and functions that become methods and backbones.

    ./mine.py            a file; what in it is meant, its kind of use decides
    ./net.py:build       something in a file
    package.module:name  something in a package that is installed
    here:3:nearest       a function of this process, a notebook's say (`keep`)

Such code runs only in a process that was started for it, by a command or in a notebook, and says so (`allow`): never
in the server of the dashboard, nor in a worker, which anybody with a browser could have started.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from fsviz.errors import BadInput, BrokenCode, NotAllowed

HERE = "here:"
_allowed = False
_functions: dict[str, Any] = {}  # functions of this process, by reference
_modules: dict[tuple[Path, str], ModuleType] = {}  # files that were run, by path and content


@dataclass(frozen=True)
class Code:
    """Location of user code, before it runs.

    reference  as it can be given again, from any folder
    name       for people: "mine.py", "net.py:build", "nearest"
    sha256     of the file; "" if it is none
    attribute  what is meant in the file or module; "" if the use decides
    """

    reference: str
    name: str
    sha256: str = ""
    attribute: str = ""

    @property
    def path(self) -> Path | None:
        """The file, None for a package's module or a function of this process."""
        return Path(self.reference.removesuffix(f":{self.attribute}")) if self.sha256 else None


def allow() -> None:
    """Lets this process run user code from now on: a command or a notebook requested it."""
    global _allowed
    _allowed = True


def is_reference(text: str) -> bool:
    """Whether a name means code of the user rather than something of fsviz."""
    before = text.partition(":")[0]
    is_file = before.endswith(".py") or (":" in text and text.rpartition(":")[0].endswith(".py"))
    return is_file or text.startswith(HERE) or (":" in text and "." in before and "/" not in before)


def keep(thing: Any) -> str:
    """A reference to something of this process, good as long as the process lives."""
    references = (reference for reference, value in _functions.items() if value is thing)
    reference = next(references, f"{HERE}{len(_functions)}:{getattr(thing, '__name__', type(thing).__name__)}")
    _functions[reference] = thing
    return reference


def locate(text: str, sha256: str = "") -> Code:
    """The code that a reference means, not run yet. With `sha256`, the file must still have that content."""
    if text.startswith(HERE):
        return Code(text, text.rpartition(":")[2])
    path, attribute = (text, "") if text.endswith(".py") else tuple(text.rsplit(":", 1))
    if not path.endswith(".py"):
        return Code(text, attribute, attribute=attribute)
    file = Path(path).expanduser().absolute()
    try:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise BadInput(f"The file {file} cannot be read ({error.strerror or error}). Check the path.") from error
    if sha256 and digest != sha256:
        raise BadInput(f"{file} changed since the run started. Two versions must not be mixed: start a new run.")
    added = f":{attribute}" if attribute else ""
    return Code(f"{file}{added}", f"{file.name}{added}", digest, attribute)


def load(code: Code) -> Any:
    """The object that a reference stands for: the module, or an attribute of it. The first call runs the file."""
    if not _allowed:
        raise NotAllowed(f"{code.name} is user code: run it from the command line or a notebook.")
    if code.reference.startswith(HERE):
        if code.reference not in _functions:
            raise BadInput(f"{code.name} was a function of a notebook that has ended. Evaluate it there again.")
        return _functions[code.reference]
    path = code.path
    try:
        module = importlib.import_module(code.reference.rpartition(":")[0]) if path is None else _run(path, code.sha256)
    except (Exception, SystemExit) as error:
        raise BrokenCode(f"{code.name} cannot be loaded: {describe_error(error)}.") from error
    if not code.attribute:
        return module
    if not hasattr(module, code.attribute):
        raise BrokenCode(f"{code.name} cannot be loaded: there is nothing named {code.attribute!r} in it.")
    return getattr(module, code.attribute)


def packaged(group: str) -> dict[str, str]:
    """References by name that installed packages offer under an entry point group."""
    return {entry.name: entry.value for entry in entry_points(group=group)}


def describe_error(error: BaseException) -> str:
    """One line about an error in user code, with the line of the file if there is one."""
    if isinstance(error, SyntaxError):
        return f"{error.msg} in line {error.lineno}"
    message = (str(error).strip().splitlines() or [""])[0][:200].rstrip(".")
    files = {str(path): path.name for path, _ in _modules}
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    where = f" (line {lines[-1].lineno} of {files[lines[-1].filename]})" if lines else ""
    return f"{type(error).__name__}{f': {message}' if message else ''}{where}"


def _run(path: Path, sha256: str) -> ModuleType:
    """The module that a file is, run once for each content of it; it can import what is next to it."""
    key = (path, sha256)
    if key not in _modules:
        spec = importlib.util.spec_from_file_location(f"fsviz_own_{path.stem}_{sha256[:8]}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        if str(path.parent) not in sys.path:
            sys.path.append(str(path.parent))
        sys.modules[spec.name] = _modules[key] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[spec.name], _modules[key]
            raise
    return _modules[key]
