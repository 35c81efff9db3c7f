"""What a generator is asked, and how its answer is read."""

import pytest
from pydantic import ValidationError

from rewriter.synthesis.generators.base import shortened
from rewriter.synthesis.generators.headings import HeadingsGenerator, HeadingsSettings, headings
from rewriter.synthesis.prompts import PROMPTS, SynthesisPrompt, Written
from rewriter.synthesis.settings import SynthesisSettings
from tests.generation_server import tagged

PROMPT = PROMPTS["english"]


@pytest.mark.parametrize(
    ("answer", "written"),
    [
        (tagged("I run a bar.", "When do I close?"), ("I run a bar. When do I close?", "")),
        (
            f"<think>{tagged('no', 'no?')}</think>{tagged('I bake.', 'How hot?')}",
            ("I bake. How hot?", ""),
        ),
        (tagged("", "", ""), (None, "too little")),
        (tagged("I bake.", "How hot?", ""), (None, "too little")),
        (tagged("I bake.", "  \n "), (None, "too little")),
        ("How hot?", (None, "unparsed: no_answer_tag")),
        ("", (None, "unparsed: no_answer_tag")),
        ("<scenario>a</scenario><question>b</question>", (None, "unparsed: no_answer_tag")),
        ("<scenario>a</scenario><question>b", (None, "unparsed: unclosed_answer_tag")),
        ("<think>still", (None, "unparsed: unclosed_think")),
    ],
)
def test_all_three_parts_or_nothing(answer: str, written: tuple[str | None, str]) -> None:
    assert PROMPT.read(answer)[:2] == written


def test_parts_are_kept_apart_and_put_together_as_said() -> None:
    prompt = SynthesisPrompt(
        template="{document}", page_template="", query="{question} ({scenario})"
    )
    answer = tagged("I type {question}.", "Why\nnot?")
    # The question is filled in once; braces in an answer are plain text.
    assert prompt.read(answer) == Written(
        "Why not? (I type {question}.)", "", "I type {question}.", "Why not?"
    )


def test_what_is_filled_in_is_never_read_as_a_template() -> None:
    message = PROMPT.messages("{document}", "a {title} b")[-1]["content"]
    assert message.endswith("<document>\n{document}\na {title} b\n</document>")


def test_examples_are_earlier_turns_in_the_same_form() -> None:
    example = {"document": "Ovens", "scenario": "I bake.", "question": "Hot?", "answer": "Yes."}
    prompt = SynthesisPrompt(
        system="Ask.", template="<{document}>", page_template="", examples=(example,)
    )
    assert prompt.messages("", "Bars") == [
        {"role": "system", "content": "Ask."},
        {"role": "user", "content": "<Ovens>"},
        {
            "role": "assistant",
            "content": "<scenario>I bake.</scenario>\n<question>Hot?</question>\n"
            "<answer>Yes.</answer>",
        },
        {"role": "user", "content": "<Bars>"},
    ]


