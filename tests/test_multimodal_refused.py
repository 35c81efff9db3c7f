"""Search of page images: pages that the model's processor refuses, or makes too much of."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from retrievers.index import IndexMismatch
from retrievers.multimodal import MultimodalSettings, vectors
from retrievers.multimodal.encoder import ImageRefused, PageEncoder
from retrievers.multimodal.families import FAMILIES as FAMILIES_OF_ENGINE
from retrievers.pages import PageError
from retrievers.terms import EmptyCorpusError
from tests import page_engines
from tests.page_engines import build, collection, ids, page, paged
from tests.page_images import picture, save_pdf, with_images
from tests.tiny_pages import FAMILIES

models, model, read = page_engines.models, page_engines.model, page_engines.read  # fixtures

SKIP = {"failed": "skip"}
BY_AREA = [family for family in FAMILIES if family.startswith("ColQwen")]


def strip(width: int = 3, height: int = 4000) -> Image.Image:
    """A page so long that the processors of Qwen's models refuse it: their limit is 200 to 1."""
    image = Image.new("RGB", (width, height), "white")
    ImageDraw.Draw(image).point((0, 0), "black")
    return image


# What the processor refuses


@pytest.mark.parametrize("model", [*BY_AREA, "bundled:page-reader"])
def test_a_strip_stops_with_document_page_and_file(
    model: str, models: Path, tmp_path: Path
) -> None:
    documents = paged([[page("one")], [page("two"), strip()], [page("three")]], tmp_path)
    named = (
        r"1-1\.png: page 2 of document 'd1', 3 x 4000 pixels: the model does not take it: .*aspect "
        r"ratio must be smaller than 200.*; change or remove the page, or set pages\.failed"
    )
    with pytest.raises(PageError, match=named):
        build(documents, model if ":" in model else models / model)


def test_a_strip_is_skipped_and_counted(model: str, tmp_path: Path, read: list[int]) -> None:
    pages = [[page("one")], [page("two"), strip()], [strip()], [page("three")]]
    retriever = build(paged(pages, tmp_path), model, tmp_path / "multimodal", pages=SKIP)
    assert (retriever.pages, retriever.failed_pages, retriever.blank_pages) == (3, 2, 0)
    assert retriever.blank == 1  # documents without anything to find
    found = retriever.search(["one"], 9)
    assert sorted(ids(found[0])) == ["d0", "d1", "d3"]
    # Once together, then each alone.
    assert read == [5, 1, 1, 1, 1, 1]
    # The others have the vectors that they have without it.
    (tmp_path / "without").mkdir()
    without = build(paged([[page("one")], [page("two")], [], [page("three")]], tmp_path), model)
    for hit, other in zip(found[0], without.search(["one"], 9)[0], strict=True):
        assert (hit.id, hit.score) == (other.id, pytest.approx(other.score, abs=1e-4))


def test_nothing_but_failed_pages(model: str, tmp_path: Path) -> None:
    with pytest.raises(EmptyCorpusError, match="or blank ones only; 2 pages failed"):
        build(paged([[strip()], [strip()]], tmp_path), model, pages=SKIP)


def test_pages_in_memory_in_pdf_and_rendered_are_named(model: str, tmp_path: Path) -> None:
    content = tmp_path / "x.png"
    strip().save(content)
    with pytest.raises(
        PageError, match=r"^document 'd0', column 'images': page 1 of document 'd0'"
    ):
        build(with_images([content.read_bytes()]), model)
    pdf = save_pdf(tmp_path / "a.pdf", [picture("1"), strip(4, 4000)])
    for cell in (str(pdf), [str(pdf)], {"path": str(pdf), "page": 2}):
        number = 1 if isinstance(cell, dict) else 2
        with pytest.raises(PageError, match=rf"^{pdf}: page {number} of document 'd0', \d+ x "):
            build(with_images([cell]), model)
    folder = tmp_path / "folder"
    folder.mkdir()
    picture("1").save(folder / "1.png")
    strip().save(folder / "2.png")
    with pytest.raises(PageError, match=rf"^{folder / '2.png'}: page 2 of document 'd0', 3 x "):
        build(with_images([str(folder)]), model)
    style = {"width": 16, "height": 4000, "height_grid": None, "font_size": 8}
    with pytest.raises(PageError, match=r"^page 1 of document 'd0', 16 x 4000 pixels"):
        build(["a"], model, pages={"style": style})


