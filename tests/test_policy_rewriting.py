"""A saved rewriter rewrites: as it was trained, in any batch, with a fall-back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rewriter import Rewriter
from rewriter.generation import Completion, Decoding
from rewriter.policy import load_tokenizer
from rewriter.prompt import PromptSettings
from rewriter.records import Rewrite
from tests import saved_rewriter
from tests.saved_rewriter import PROMPT, adapted, edit, model
from tests.tiny import WORDS

base, saved, copy = saved_rewriter.base, saved_rewriter.saved, saved_rewriter.copy  # fixtures
QUERIES = [" ".join(WORDS[: n % 7 + 1]) for n in range(20)] + ["iota", "unheard of"]


def test_it_asks_as_the_training_did(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rewriter = Rewriter.from_pretrained(saved, dtype="float32")
    asked: list[Any] = []

    def record(_m: Any, _t: Any, conversations: Sequence[Any], decoding: Decoding) -> Any:
        asked.append((list(conversations), decoding))
        return [Completion("Query: alpha", False) for _ in conversations]

    monkeypatch.setattr("rewriter.policy.generate", record)
    assert rewriter.rewrite(["beta gamma"]) == ["alpha"]  # the label went: the same parser
    assert asked == [([PROMPT.messages("beta gamma")], Decoding(12, 16, None, None))]


def test_it_writes_what_the_adapted_model_wrote(saved: Path, base: Path) -> None:
    """Through adapter files and manifest, and with the adapter on."""
    loaded = Rewriter.from_pretrained(saved, dtype="float32")
    decoding = Decoding(max_new_tokens=12)
    tokenizer = load_tokenizer(str(base))
    trained = Rewriter(adapted(base), tokenizer, PROMPT, decoding)
    untrained = Rewriter(model(base), tokenizer, PROMPT, decoding)
    texts = loaded.rewrite(QUERIES)
    assert texts == trained.rewrite(QUERIES)
    assert texts != untrained.rewrite(QUERIES)


def test_a_batch_of_1_writes_what_a_batch_of_16_writes_and_keeps_the_order(copy: Path) -> None:
    many = Rewriter.from_pretrained(copy, dtype="float32").rewrite(QUERIES)
    edit(copy, lambda manifest: manifest["decoding"].update(batch_size=1))
    rewriter = Rewriter.from_pretrained(copy, dtype="float32")
    assert rewriter.decoding.batch_size == 1
    assert rewriter.rewrite(QUERIES) == many
    assert [rewriter.rewrite([query])[0] for query in QUERIES] == many
    assert rewriter.rewrite(QUERIES[::-1]) == many[::-1]
    assert len(set(many)) > 5


def test_a_failure_falls_back_to_the_raw_query(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewriter = Rewriter.from_pretrained(saved)
    rewriter.prompt = PromptSettings(mode="append")
    monkeypatch.setattr(
        "rewriter.policy.generate",
        lambda *_: [Completion("<think>budget", True), Completion("office", False)],
    )
    queries = ["seoul budget", "busan"]
    assert [made.failure for made in rewriter.rewrites(queries)] == ["unclosed_think", None]
    assert rewriter.rewrite(queries) == ["seoul budget", "office"]
    assert rewriter.search_texts(queries) == ["seoul budget", "busan office"]
    rewriter.prompt = PromptSettings(
        mode="append", append_template="{rewrite} {query} {rewrite}, {query}"
    )
    assert rewriter.search_texts(queries) == ["seoul budget", "office busan office, busan"]


def test_a_blank_query_is_not_put_to_the_model(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewriter = Rewriter.from_pretrained(saved)
    asked: list[Any] = []

    def record(_m: Any, _t: Any, conversations: Sequence[Any], _d: Decoding) -> Any:
        asked.extend(conversations)
        return [Completion("alpha", False) for _ in conversations]

    monkeypatch.setattr("rewriter.policy.generate", record)
    queries = ["", "beta", " \n"]
    assert rewriter.rewrites(queries) == [
        Rewrite(None, "blank"),
        Rewrite("alpha"),
        Rewrite(None, "blank"),
    ]
    assert asked == [PROMPT.messages("beta")]
    assert rewriter.rewrite(queries) == rewriter.search_texts(queries) == ["", "alpha", " \n"]


def test_a_query_longer_than_the_context_stays_as_it_is(
    saved: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rewriter = Rewriter.from_pretrained(saved)  # 256 tokens
    queries = ["beta " * 300, "beta"]
    made = rewriter.rewrites(queries)
    assert made[0] == Rewrite(None, "too_long")
    assert made[1].failure != "too_long"
    assert rewriter.rewrite(queries)[0] == queries[0]
    assert "1 of 2 prompts are longer than 244 tokens" in caplog.text


def test_one_string_is_refused_and_an_empty_list_is_not(saved: Path) -> None:
    rewriter = Rewriter.from_pretrained(saved)
    for ask in (rewriter.rewrite, rewriter.rewrites, rewriter.search_texts):
        with pytest.raises(TypeError, match="a list of queries"):
            ask("seoul budget")
        assert ask([]) == []