def test_a_page_stands_before_the_text() -> None:
    (turn,) = PROMPT.page_messages("T", "data:image/png;base64,AA==")
    image, text = turn["content"]
    assert image == {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    assert text["type"] == "text"
    assert "page" in text["text"]
    assert "{" not in text["text"]


def test_korean_is_built_in_and_a_part_of_it_can_be_one_s_own() -> None:
    settings = SynthesisSettings(prompt={"base": "korean", "system": "짧게."})
    assert settings.prompt.system == "짧게."
    assert settings.prompt.template == PROMPTS["korean"].template
    assert "문서를 읽으세요" in settings.prompt.template
    assert SynthesisSettings(prompt="korean").prompt == PROMPTS["korean"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"prompt": "french"}, "no prompt 'french'; there are: english, korean"),
        ({"prompt": {"template": "no place"}}, "write {document} exactly once"),
        ({"prompt": {"query": "{scenario}"}}, "write {question}"),
        ({"prompt": {"answer_tag": "<a>"}}, "give one word"),
        ({"generator": {"kind": "gpt"}}, "no generator 'gpt'; there are: headings"),
        ({"generator": {"kind": "openai", "options": {"model": "m"}}}, "url"),
        ({"filters": {"rude": {}}}, "no filter 'rude'; there are: length, script"),
        ({"filters": {"length": {"least": 9, "most": 3}}}, "no query has such a length"),
        ({"filters": {"round_trip": {"within": None}}}, "both null"),
        ({"filters": {"round_trip": {"within": 3, "not_within": 3}}}, "no rank is allowed"),
        ({"filters": {"round_trip": {"backend": "lexicl"}}}, "no backend 'lexicl'; there are: "),
        ({"filters": {"learnable": {"backend": "x"}}}, "no backend 'x'; there are: custom"),
        ({"filters": {"script": {"allowed": ["korean"]}}}, "'korean' is no script; give some such"),
        ({"filters": {"script": {"allowed": []}}}, "no script is named"),
        ({"splits": {"train": 0.5}}, "add up to 1"),
        ({"splits": {"my train": 1}}, "split 'my train': use ASCII letters"),
        ({"keep": ["test"]}, "keep and splits both have test"),
        ({"reads": "pages"}, "generator headings reads no page images"),
    ],
)
def test_settings_that_mean_nothing_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SynthesisSettings.model_validate(given)
    assert said in str(caught.value)


def test_a_fault_in_a_filter_names_its_key() -> None:
    with pytest.raises(ValidationError) as caught:
        SynthesisSettings.model_validate({"filters": {"copied": {"most": 2}}})
    assert caught.value.errors()[0]["loc"] == ("filters", "copied", "most")


def test_filters_are_applied_in_one_order_whatever_the_file_s() -> None:
    settings = SynthesisSettings(filters={"near_duplicates": None, "length": {"least": 3}})
    assert list(settings.filters) == ["length", "near_duplicates"]


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("short", 5, "short"),
        ("one two three four", 12, "one two…"),
        ("aaaaaaaaaaaaaaaaaaaa", 10, "aaaaaaaaa…"),  # no space: cut anywhere
        ("서울시 예산 공고와 안내", 9, "서울시 예산…"),
    ],
)
def test_texts_are_cut_where_a_word_ends(text: str, limit: int, kept: str) -> None:
    assert shortened(text, limit) == kept
    assert len(shortened(text, limit)) <= limit


def test_headings_of_markdown_html_and_underlines() -> None:
    text = (
        "# Opening hours #\n\nWe open.\n\nPrices\n------\nlow\n\n```sh\n# no heading\n```\n"
        "<h2 class='a'>Dogs &amp; <b>cats</b></h2>\n#hashtag\n# Opening hours\n"
    )
    assert headings(" Shop ", text, {}) == ["Shop", "Opening hours", "Prices", "Dogs & cats"]


def test_declared_headings_come_first() -> None:
    assert headings("T", "# c", {"headings": "a\n\nb"}) == ["T", "a", "b", "c"]
    assert headings("", "", {"headings": ["a"]}) == ["", "a"]


@pytest.mark.parametrize(
    ("found", "number", "query"),
    [
        (["T", "a", "b"], 0, "a"),
        (["T", "a", "b"], 1, "b"),
        (["T", "a", "b"], 2, ""),
        (["T"], 0, "T"),
        (["T"], 1, ""),
        (["T", "x" * 11, "b"], 0, "b"),
        ([""], 0, ""),
    ],
)
def test_the_nth_heading_answers_the_nth_request(found: list[str], number: int, query: str) -> None:
    from rewriter.synthesis.generators import Request

    generator = HeadingsGenerator(HeadingsSettings(most_chars=10))
    ((reply,),) = generator.write([Request("k", [], found, number)])
    assert reply.text == query


def test_headings_say_whom_they_favour() -> None:
    assert "favours keyword search" in HeadingsGenerator.note
