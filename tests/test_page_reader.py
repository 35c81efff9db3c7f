"""The training of the demo's page reader: its text, pages, labels, losses, and resuming."""

import json
import math
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from colpali_engine.models import ColQwen2, ColQwen2Processor

from launch.page_reader.batches import page_inputs
from launch.page_reader.drawing import draw, lay_out
from launch.page_reader.losses import located, pooled
from launch.page_reader.model import Size, build_processor, build_tokenizer, ngrams
from launch.page_reader.pages import NOTHING, OTHER, Look, PageMaker, run_of_words
from launch.page_reader.settings import Settings, Stage
from launch.page_reader.text import WORD, TextMaker
from launch.train_page_reader import Training
from retrievers.demo.stdlib import documents
from retrievers.pages import PageStyle, render_pages

FOLDER = Path(__file__).parents[1] / "retrievers" / "demo" / "page_reader"
STYLE = PageStyle(word_grid=16)
NOTES = {
    "kettle": "The copper kettle boils too early. Turn the left valve before noon.",
    "ferry": "Ferries to the island leave hourly. Children travel free on Sunday.",
    "loom": "Thread the loom from behind. A broken warp is knotted twice.",
    "bees": "Smoke calms the bees. Lift the frames slowly and count the queens.",
    "bread": "Fold the dough four times. Bake with steam until the crust is brown.",
    "chess": "A rook belongs behind passed pawns. Trade bishops when you are ahead.",
}

SMALL = Size(300, vision_width=32, vision_layers=1, vision_heads=2, text_width=64, text_heads=2)


@pytest.fixture(scope="module")
def maker() -> TextMaker:
    return TextMaker(f"{row['title']} {row['text']}" for row in documents())


def runs(text: str, length: int = 8) -> set[tuple[str, ...]]:
    words = [word.lower() for word in WORD.findall(text)]
    return {tuple(words[i : i + length]) for i in range(len(words) - length + 1)}


def test_training_text_holds_no_run_of_eight_words_of_the_demo(maker: TextMaker) -> None:
    known = set().union(*(runs(row["text"]) for row in documents()))
    random = Random(1)
    made = " ".join(maker.text(random, 400) for _ in range(1000))
    assert len(runs(made)) > 50_000
    assert not runs(made) & known
    assert runs(documents()[0]["text"]) & known  # so the check can fail


def test_training_text_is_the_same_for_the_same_seed(maker: TextMaker) -> None:
    assert maker.text(Random(3), 200) == maker.text(Random(3), 200)
    assert maker.text(Random(3), 200) != maker.text(Random(4), 200)


@pytest.mark.parametrize("grid", [1, 16])
def test_training_pages_look_as_the_product_draws_them(maker: TextMaker, grid: int) -> None:
    style = PageStyle(word_grid=grid, offset=(3, 5))
    text = maker.text(Random(1), 400)
    product = np.asarray(render_pages("a.title", text, style)[0].convert("L"))
    mine = draw(lay_out(f"a.title\n\n{text}", style), style)
    assert (mine[: len(product)] == product).all()
    assert (mine[len(product) :] == 255).all()


def labelled(text: str, style: PageStyle) -> tuple[list[list[int]], list[list[int]], list[str]]:
    tokenizer = build_tokenizer(["ab ab cd cd ab cd"] * 9, Size(vocabulary=48))
    page = PageMaker(TextMaker([text]), tokenizer).labelled(lay_out(text, style), style)
    names = [
        tokenizer.convert_ids_to_tokens(int(t)) if t >= 0 else "" for t in page.tokens[0, :, 0]
    ]
    return page.characters[0].tolist(), page.tokens[0].tolist(), names


def test_labels_of_a_line() -> None:
    # Cells of 8 pixels, two a patch. A space of 8 and then the next patch: words at 0, 32 and 64.
    style = PageStyle(width=96, height=16, margin=0, word_grid=16)
    characters, tokens, names = labelled("ab cd (ab", style)
    a, b, c, d = range(4)
    assert characters == [
        *([a, b], [NOTHING] * 2, [c, d], [NOTHING] * 2),
        *([OTHER, a], [b, NOTHING]),
    ]
    assert names == ["ab", "", "cd", "", "ab", "ab"]
    assert [pair[1] for pair in tokens] == [-1] * 6


def test_two_tokens_in_one_patch_are_both_labels() -> None:
    # Moved by a cell, "abcd" lies as "_a" "bc" "d_", and is the tokens "ab" and "cd".
    style = PageStyle(width=96, height=16, margin=0, offset=(8, 0))
    _, tokens, names = labelled("abcd", style)
    ab, cd = tokens[0][0], tokens[2][0]
    assert [names[0], names[2]] == ["ab", "cd"]
    assert tokens == [[ab, -1], [ab, cd], [cd, -1], [-1, -1], [-1, -1], [-1, -1]]


def test_queries_are_runs_of_the_pages_words(maker: TextMaker) -> None:
    page = PageMaker(maker, build_tokenizer(["a"], Size(vocabulary=48))).page(
        Random(1), Look(), 384, 96
    )
    text = " ".join(page.words)
    for seed in range(20):
        query = run_of_words(page, Random(seed))
        assert query in text
        assert 3 <= len(query.split()) <= 8


