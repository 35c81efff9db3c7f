"""Which queries are kept."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from retrievers.collection import Collection, Document
from rewriter.config import Config
from rewriter.generation import Completion
from rewriter.synthesis.filters import FILTERS, Context, Draft, apply_filters
from rewriter.synthesis.filters.untrained import Untrained
from rewriter.synthesis.settings import SynthesisSettings

DOCUMENTS = [
    Document("guide/bicycle.html", "Bicycle care", "Clean the chain of the bicycle twice a year."),
    Document("collections.deque", "collections.deque", "A list with fast appends on both sides."),
    Document("예산", "예산 안내", "서울시 예산은 매년 십이월에 공고한다."),
    Document("12", "", "The harbour opens at six in the morning."),
]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    config = Config.model_validate({"model": {"name": "none"}, "reward": {"backends": "lexical"}})
    return Context(config, Collection.from_documents("docs", DOCUMENTS), tmp_path)


def draft(text: str, document: str = "12", **more: Any) -> Draft:
    return Draft("q", text, document, **more)


def reasons(context: Context, name: str, drafts: list[Draft], **options: Any) -> list[str | None]:
    """What a filter says of each query."""
    settings = SynthesisSettings(filters={name: options}).filters
    _, dropped = apply_filters(drafts, settings, context)
    said = {id(one.draft): one.reason for one in dropped}
    return [said.get(id(one)) for one in drafts]


def test_every_filter_takes_no_queries(context: Context) -> None:
    for name in FILTERS:
        assert reasons(context, name, []) == []


def test_length(context: Context) -> None:
    drafts = [draft("12"), draft("123"), draft("12345"), draft("123456")]
    assert reasons(context, "length", drafts, least=3, most=5) == [
        "too short",
        None,
        None,
        "too long",
    ]


@pytest.mark.parametrize(
    ("text", "document", "allowed", "reason"),
    [
        ("when does it open?", "12", "document", None),
        ("언제 여나요?", "12", "document", "another script"),
        ("서울시 예산은 언제?", "예산", "document", None),
        ("when is the 예산", "예산", "document", "another script"),
        ("SDS 데이터센터 예산 규모", "예산", "document", None),  # 3 of 12 letters are Latin
        ("언제 여나요?", "12", ["latin", "hangul"], None),
        ("東京の天気", "12", ["japanese"], None),
        ("東京天氣", "12", ["han"], None),
        ("12?", "12", ["latin"], "no letters"),
    ],
)
def test_script(context: Context, text: str, document: str, allowed: Any, reason: Any) -> None:
    assert reasons(context, "script", [draft(text, document)], allowed=allowed) == [reason]


@pytest.mark.parametrize(
    ("text", "document", "reason"),
    [
        ("how is bicycle care done?", "guide/bicycle.html", "names the document"),
        ("what does guide/bicycle.html say?", "guide/bicycle.html", "names the document"),
        ("my bicycle squeaks", "guide/bicycle.html", "names the document"),  # the file's name
        ("bicycles need what care?", "guide/bicycle.html", None),
        ("is Collections.Deque thread safe?", "collections.deque", "names the document"),
        ("why is a deque fast?", "collections.deque", "names the document"),
        ("which collections are fast?", "collections.deque", None),
        ("open at 12?", "12", None),  # a number is a word like any other
        ("예산 안내 좀", "예산", "names the document"),
        ("예산 규모?", "예산", None),  # an id of two characters
    ],
)
def test_names(context: Context, text: str, document: str, reason: Any) -> None:
    assert reasons(context, "names", [draft(text, document)]) == [reason]


def test_the_last_part_of_a_name_may_be_allowed(context: Context) -> None:
    drafts = [draft("why is a deque fast?", "collections.deque")]
    assert reasons(context, "names", drafts, last_part=False) == [None]


@pytest.mark.parametrize(
    ("text", "most", "reason"),
    [
        # 5 words are 3 runs; "the harbour opens" is one of the document's: a share of 1/3.
        ("when the harbour opens daily", 0.3, "copied wording"),
        ("when the harbour opens daily", 0.34, None),
        ("The HARBOUR opens!", 0.9, "copied wording"),
        ("harbour opens", 0.0, None),  # too short for a run
        ("", 0.0, None),
    ],
)
def test_copied_share(context: Context, text: str, most: float, reason: Any) -> None:
    assert reasons(context, "copied", [draft(text)], most=most) == [reason]


STRICT = "three content words in a row"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        # The document's content words are harbour, opens, six, morning.
        ("the harbour, then, opens at six?", STRICT),
        ("opens by six this morning", STRICT),
        ("harbour opens early, six", None),
        ("morning six opens harbour", None),
    ],
)
def test_strict_wording_passes_over_stop_words(context: Context, text: str, reason: Any) -> None:
    assert reasons(context, "copied", [draft(text)], most=1.0, strict=True) == [reason]
    assert reasons(context, "copied", [draft(text)], most=1.0) == [None]


def test_near_duplicates_keep_the_first(context: Context) -> None:
    drafts = [
        draft("how often should the chain be cleaned in spring"),
        draft("how often should the chain be cleaned in autumn"),  # 6 of 8 runs: .75
        draft("who opens the harbour"),
        draft("How often should the chain be cleaned, in spring?"),
    ]
    assert reasons(context, "near_duplicates", drafts) == [
        None,
        "near-duplicate",
        None,
        "near-duplicate",
    ]
    assert reasons(context, "near_duplicates", drafts, threshold=0.8)[1] is None


def test_what_is_like_a_dropped_query_only_is_kept(context: Context) -> None:
    # 7 of 9 runs are shared by neighbours (.78), 6 of 10 by the first and the last (.6).
    texts = ["a b c d e f g h i j", "a b c d e f g h i k", "z b c d e f g h i k"]
    drafts = [draft(text) for text in texts]
    assert reasons(context, "near_duplicates", drafts) == [None, "near-duplicate", None]


def test_round_trip(context: Context) -> None:
    drafts = [
        draft("harbour morning"),  # first
        draft("morning fast appends", "12"),  # second: another document has two of three words
        draft("violin"),  # nothing is found
    ]
    within = reasons(context, "round_trip", drafts, within=1)
    assert within == [None, "not found within 1", "not found within 1"]
    hard = reasons(context, "round_trip", drafts, within=10, not_within=1)
    assert hard == ["found within 1", None, "not found within 10"]
    anywhere = reasons(context, "round_trip", drafts, within=None, not_within=1)
    assert anywhere == ["found within 1", None, None]


def test_a_search_that_fails_is_counted_apart(context: Context, monkeypatch: Any) -> None:
    from retrievers.base import SearchError
    from retrievers.lexical import LexicalRetriever

    real = LexicalRetriever._search

    def search(self: Any, queries: list[str], k: int) -> Any:
        if "violin" in queries:
            raise SearchError("down")
        return real(self, queries, k)

    monkeypatch.setattr(LexicalRetriever, "_search", search)
    reward = context.config.reward.model_copy(update={"retries": 0})
    context.config = context.config.model_copy(update={"reward": reward})
    drafts = [draft("harbour morning"), draft("violin")]
    assert reasons(context, "round_trip", drafts) == [None, "the search failed"]


def test_learnable(context: Context, monkeypatch: Any) -> None:
    """Rewrites that name the harbour find it; each query has its own three samples."""
    samples = {
        "always": ["harbour", "the harbour", "harbour opens"],
        "sometimes": ["harbour", "violin", ""],
        "never": ["violin", "bicycle", ""],
    }

    def complete(self: Any, queries: list[str], number: int) -> list[Completion]:
        return [Completion(samples[query][number], False) for query in queries]

    monkeypatch.setattr(Untrained, "complete", complete)
    drafts = [draft(text) for text in samples]
    assert reasons(context, "learnable", drafts, samples=3, k=1) == [
        "always hit",
        None,
        "never hit",
    ]
    kept = reasons(context, "learnable", drafts, samples=3, k=1, always=False, never=False)
    assert kept == [None, None, None]


@pytest.mark.slow
def test_the_untrained_rewriter_is_sampled_and_not_twice(tmp_path: Path, monkeypatch: Any) -> None:
    import rewriter.generation
    from retrievers.loaders import load
    from tests import tiny

    values = tiny.settings(tmp_path)
    config = Config.model_validate(values)
    collection = load("beir", **values["collection"]["options"])
    drafts = [draft("alpha", "d15"), draft("beta", "d1")]
    calls: list[int] = []
    real = rewriter.generation.generate

    def counted(model: Any, tokenizer: Any, conversations: Any, decoding: Any) -> Any:
        calls.append(len(conversations))
        return real(model, tokenizer, conversations, decoding)

    monkeypatch.setattr(rewriter.generation, "generate", counted)
    options = {"samples": 4, "k": 20, "temperature": 1.5}
    first = reasons(Context(config, collection, tmp_path / "cache"), "learnable", drafts, **options)
    assert first[0] == "never hit"  # no rewrite of this model holds "noise15"
    assert calls == [2, 2, 2, 2]
    again = Context(config, collection, tmp_path / "cache")
    assert reasons(again, "learnable", drafts, **options) == first
    assert calls == [2, 2, 2, 2]


def test_each_query_is_dropped_once_by_the_first_filter(context: Context) -> None:
    drafts = [draft("언제"), draft("when does the harbour open")]
    settings = SynthesisSettings(filters={"script": {}, "length": {"least": 5}}).filters
    kept, dropped = apply_filters(drafts, settings, context)
    assert [one.text for one in kept] == ["when does the harbour open"]
    assert Counter(one.filter for one in dropped) == {"length": 1}
