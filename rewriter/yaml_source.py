"""Read a YAML file and remember on which line every key stands.

Errors in a configuration name `file:line`. Numbers follow YAML 1.2: PyYAML alone reads `1e-5` as a
string, which is how a learning rate silently becomes text. A key given twice is an error.
"""

import re
from pathlib import Path
from typing import Any

import yaml

Location = tuple[str, ...]


class ConfigError(ValueError):
    """A configuration that cannot be used; the message names the value, the place and the fix."""


class _Loader(yaml.SafeLoader):
    """SafeLoader with YAML 1.2 floats."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)([eE][-+]?\d+)?$"),
    list("-+0123456789."),
)
# Integers are also matched by the pattern above; the integer resolver has to win.
for _first in "-+0123456789":
    _resolvers = _Loader.yaml_implicit_resolvers[_first]
    _resolvers.sort(key=lambda pair: pair[0] == "tag:yaml.org,2002:float")


class Source:
    """One YAML file: its values and the line of every key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[Location, int] = {}
        self.values: dict[str, Any] = self._read()

    def where(self, location: Location) -> str:
        """`file:line` of a key, or of its nearest parent that the file holds."""
        for end in range(len(location), 0, -1):
            if location[:end] in self.lines:
                return f"{self.path}:{self.lines[location[:end]]}"
        return str(self.path)

    def _read(self) -> dict[str, Any]:
        if not self.path.is_file():
            raise ConfigError(f"{self.path}: no such file; give an existing one with --config FILE")
        try:
            text = self.path.read_text(encoding="utf-8")
            root = yaml.compose(text, Loader=_Loader)
            if root is None:
                return {}
            self._walk(root, ())
            values = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
        except UnicodeDecodeError as error:
            raise ConfigError(
                f"{self.path}: not UTF-8 ({error}); save the file as UTF-8"
            ) from error
        except yaml.YAMLError as error:
            raise ConfigError(f"{self.path}: not valid YAML: {_one_line(error)}") from error
        if not isinstance(values, dict):
            raise ConfigError(
                f"{self.path}:1: expected sections such as `trainer:`, got {values!r}"
            )
        return values

    def _walk(self, node: yaml.Node, prefix: Location) -> None:
        if isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                self.lines[(*prefix, str(number))] = item.start_mark.line + 1
                self._walk(item, (*prefix, str(number)))
        if not isinstance(node, yaml.MappingNode):
            return
        for key, value in node.value:
            location = (*prefix, str(key.value))
            line = key.start_mark.line + 1
            if location in self.lines:
                first = self.lines[location]
                raise ConfigError(
                    f"{self.path}:{line}: `{'.'.join(location)}` is given twice (first on line "
                    f"{first}); keep one"
                )
            self.lines[location] = line
            self._walk(value, location)


def scalar(text: str) -> Any:
    """The value of a command line override, read as YAML: `1e-5`, `true`, `[a, b]`."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError:
        return text


def _one_line(error: yaml.YAMLError) -> str:
    return " ".join(str(error).split())
