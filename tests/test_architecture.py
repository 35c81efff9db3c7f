"""The house rules: imports point one way, heavy packages wait, files stay small."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("retrievers", "rewards", "rewriter", "train")  # each may import those before it
FOLDERS = ("retrievers", "rewards", "rewriter", "launch")
FILES = [
    Path("train.py"),
    *sorted(path.relative_to(ROOT) for name in FOLDERS for path in (ROOT / name).rglob("*.py")),
]
LONGEST = 300

HEAVY = {
    "torch",
    "torchvision",
    "transformers",
    "trl",
    "peft",
    "accelerate",
    "datasets",
    "safetensors",
    "sentence_transformers",
    "colpali_engine",
    "bm25s",
    "rank_bm25",
    "faiss",
    "pymilvus",
    "kiwipiepy",
    "Stemmer",
    "wandb",
    "gguf",
}
# A class that derives from transformers' TrainerCallback needs it when it is defined. These are
# imported by a training only.
EAGER = {
    "rewriter/adapter_guard.py",
    "rewriter/alarms.py",
    "rewriter/callbacks.py",
    "rewriter/best_adapter.py",
}


def tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), str(path))


def imported(node: ast.AST, path: Path) -> Iterator[str]:
    """Full names of the modules that one statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        parents = path.parts[: len(path.parts) - node.level] if node.level else ()
        yield ".".join([*parents, *([node.module] if node.module else [])])


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Statements that run when a module is imported: no function bodies, nothing for types only."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from at_import(child)


def layer(name: str) -> int | None:
    top = name.partition(".")[0]
    return LAYERS.index(top) if top in LAYERS else None


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_point_one_way(path: Path) -> None:
    own = layer(path.parts[0].removesuffix(".py"))
    own = len(LAYERS) if own is None else own  # launch/ stands above everything
    names = [name for node in ast.walk(tree(path)) for name in imported(node, path)]
    upward = [name for name in names if (layer(name) or 0) > own]
    assert upward == []
    assert not [name for name in names if name.partition(".")[0] == "tests"]


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def test_no_module_needs_itself_to_be_imported() -> None:
    modules = {_module(path): path for path in FILES}
    needs = {
        name: {found for found in _needed(path) if found in modules and found != name}
        for name, path in modules.items()
    }
    while free := {name for name, needed in needs.items() if not needed}:
        needs = {name: needed - free for name, needed in needs.items() if name not in free}
    assert needs == {}  # what is left is in a circle, or needs one


def _needed(path: Path) -> Iterator[str]:
    for node in at_import(tree(path)):
        yield from imported(node, path)
        if isinstance(node, ast.ImportFrom) and node.module:  # from package import module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_heavy_packages_are_imported_when_they_are_used(path: Path) -> None:
    names = {name.partition(".")[0] for n in at_import(tree(path)) for name in imported(n, path)}
    allowed = {"transformers"} if path.as_posix() in EAGER else set()
    if path.parts[0] == "launch":  # programs of their own
        return
    assert names & HEAVY <= allowed


def test_the_list_of_exceptions_is_not_longer_than_needed() -> None:
    eager = {
        path.as_posix()
        for path in FILES
        for node in at_import(tree(path))
        if "transformers" in imported(node, path)
    }
    assert eager >= EAGER


def test_every_file_has_a_role() -> None:
    vague = {"utils", "util", "helpers", "misc", "common", "tools"}
    assert [str(path) for path in FILES if vague & {*path.parts[:-1], path.stem}] == []


def test_files_stay_small() -> None:
    lengths = {str(path): len((ROOT / path).read_text().splitlines()) for path in FILES}
    assert {path: length for path, length in lengths.items() if length > LONGEST} == {}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_no_exception_is_swallowed_unnamed(path: Path) -> None:
    handlers = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ExceptHandler)]
    assert [node.lineno for node in handlers if node.type is None] == []
    assert [
        node.lineno
        for node in handlers
        if node.type is not None
        and "BaseException" in ast.unparse(node.type)
        and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
    ] == []


@pytest.mark.parametrize("path", [p for p in FILES if p.parts[0] != "launch"], ids=str)
def test_nothing_is_read_from_pickles(path: Path) -> None:
    names = {name.partition(".")[0] for n in ast.walk(tree(path)) for name in imported(n, path)}
    assert names.isdisjoint({"pickle", "dill", "cloudpickle", "joblib", "shelve"})


RUN = """
import json, runpy, sys
sys.argv = {argv!r}
try:
    runpy.{run}({what!r}, run_name="__main__")
except SystemExit as end:
    assert not end.code, end.code
print("\\n" + json.dumps(sorted(m for m in sys.modules if "." not in m)))
"""


@pytest.mark.parametrize(
    ("run", "what", "words"),
    [
        ("run_path", "train.py", ["--help"]),
        ("run_path", "train.py", ["--print_config"]),
        ("run_path", "train.py", ["--print_config", "--reward.backends.lexical.k", "5"]),
        ("run_module", "rewriter.cli", ["--help"]),
        ("run_module", "rewriter.cli", ["--version"]),
        ("run_module", "rewriter.cli", ["rewrite", "--help"]),
        ("run_module", "rewriter.cli", ["data", "inspect", "--help"]),
        ("run_module", "rewriter.cli", ["data", "inspect", "--loader", "stdlib"]),
    ],
)
def test_what_needs_no_model_imports_no_model_package(
    run: str, what: str, words: list[str]
) -> None:
    code = RUN.format(argv=[what, *words], run=run, what=what)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert loaded & HEAVY == set()
