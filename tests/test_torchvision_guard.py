"""torchvision beside a CPU build of torch; each case in a process of its own, as imports last."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
INSTALLED = importlib.util.find_spec("torchvision") is not None
needs_torchvision = pytest.mark.skipif(not INSTALLED, reason="torchvision is not installed")
on_cpu_build = pytest.mark.skipif(torch.version.cuda is not None, reason="torch is built for CUDA")

# A torchvision that needs the operators when it is imported, as the real one does.
FAKE = """
import torch
def _fake(*_): raise NotImplementedError
if {fails} and not hasattr(torch, "tried_before"):
    torch.tried_before = True
    raise ImportError("fails once")
torch.library.register_fake("torchvision::nms")(_fake)
"""


def run(code: str, *paths: Path) -> str:
    """What a fresh interpreter writes; the folders come first on its path."""
    path = os.pathsep.join(map(str, (*paths, ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def fake(folder: Path, *, fails: bool = False) -> Path:
    """A folder with a torchvision package in it."""
    (folder / "torchvision").mkdir()
    (folder / "torchvision" / "__init__.py").write_text(FAKE.format(fails=fails))
    return folder


def test_importing_retrievers_imports_no_torch_and_neither_does_looking() -> None:
    code = """
import sys, importlib.util, retrievers
heavy = {"torch", "torchvision", "transformers"}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
spec = importlib.util.find_spec("torchvision")
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
print(spec is not None)
"""
    assert run(code) == str(INSTALLED)


@needs_torchvision
@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "import torchvision",
        "from transformers import AutoModelForCausalLM; AutoModelForCausalLM.from_pretrained",
        "from transformers import AutoImageProcessor; AutoImageProcessor.from_pretrained",
        "import torch, torchvision",
        "import torchvision.transforms.v2.functional",
    ],
)
def test_what_fails_without_the_guard_works(statement: str) -> None:
    run(f"import retrievers; {statement}")


@needs_torchvision
@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("colpali_engine") is None, reason="not installed")
def test_colpali_engine_can_be_imported() -> None:
    run("import retrievers, colpali_engine; colpali_engine.models.ColPali")


@on_cpu_build
def test_the_operators_are_declared_once(tmp_path: Path) -> None:
    code = """
import retrievers, torchvision, sys
from pathlib import Path
from retrievers import torchvision_guard as guard
import torch
print(torch.ops.torchvision.nms.default._schema)
print(guard.declare_missing_operators(Path(torchvision.__file__).parent))
"""
    schema = "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
    assert run(code, fake(tmp_path)).splitlines() == [schema, "False"]


@on_cpu_build
def test_a_second_try_after_a_failed_import(tmp_path: Path) -> None:
    code = """
import retrievers
try:
    import torchvision
except ImportError as error:
    print(error)
import torchvision
"""
    assert run(code, fake(tmp_path, fails=True)) == "fails once"


@pytest.mark.parametrize(
    "sound",
    [
        "import torch; torch.version.cuda = '13.0'",
        "import torch; torch.version.hip = '7.0'",
        "from retrievers import torchvision_guard as guard; guard._loads = lambda library: True",
    ],
    ids=["cuda", "rocm", "library-loads"],
)
def test_a_sound_pair_is_left_alone(tmp_path: Path, sound: str) -> None:
    """Declaring an operator that torchvision's own library declares too would be an error."""
    folders = []
    for library in ("_C.so", "_C.cpython-311-x86_64-linux-gnu.so", "_C.pyd"):
        folders.append(str(tmp_path / library))
        (tmp_path / library).mkdir()
        (tmp_path / library / library).touch()
    code = f"""
from pathlib import Path
from retrievers import torchvision_guard as guard
{sound}
print([guard.declare_missing_operators(Path(folder)) for folder in {folders}], guard._kept)
"""
    assert run(code) == "[False, False, False] []"


@on_cpu_build
def test_a_library_that_does_not_load_is_no_library(tmp_path: Path) -> None:
    folder = fake(tmp_path) / "torchvision"
    (folder / "_C.so").write_bytes(b"not a library")
    code = f"""
from pathlib import Path
from retrievers import torchvision_guard as guard
print(guard.declare_missing_operators(Path({str(folder)!r})))
"""
    assert run(code) == "True"


def test_it_is_installed_once_and_not_too_late() -> None:
    code = """
import sys, types, retrievers
from retrievers import torchvision_guard as guard
def count(): return sum(isinstance(one, guard._Finder) for one in sys.meta_path)
guard.install(); guard.install()
print(count())
sys.meta_path = [one for one in sys.meta_path if not isinstance(one, guard._Finder)]
sys.modules["torchvision"] = types.ModuleType("torchvision")
guard.install()
print(count())
"""
    assert run(code).split() == ["1", "0"]


def test_without_torchvision_nothing_changes(tmp_path: Path) -> None:
    """Neither for those who look for it nor for those who import it."""
    code = f"""
import sys
sys.path = [place for place in sys.path if "site-packages" not in place]
from importlib.util import spec_from_file_location, module_from_spec
spec = spec_from_file_location("guard", {str(ROOT / "retrievers" / "torchvision_guard.py")!r})
guard = module_from_spec(spec); spec.loader.exec_module(guard)
guard.install()
import importlib.util
print(importlib.util.find_spec("torchvision"))
try:
    import torchvision
except ModuleNotFoundError as error:
    print(error.name)
"""
    assert run(code).split() == ["None", "torchvision"]