def test_page_inputs_are_the_processors(maker: TextMaker) -> None:
    tokenizer = build_tokenizer([maker.text(Random(1), 2000)], SMALL)
    processor = build_processor(tokenizer, SMALL)
    images = render_pages("a title", "some words to draw", PageStyle(width=64, height=96)) * 2
    theirs = processor.process_images(images)
    ours = page_inputs([np.asarray(image.convert("L")) for image in images], processor)
    assert set(ours) == set(theirs)
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name].to(value.dtype), value, msg=name)


def test_located_loss_by_hand() -> None:
    # Cosines 1 with the first patch and 0.9 with the second; at temperature 0.05: logits 20 and 18.
    # Each patch sees one token only, so that its side of the loss is 0.
    tokens, patches = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.9, 0.19**0.5]])
    labels = torch.tensor([[7, -1], [-1, 8]])
    tokens.requires_grad_()
    loss, right = located(tokens, torch.tensor([7]), patches, labels)
    (slope,) = torch.autograd.grad(loss, tokens)
    # Share of the second patch, e^-2 / (1 + e^-2) = 0.119203, times the difference over 0.05.
    assert torch.allclose(slope, torch.tensor([[-0.238406, 1.039186]]), atol=1e-4)
    assert math.isclose(loss.item(), 0.126928, abs_tol=1e-4)  # log(1 + e^-2)
    assert right.item() == 1.0
    loss, right = located(tokens, torch.tensor([8]), patches, labels)
    assert math.isclose(loss.item(), 2.126928, abs_tol=1e-4)  # log(1 + e^2)
    assert right.item() == 0.0


def test_pooled_loss_by_hand() -> None:
    # Means (1, 0) and (0, 1), whatever their lengths; at temperature 0.02: logits 50 and 0.
    queries = torch.tensor([[[2.0, 0.0]], [[0.0, 1.0]]])
    pages = torch.tensor([[[1.0, 1.0], [1.0, -1.0]], [[0.0, 3.0], [0.0, 0.0]]])
    assert pooled(queries, pages).item() < 1e-6
    assert math.isclose(pooled(queries, pages.flip(0)).item(), 50.0, abs_tol=1e-3)
    assert math.isclose(pooled(queries.repeat(2, 1, 1), pages.flip(0)).item(), 50.0, abs_tol=1e-3)


def test_ngrams_of_a_token() -> None:
    assert ngrams("ab") == ["a", "b", "ab", "^ab", "ab$", "=ab"]


def settings() -> Settings:
    stages = (
        Stage(2, (Look(),), characters=1.0),
        Stage(2, (Look(), Look(("DejaVuSans",), word_grids=(1,))), late=0.5, twins=0.5),
    )
    return Settings(stages, SMALL, patches=200, tokenizer_texts=20, save_every=2, log_every=1)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


@pytest.mark.slow
def test_training_runs_and_resumes_to_the_same_weights(tmp_path: Path) -> None:
    straight = Training(settings(), tmp_path / "straight")
    straight.run()
    assert not (tmp_path / "straight" / "state.pt").exists()
    stopped = Training(settings(), tmp_path / "stopped")
    stopped.run(until=2)
    half = weights(tmp_path / "stopped")
    resumed = Training(settings(), tmp_path / "stopped")
    resumed.resume()
    assert resumed.step == 2
    resumed.run()
    full, again = weights(tmp_path / "straight"), weights(tmp_path / "stopped")
    assert full.keys() == again.keys()
    assert all(tensor.isfinite().all() for tensor in full.values())
    assert all(torch.equal(full[name], again[name]) for name in full)
    assert any(not torch.equal(full[name], half[name]) for name in full)
    config = json.loads((tmp_path / "straight" / "config.json").read_text())
    assert config["architectures"] == ["ColQwen2"]
    _, told = ColQwen2.from_pretrained(tmp_path / "straight", output_loading_info=True)
    assert not any(told.values()), told


def test_shipped_weights_are_complete_and_small() -> None:
    assert (FOLDER / "model.safetensors").stat().st_size <= 10_000_000
    _, told = ColQwen2.from_pretrained(FOLDER, output_loading_info=True)
    assert not any(told.values()), told


@pytest.fixture(scope="module")
def reader() -> tuple[ColQwen2, ColQwen2Processor]:
    model = ColQwen2.from_pretrained(FOLDER, dtype=torch.float32).eval()
    return model, ColQwen2Processor.from_pretrained(FOLDER)


def found(reader: tuple[ColQwen2, ColQwen2Processor], queries: list[str]) -> list[str]:
    """The name of the best page for each query."""
    model, processor = reader
    pages = [render_pages(name, text, STYLE)[0] for name, text in NOTES.items()]
    with torch.no_grad():
        seen = model(**processor.process_images(pages))
        asked = model(**processor.process_queries(queries))
    best = processor.score(list(asked), list(seen), device="cpu").argmax(1)
    return [list(NOTES)[i] for i in best.tolist()]


def test_shipped_reader_finds_pages_by_their_words(
    reader: tuple[ColQwen2, ColQwen2Processor],
) -> None:
    queries = {
        "kettle boils too early": "kettle",
        "children travel free": "ferry",
        "a broken warp is knotted": "loom",
        "lift the frames slowly": "bees",
        "steam until the crust": "bread",
        "rook belongs behind passed pawns": "chess",
    }
    assert found(reader, list(queries)) == list(queries.values())
