"""Documents from the docstrings of the running Python's standard library.

One document for each public function, class and method whose docstring has at least
``MIN_CHARS`` characters. Nothing is imported into the caller's process: ``documents()`` starts an
isolated interpreter (``python -I``), because importing everything has side effects (``rlcompleter``
takes over readline, some modules warn or print) and because ``PYTHONOPTIMIZE=2`` would strip the
docstrings that this collection is made of.
"""

import contextlib
import importlib
import inspect
import io
import json
import pkgutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

MIN_CHARS = 60
TIMEOUT_S = 120

# Left out: modules that act when imported, need a display, are test suites, or exist on some
# installations only (Debian ships tkinter and lib2to3 apart), which would make the collection
# depend on the machine rather than on the Python version. The platform's half of os and os.path
# is reached through those two names.
_SKIPPED = """
antigravity this idlelib turtle turtledemo tkinter test lib2to3 ensurepip distutils pydoc_data
__main__ curses readline rlcompleter msilib nt winreg winsound msvcrt venv crypt nis spwd
ossaudiodev asynchat asyncore smtpd imp posix posixpath genericpath ntpath nturl2path
"""
SKIPPED = frozenset(_SKIPPED.split())


def documents() -> list[dict[str, str]]:
    """Collect the documents in an isolated interpreter.

    Returns:
        Rows ``{"id", "title", "text"}`` sorted by id, for example ``collections.deque``. Objects
        with the same docstring are one document, under the name of the module that defines it.

    Raises:
        RuntimeError: the interpreter failed; the message holds the end of its error output.
    """
    command = [sys.executable, "-I", "-X", "utf8", __file__]
    done = subprocess.run(
        command, capture_output=True, timeout=TIMEOUT_S, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        tail = done.stderr.decode("utf-8", "replace")[-2000:]
        raise RuntimeError(f"collecting the standard library's docstrings failed:\n{tail}")
    rows: list[dict[str, str]] = json.loads(done.stdout)
    return rows


def _module_names() -> Iterator[str]:
    for name in sorted(sys.stdlib_module_names):
        if name.startswith("_") or name in SKIPPED:
            continue
        yield name
        if name == "os":
            yield "os.path"
        module = _import(name)
        for info in pkgutil.iter_modules(getattr(module, "__path__", []), name + "."):
            if not info.name.rpartition(".")[2].startswith("_") and not _is_test(info.name):
                yield info.name


def _is_test(name: str) -> bool:
    return any(part in {"test", "tests"} for part in name.split("."))


def _import(name: str) -> ModuleType | None:
    """Import a module; ``None`` where this platform lacks it (for example ``dbm.gnu``)."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError, ValueError, AttributeError):
        return None


def _public(module: ModuleType) -> list[str]:
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    return sorted(set(names))


def _entries() -> Iterator[tuple[bool, str, str]]:
    """Yield ``(defined elsewhere, id, docstring)`` for everything public."""
    for name in _module_names():
        module = _import(name)
        if module is None:
            continue
        for attribute in _public(module):
            thing = getattr(module, attribute, None)
            home = getattr(thing, "__module__", None) or name
            if not callable(thing) or home.partition(".")[0] not in sys.stdlib_module_names:
                continue
            elsewhere = home != name
            yield elsewhere, f"{name}.{attribute}", _doc(thing)
            for method, raw in sorted(vars(thing).items()) if inspect.isclass(thing) else ():
                function = getattr(raw, "__func__", raw)
                if not method.startswith("_") and callable(function):
                    yield elsewhere, f"{name}.{attribute}.{method}", _doc(function)


def _doc(thing: Any) -> str:
    doc = getattr(thing, "__doc__", None)
    return inspect.cleandoc(doc).strip() if isinstance(doc, str) else ""


def _collect() -> list[dict[str, str]]:
    best: dict[str, tuple[bool, int, str]] = {}
    for elsewhere, identity, text in _entries():
        if len(text) >= MIN_CHARS and " at 0x" not in text:
            rank = (elsewhere, identity.count("."), identity)
            best[text] = min(best.get(text, rank), rank)
    rows = [{"id": rank[2], "title": rank[2], "text": text} for text, rank in best.items()]
    return sorted(rows, key=lambda row: row["id"])


def _main() -> None:
    warnings.simplefilter("ignore")
    silent = io.StringIO()
    with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
        rows = _collect()
    sys.stdout.write(json.dumps(rows))


if __name__ == "__main__":
    _main()
