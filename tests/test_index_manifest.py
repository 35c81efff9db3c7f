"""A manifest is what was written, or it is refused."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrievers.index import Index, IndexDamaged, IndexMismatch, IndexWriter, open_or_build
from retrievers.index_files import facts, verify
from retrievers.index_manifest import read_manifest, refuse_other, sealed, unsealed

WAY_OUT = "delete the directory to have it rebuilt (`rlqr index --config FILE --rebuild` does both)"
PARTS = {"documents": "abc", "k1": 1.5, "small": 1e-05, "analysis": {"stemmer": None, "cjk": True}}


def write(writer: IndexWriter) -> None:
    writer.json("words", ["a", "b"])
    writer.about.update(blank=2, longest=0.30000000000000004, name="예산 \ud800")


def opened(folder: Path) -> Index:
    return open_or_build(folder, "lexical", PARTS, write)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    opened(tmp_path / "index")
    return tmp_path / "index" / "manifest.json"


def refused(folder: Path) -> list[str]:
    """What each way of reading says."""
    said = []
    for read in (opened, facts, verify):
        with pytest.raises(IndexDamaged) as caught:
            read(folder)
        said.append(str(caught.value))
    return said


def test_any_changed_byte_is_seen_or_changes_nothing(manifest: Path) -> None:
    before, content = read_manifest(manifest.parent), manifest.read_bytes()
    rng = random.Random(0)
    seen = 0
    for _ in range(500):
        at = rng.randrange(len(content))
        byte = rng.choice([value for value in range(256) if value != content[at]])
        manifest.write_bytes(content[:at] + bytes([byte]) + content[at + 1 :])
        try:
            found = read_manifest(manifest.parent)
            refuse_other(manifest.parent, found, "lexical", PARTS)
        except (IndexDamaged, IndexMismatch):
            seen += 1
        else:
            assert found == before
    assert seen > 400  # some bytes stand between values, where a blank may be another


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"blank": 2', b'"blank": 3'),
        (b"0.30000000000000004", b"0.40000000000000004"),
        (b'"k1": 1.5', b'"k1": 1.2'),
        (b'"cjk": true', b'"cjk": null'),
        (b'"abc"', b'"abd"'),
        (b'"words.json"', b'"wards.json"'),
        (b'"kind": "lexical"', b'"kind": "lexicon"'),
        (b'"format": 2', b'"format": 3'),
        (b'"about": {', b'"abaut": {'),
        (b'"checksum": "', b'"checksum": "0'),
        (b'"fingerprint": "', b'"fingerprint": "0'),
        (b"{", b'{"more": 1,'),
    ],
)
def test_a_changed_value_of_the_right_type(manifest: Path, old: bytes, new: bytes) -> None:
    content = manifest.read_bytes()
    assert old in content
    manifest.write_bytes(content.replace(old, new, 1))
    for text in refused(manifest.parent):
        assert "manifest.json was changed: its checksum differs" in text
        assert WAY_OUT in text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is not JSON as it was written: Expecting value"),
        (b"{", "is not JSON as it was written"),
        (b"\xff{}", "is not JSON as it was written: 'utf-8' codec"),
        (b"[1]", "is not JSON as it was written: it is no object"),
        (b"3", "is not JSON as it was written: it is no object"),
        (b"[" * 10**5, "is not JSON as it was written: maximum recursion depth"),
        (b'{"a": ' * 10**5, "is not JSON as it was written: maximum recursion depth"),
        (b'{"a": 1e905}', "is not JSON as it was written: Out of range float"),
        (b'{"a": NaN, "checksum": "b"}', "is not JSON as it was written: Out of range float"),
        (b"{}", "lacks its checksum"),
        (b'{"checksum": null}', "lacks its checksum"),
        (b'{"checksum": 3}', "was changed"),
        (b'{"checksum": [3]}', "was changed"),
    ],
)
def test_what_is_no_manifest(manifest: Path, content: bytes, says: str) -> None:
    manifest.write_bytes(content)
    for text in refused(manifest.parent):
        assert f"manifest.json {says}" in text
        assert WAY_OUT in text


@pytest.mark.parametrize("change", [lambda values: values, lambda values: values | {"format": 1}])
def test_one_of_an_older_version_says_so(
    manifest: Path, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Format 1 had no checksum of the manifest."""
    values = change(unsealed(manifest.read_bytes()))
    manifest.write_text(json.dumps(values, indent=1))
    for text in refused(manifest.parent):
        assert "manifest.json lacks its checksum: an older version wrote it, or it is dam" in text
        assert WAY_OUT in text


def test_one_of_a_later_version_is_refused_by_its_format(manifest: Path) -> None:
    manifest.write_bytes(sealed(unsealed(manifest.read_bytes()) | {"format": 3}))
    with pytest.raises(IndexMismatch, match=r"format: there 3, asked for 2\nDelete the directory"):
        opened(manifest.parent)


def test_sealed_values_come_back_as_json_has_them() -> None:
    values = {"pair": (1, 2.0), 3: "key", "text": "\ud800\n", "none": None}
    expected = {"pair": [1, 2.0], "3": "key", "text": "\ud800\n", "none": None}
    assert unsealed(sealed(values)) == expected
    # sha256 of {"a":1}, as the tool of that name prints it.
    digest = "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
    assert json.loads(sealed({"a": 1})) == {"a": 1, "checksum": digest}
    with pytest.raises(ValueError, match="not JSON compliant"):
        sealed({"a": float("inf")})
