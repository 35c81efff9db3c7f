"""Read a YAML file and remember on which line every key stands; write YAML that reads back equal.

Errors in a configuration name `file:line`. Numbers follow YAML 1.2: PyYAML alone reads `1e-5` as a
string, which is how a learning rate silently becomes text, `010` as 8 and `1:30` as 90. Dates stay
text. A key given twice is an error.
"""

import re
from pathlib import Path
from typing import Any

import yaml

Location = tuple[str, ...]

_FLOAT = re.compile(
    r"^[-+]?(?:(?:\d[\d_]*\.[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d+)?|\d[\d_]*[eE][-+]?\d+"
    r"|\.(?:inf|Inf|INF))$|^\.(?:nan|NaN|NAN)$"
)
_INT = re.compile(r"^(?:[-+]?(?:0|[1-9][\d_]*)|0x[\da-fA-F]+)$")
_BREAKS = re.compile("[\r\x85\u2028\u2029\ufeff]")
_REPLACED = {f"tag:yaml.org,2002:{kind}" for kind in ("float", "int", "timestamp")}


class ConfigError(ValueError):
    """A configuration that cannot be used; the message names the value, the place and the fix."""


class _Loader(yaml.SafeLoader):
    """SafeLoader with the numbers of YAML 1.2 and without dates."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _REPLACED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))


class _Dumper(yaml.SafeDumper):
    """SafeDumper that also quotes texts which YAML 1.2 reads as numbers, such as "1e5"."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # PyYAML writes these as they are in some styles, and reads them back as line ends.
    style = '"' if _BREAKS.search(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
_Dumper.add_representer(str, _text)


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
        return f"{self.path}:1"

    def _read(self) -> dict[str, Any]:
        if not self.path.is_file():
            raise ConfigError(f"{self.path}: no such file; give an existing one with --config FILE")
        try:
            values, self.lines = _parse(self.path.read_text(encoding="utf-8"), str(self.path))
        except UnicodeDecodeError as error:
            raise ConfigError(
                f"{self.path}: not UTF-8 ({error}); save the file as UTF-8"
            ) from error
        except yaml.YAMLError as error:
            raise ConfigError(_no_yaml(error, self.path)) from error
        if values is None:
            return {}
        if not isinstance(values, dict):
            raise ConfigError(
                f"{self.path}:1: expected sections such as `trainer:`, got {values!r:.80}"
            )
        return values


def scalar(text: str) -> Any:
    """The value of a command line override: `1e-5`, `true`, `null`, `[a, b]`, `{a: 1}`.

    Read as YAML, with one difference: text is taken as it stands, so that "Note: be short" and
    "a #1" need no second pair of quotes.

    Raises:
        ConfigError: a key is given twice in braces.
    """
    try:
        value, _ = _parse(text, "command line")
    except yaml.YAMLError:
        return text
    if isinstance(value, dict | list):
        return value if text.lstrip().startswith(("{", "[")) else text
    if value is None:  # nothing at all is an empty text; `null` and `~` are null
        return None if text.strip() else ""
    return text if isinstance(value, str) and text.strip()[0] not in "'\"" else value


def dump(values: Any) -> str:
    """YAML that `Source` reads back as equal values."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def _parse(text: str, name: str) -> tuple[Any, dict[Location, int]]:
    root = yaml.compose(text, Loader=_Loader)
    if root is None:
        return None, {}
    lines: dict[Location, int] = {}
    try:
        _walk(root, (), lines, name)
    except RecursionError as error:
        raise ConfigError(
            f"{name}: nested too deeply, or an alias that holds itself; write it out"
        ) from error
    return yaml.load(text, Loader=_Loader), lines  # noqa: S506 - a SafeLoader


def _walk(node: yaml.Node, prefix: Location, lines: dict[Location, int], name: str) -> None:
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            lines[(*prefix, str(number))] = item.start_mark.line + 1
            _walk(item, (*prefix, str(number)), lines, name)
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        location = (*prefix, str(key.value))
        line = key.start_mark.line + 1
        if location in lines:
            raise ConfigError(
                f"{name}:{line}: `{'.'.join(location)}` is given twice (first on line "
                f"{lines[location]}); keep one"
            )
        lines[location] = line
        _walk(value, location, lines, name)


def _no_yaml(error: yaml.YAMLError, path: Path) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"{path}:{mark.line + 1}" if mark else str(path)
    problem = getattr(error, "problem", None) or " ".join(str(error).split())
    return f"{where}: not valid YAML: {problem}; check indentation, colons and quotes there"
