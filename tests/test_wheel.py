"""The wheel: installed outside the checkout it runs, and holds what it needs."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from retrievers.demo import stdlib

ROOT = Path(__file__).parent.parent
QUESTIONS = Path(stdlib.__file__).parent / "questions"
PARTS = ("retrievers", "rewards", "rewriter")

pytestmark = pytest.mark.slow


def run(*words: str | Path, cwd: Path) -> str:
    env = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that the checkout stays as it is."""
    folder = tmp_path_factory.mktemp("build")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, "--no-index", "--wheel-dir", "dist", ".", cwd=folder)
    (built,) = (folder / "dist").glob("rlqr-*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the wheel; the packages it depends on are those of here."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    python = folder / "bin" / "python"
    purelib = run(
        python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder
    )
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps")
    run(*pip, "--no-index", wheel, cwd=folder)
    # A path in a .pth file is searched, but the .pth files in it are not read: a checkout that is
    # installed there in editable form stays out of sight.
    places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (Path(purelib.strip()) / "dependencies.pth").write_text("\n".join(sorted(places)) + "\n")
    return folder


def test_wheel_holds_licence_types_and_data(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("dist-info/licenses/LICENSE") for name in names)
    for part in PARTS:
        assert f"{part}/py.typed" in names
        files = {path.relative_to(ROOT).as_posix() for path in (ROOT / part).rglob("*.py")}
        assert files <= set(names)
    data = {f"retrievers/demo/questions/{path.name}" for path in QUESTIONS.iterdir()}
    assert data <= set(names)
    assert {name.partition("/")[0] for name in names if "dist-info" not in name} == set(PARTS)


def test_installed_command_runs_outside_the_checkout(environment: Path, tmp_path: Path) -> None:
    rlqr = environment / "bin" / "rlqr"
    assert run(rlqr, "--help", cwd=tmp_path).startswith("usage: rlqr")
    assert run(rlqr, "--version", cwd=tmp_path).startswith("rlqr 0.")
    report = run(rlqr, "data", "inspect", "--loader", "stdlib", cwd=tmp_path)
    assert report.startswith("collection stdlib\n")


def test_installed_demo_has_all_its_questions(environment: Path, tmp_path: Path) -> None:
    code = (
        "import json, retrievers; from retrievers.loaders import load; c = load('stdlib'); "
        "print(json.dumps([retrievers.__file__, c.left_out, "
        "{s: len(c.queries(s)) for s in c.splits}]))"
    )
    printed = run(environment / "bin" / "python", "-c", code, cwd=tmp_path)
    module, left_out, counts = json.loads(printed.splitlines()[-1])
    assert Path(module).is_relative_to(environment)
    lines = {
        path.stem: len(path.read_text(encoding="utf-8").splitlines())
        for path in QUESTIONS.glob("*.jsonl")
    }
    lost = left_out.get("question without its document", 0)
    assert sum(counts.values()) + lost == sum(lines.values())
    assert counts.keys() == lines.keys()