def test_a_fault_of_the_batch_alone_costs_no_page(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = PageEncoder.pages

    def alone(self: PageEncoder, images: Sequence[Image.Image]) -> Any:
        if len(images) > 1:
            raise ImageRefused("one at a time")
        return pages(self, images)

    monkeypatch.setattr(PageEncoder, "pages", alone)
    assert build(["one", "two", "three"], model).pages == 3


# What skipping changes in an index


def test_a_stopped_build_goes_on_with_skip(
    model: str, tmp_path: Path, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "SHARD", 2)
    documents = paged([[page(str(n))] for n in range(6)] + [[strip()]], tmp_path)
    with pytest.raises(PageError, match=r"6-0\.png"):
        build(documents, model, tmp_path / "multimodal")
    assert sum(read) == 7
    read.clear()
    made = build(documents, model, tmp_path / "multimodal", pages={**SKIP, "max_pages": 3})
    assert sum(read) == 1  # the strip alone is tried again
    assert (made.pages, made.failed_pages) == (6, 1)


@pytest.mark.parametrize("first", ["stop", "skip"])
def test_an_index_without_failed_pages_serves_both(
    first: str, model: str, tmp_path: Path, read: list[int]
) -> None:
    documents = paged([[page("one")], [page("two")]], tmp_path)
    built = build(documents, model, tmp_path / "multimodal", pages={"failed": first})
    read.clear()
    for chosen in ({"failed": "stop"}, SKIP, {"max_pages": 1}):
        opened = build(documents, model, tmp_path / "multimodal", pages=chosen)
        assert opened.fingerprint == built.fingerprint
    assert read == []


@pytest.mark.parametrize("broken", [False, True])
def test_an_index_that_lacks_failed_pages_is_not_opened_with_stop(
    broken: bool, model: str, tmp_path: Path
) -> None:
    documents = paged([[page("one")], [strip()]], tmp_path)
    if broken:
        (tmp_path / "1-0.png").write_bytes(b"no image")
    build(documents, model, tmp_path / "multimodal", pages=SKIP)
    with pytest.raises(IndexMismatch, match=r"lacks 1 pages that failed .* choose 'skip', or del"):
        build(documents, model, tmp_path / "multimodal")
    build(documents, model, tmp_path / "multimodal", pages=SKIP)


def test_shards_that_lack_failed_pages_are_made_again_with_stop(
    model: str, tmp_path: Path, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "SHARD", 1)
    documents = paged([[page("one")], [strip()], [page("three")]], tmp_path)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(vectors.PageVectorBuilder, "_summed", killed)
        with pytest.raises(KeyboardInterrupt):
            build(documents, model, tmp_path / "multimodal", pages=SKIP)
    read.clear()
    with pytest.raises(PageError, match=r"1-0\.png: page 1 of document 'd1'"):
        build(documents, model, tmp_path / "multimodal")
    assert read == [1]  # the strip; the first document's shard was opened


# The cap of image tokens


@pytest.mark.parametrize("family", BY_AREA)
@pytest.mark.parametrize("cap", [1, 2, 7, 8, 9, 20])
def test_small_images_that_are_enlarged_keep_to_the_cap(
    family: str, cap: int, models: Path, tmp_path: Path
) -> None:
    model = shutil.copytree(models / family, tmp_path / "m")
    file = model / "processor_config.json"
    saved = json.loads(file.read_text())
    size = saved["image_processor"]["size"]
    size["shortest_edge"] = size["longest_edge"]  # every image is brought to 64 tokens
    file.write_text(json.dumps(saved))
    encoder = PageEncoder(MultimodalSettings(model=str(model), device="cpu", max_image_tokens=cap))
    around = (
        len(
            PageEncoder(MultimodalSettings(model=str(model), device="cpu")).pages(
                [picture("x", (32, 32))]
            )[0]
        )
        - 64
    )
    for width, height in ((9, 9), (30, 30), (21, 30), (10, 20), (30, 70), (500, 1000)):
        (rows,) = encoder.pages([picture("x", (width, height))])
        assert 1 <= len(rows) - around <= cap


@pytest.mark.parametrize(("size", "tokens"), [((10, 900), 20), ((900, 10), 20), ((30, 600), 20)])
def test_a_strip_keeps_to_the_cap(size: tuple[int, int], tokens: int, model: str) -> None:
    # 90 to 1: the processor would have it be √(20 · 90) = 42 tokens long and less than one wide.
    encoder = PageEncoder(MultimodalSettings(model=model, device="cpu", max_image_tokens=20))
    alone, after = (encoder.pages([strip(*size)]), encoder.pages([picture("x"), strip(*size)]))
    around = len(encoder.pages([strip(2, 2)])[0]) - 1  # words of the prompt: the image is one token
    assert len(alone[0]) == len(after[1]) == tokens + around


def test_texts_of_one_line_keep_to_the_cap(model: str) -> None:
    # 384 x 16 pixels, 24 to 1: 24 tokens as they are, √(20 · 24) = 21 by their area.
    assert build(collection(["one", "two"]), model, max_image_tokens=20).pages == 2


def test_a_processor_that_keeps_to_no_cap_is_told_with_the_page(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = paged([[page("one")], [picture("x", (30, 600))]], tmp_path)
    given = FAMILIES_OF_ENGINE["ColQwen2"]
    monkeypatch.setitem(FAMILIES_OF_ENGINE, "ColQwen2", given._replace(shorten=None))
    named = (
        r"1-0\.png: page 1 of document 'd1', 30 x 600 pixels: .* it becomes 12 vectors, and "
        r"max_image_tokens is 8; raise that or leave it out"
    )
    with pytest.raises(PageError, match=named):  # √(8 · 20) = 12.6
        build(documents, model, max_image_tokens=8)
    skipped = build(documents, model, max_image_tokens=8, pages=SKIP)
    assert (skipped.pages, skipped.failed_pages) == (1, 1)
