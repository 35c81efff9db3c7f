"""The local vision model: page images in, answers out."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrievers.models import ModelError
from rewriter.config import Config
from rewriter.synthesis.generators import Reply, Request, build_generator
from rewriter.synthesis.generators.vision import VisionSettings
from rewriter.synthesis.pipeline import SynthesisError, run
from rewriter.synthesis.prompts import PROMPTS
from rewriter.synthesis.settings import SynthesisSettings
from tests.tiny import save_policy
from tests.tiny_datasets import picture
from tests.tiny_vision import save_vision_model

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def vision(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    folder = save_vision_model(tmp_path_factory.mktemp("vision"))

    def build(**options: Any) -> Any:
        given = {"model": str(folder), "dtype": "float32", "max_new_tokens": 6, **options}
        return build_generator("vision", VisionSettings.model_validate(given))

    return build


def page(key: str, number: int, text: str = "what?") -> Request:
    """A request about a page image: another number is another image."""
    data = base64.b64encode(picture(number)["bytes"]).decode()
    (message,) = PROMPTS["english"].page_messages("", f"data:image/png;base64,{data}")
    message["content"][1]["text"] = text  # a model of one layer hardly sees the image among many
    return Request(key, [message])


def answers(generator: Any, *requests: Request) -> dict[str, Reply]:
    return {reply.key: reply for replies in generator.write(requests) for reply in replies}


def test_the_answer_depends_on_the_image(vision: Callable[..., Any]) -> None:
    generator = vision(batch_size=3)
    assert generator.reads_pages
    found = answers(generator, page("a", 1), page("b", 200), page("c", 1))
    assert found["a"].text == found["c"].text != found["b"].text
    assert all(0 < (one.completion_tokens or 0) <= 6 for one in found.values())
    alone = answers(vision(batch_size=1), page("b", 200))
    assert alone["b"] == found["b"]


def test_draws_follow_from_what_is_asked(vision: Callable[..., Any]) -> None:
    generator = vision(temperature=1.5)
    first = answers(generator, page("a", 1), page("b", 1))
    assert first == answers(generator, page("a", 1), page("b", 1))
    assert first["a"].text != first["b"].text


def test_texts_are_read_too(vision: Callable[..., Any]) -> None:
    generator = vision()
    (message,) = generator.conversation(lambda text: PROMPTS["english"].messages("", text), "city")
    assert answers(generator, Request("t", [message]))["t"].text is not None


def test_what_does_not_fit_is_not_cut(vision: Callable[..., Any]) -> None:
    plain = vision()
    size = answers(plain, page("a", 1))["a"].prompt_tokens or 0
    long = page("b", 1, "what is it, and so on?")
    found = answers(vision(context=size + 6), page("a", 1), long)
    assert found["a"].text is not None
    assert (found["b"].text, found["b"].permanent) == (None, True)
    assert "longer than the model's context" in found["b"].failure


def test_models_that_read_no_images_are_refused(tmp_path: Path) -> None:
    policy = save_policy(tmp_path / "policy")
    with pytest.raises(ModelError, match="reads no images; take a vision model"):
        build_generator("vision", VisionSettings(model=str(policy)))
    with pytest.raises(ModelError, match="no processor that can be read"):
        build_generator("vision", VisionSettings(model=str(tmp_path)))
    mute = save_vision_model(tmp_path / "mute", template=None)
    with pytest.raises(ModelError, match="has no chat template"):
        build_generator("vision", VisionSettings(model=str(mute)))


def test_pages_may_be_read_by_it(tmp_path: Path) -> None:
    settings = SynthesisSettings.model_validate(
        {"reads": "pages", "generator": {"kind": "vision", "options": {"model": "m"}}}
    )
    assert settings.generator.options.identity()["generator"] == "vision"
    with pytest.raises(ValueError, match="reads no page images; take vision"):
        SynthesisSettings.model_validate(
            {"reads": "pages", "generator": {"kind": "transformers", "options": {"model": "m"}}}
        )


def test_pages_of_a_folder_reach_the_model(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for shade in (9, 99):
        (folder / f"{shade}.png").write_bytes(picture(shade)["bytes"])
    model = {"model": str(save_vision_model(tmp_path / "model")), "dtype": "float32"}
    config = Config.model_validate(
        {
            "collection": {"loader": "files", "options": {"folder": str(folder)}},
            "model": {"name": "none"},
            "reward": {"backends": "lexical"},
            "synthesis": {
                "reads": "pages",
                "generator": {"kind": "vision", "options": {**model, "max_new_tokens": 3}},
            },
        }
    )
    # A model with random weights writes no query; what it wrote is in the journal.
    with pytest.raises(SynthesisError, match="0 queries are kept"):
        run(config, tmp_path / "out")
    written = (tmp_path / "out" / "journal.jsonl").read_text().splitlines()
    assert [json.loads(line)["page"] for line in written] == [1, 1]
    assert len({json.loads(line)["document"] for line in written}) == 2
