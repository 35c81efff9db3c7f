"""Lets PyPI's torchvision be imported beside a CPU build of torch.

PyPI's torchvision is compiled against a CUDA torch. Beside `torch+cpu` its C++ library does not
load, so that the operators `torchvision::nms` and `torchvision::qnms` do not exist when torchvision
registers their fake versions: "operator torchvision::nms does not exist", and with it every import
of transformers' image classes and of colpali-engine fails. Declaring the two schemas first is all
that is missing: rlqr calls neither operator.

`install()` adds a finder that steps in only when torchvision is really executed. Looking for it
(`importlib.util.find_spec`, as transformers does) imports nothing.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
OPERATORS = ("nms", "qnms")
LIBRARIES = (".so", ".pyd")
# A Library takes its declarations along when it is collected.
_kept: list[Any] = []


class _Loader(SourceFileLoader):
    """Declares the missing operators, then runs torchvision as usual."""

    def exec_module(self, module: ModuleType) -> None:
        declare_missing_operators(Path(self.path).parent)
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Finds torchvision where it is, with a loader that prepares for it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "torchvision":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


def install() -> None:
    """Put the finder in place, once, unless torchvision is imported already."""
    if "torchvision" not in sys.modules and not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def declare_missing_operators(folder: Path) -> bool:
    """Declare the operators if torch has no CUDA and torchvision's own library does not load.

    Args:
        folder: of the torchvision package.

    Returns:
        Whether anything had to be declared.
    """
    import torch

    if _kept:  # an import that failed later on is tried again
        return False
    if torch.version.cuda is not None or getattr(torch.version, "hip", None) is not None:
        return False
    libraries = (file for file in folder.glob("_C*") if file.suffix in LIBRARIES)
    if any(_loads(library) for library in libraries):
        return False
    library: Any = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for name in OPERATORS:
        library.define(name + SCHEMA)
    _kept.append(library)
    return True


def _loads(library: Path) -> bool:
    import torch

    try:
        torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
    except OSError:
        return False
    return True
