"""Which text was scored: completions of every form, and what is a failure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.parsing import FAILURES, LABELS, QUOTES, Completion, Failure, Parsed, parse


@pytest.mark.parametrize(
    "completion",
    [
        "예산 공고",
        "  예산 공고\n",
        "reasoning 서울</think>\n예산 공고",
        "<think>reasoning 서울</think>\n\n예산 공고",
        "<THINK>one</THINK><think>two</think>예산 공고",
        "```\n예산 공고\n```",
        "```text\n예산 공고\n```",
        "```text\r\n예산 공고\r\n```\n\nThis query is shorter.",
        "```예산 공고```",
        "```\n예산 공고",
        "Query: 예산 공고",
        "query:예산 공고",
        "Rewritten Query：예산 공고",
        "Query:\n```text\n예산 공고\n```",
        "**Rewritten query:** 예산 공고",
        "**Query**: 예산 공고",
        "**Query: 예산 공고**",
        '"예산 공고"',
        "Search query: “예산 공고”",
        "\"Query: '예산 공고'\"",
        "「『예산 공고』」",
        "예산\n\n  공고",
        "예산\r\n공고",
    ],
)
def test_the_rewrite_alone_is_left(completion: str) -> None:
    # outside = |output| - |rewrite|, and "예산 공고" has 5 characters
    assert parse(completion) == Parsed("예산 공고", None, len(completion) - 5)


@pytest.mark.parametrize("label", LABELS)
def test_every_label(label: str) -> None:
    for written in (f"{label}: ", f"{label.upper()}:", f"{label} ：\n", f"**{label}:** "):
        assert parse(f"{written}세금").text == "세금"
    assert parse(f"{label} 세금").text == f"{label} 세금"  # no colon, no label


@pytest.mark.parametrize(("left", "right"), QUOTES)
def test_every_quote(left: str, right: str) -> None:
    assert parse(f"{left}세금 신고{right}").text == "세금 신고"
    for kept in (
        f"{left}세금{right} {left}신고{right}",  # two quoted words, not one quoted text
        f"{left}세금{right} 신고",
        f"세금 {left}신고{right}",
        f"{left}세금",
        f"세금{right}",
    ):
        assert parse(kept).text == kept
    assert parse(left + right).failure == "empty"


@pytest.mark.parametrize(
    "kept",
    [
        "what's the budget",
        "C++ `std::map` C#",
        "SQL query: joins",
        "subquery: joins",
        "a ```b``` c",
        "2 < 3 </b>",
        "예산  공고",
        '"',
        "**",
    ],
)
def test_a_plain_query_is_untouched(kept: str) -> None:
    assert parse(kept) == Parsed(kept, None, 0)


def test_a_fence_of_one_word_holds_that_word() -> None:
    assert parse("```budget\n```").text == "budget"
    assert parse("```sql\nbudget\n```").text == "budget"


@pytest.mark.parametrize(
    "completion",
    [
        *("", " \n", "```\n```", "```", '""', "Query:", "**Query:**", "\u200b\ufeff"),
        "<think>예산</think>",
        'Query: "```\n```"',
    ],
)
def test_empty(completion: str) -> None:
    assert parse(completion) == Parsed(None, "empty", len(completion))


def test_unclosed_think() -> None:
    assert parse("<think>예산") == Parsed(None, "unclosed_think", 9)  # 7 for the tag, 2
    assert parse("<think>a</think> b <think>c").failure == "unclosed_think"
    assert parse("<think>a <answer>b</answer>", "answer").failure == "unclosed_think"


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("<answer>예산</answer>", "예산"),
        ("So: <answer>\nQuery: '예산'\n</answer> Done.", "예산"),
        ("<answer>서울</answer> or <answer>예산</answer>", "예산"),
        ("<answer>예산</answer> and <answer>cut o", "예산"),
        ("<answer>서울 <answer>예산</answer>", "예산"),
        ("<answer>예산</answer> </answer>", "예산"),
        ("<think><answer>서울</answer></think><Answer>예산</Answer>", "예산"),
    ],
)
def test_the_last_complete_answer(completion: str, text: str) -> None:
    assert parse(completion, "answer") == Parsed(text, None, len(completion) - len(text))


@pytest.mark.parametrize(
    ("completion", "failure"),
    [
        ("예산", "no_answer_tag"),
        ("예산</answer>", "no_answer_tag"),
        ("<rewrite>예산</rewrite>", "no_answer_tag"),
        ("<think><answer>서울</answer></think>예산", "no_answer_tag"),
        ("<answer>예산", "unclosed_answer_tag"),
        ("<answer> \n</answer>", "empty"),
    ],
)
def test_failures_of_the_answer_tag(completion: str, failure: Failure) -> None:
    assert parse(completion, "answer") == Parsed(None, failure, len(completion))
    assert failure in FAILURES


@pytest.mark.parametrize("tag", ["", "<answer>", "a b"])
def test_a_tag_is_one_word(tag: str) -> None:
    with pytest.raises(ValueError, match="one word without brackets"):
        parse("예산", tag)


@pytest.mark.parametrize("text", ["서울 예산 2024", "<think>a</think>Query: 예산", "<think>a", ""])
def test_a_message_list_reads_as_its_text(text: str) -> None:
    message: dict[str, object] = {"role": "assistant", "content": text}
    content = [{"type": "image"}, {"type": "text", "text": text}]
    parts: dict[str, object] = {"role": "assistant", "content": content}
    tool: dict[str, object] = {"role": "tool", "content": "부산"}
    first: dict[str, object] = {"role": "assistant", "content": "부산"}
    lists: list[Completion] = [
        [message],
        (message,),
        [parts],
        [first, tool, message],
        [message, tool],
    ]
    for completion in lists:
        assert parse(completion) == parse(text)


def test_a_message_list_without_text() -> None:
    assert parse([]) == Parsed(None, "no_assistant_message", 0)
    assert parse([{"role": "user", "content": "예산"}]).failure == "no_assistant_message"
    assert parse([{"role": "assistant", "content": None}]).failure == "empty"
    assert parse([{"role": "assistant", "content": []}]).failure == "empty"


@pytest.mark.parametrize(
    ("completion", "name"),
    [
        (None, "NoneType"),
        (7, "int"),
        (b"budget", "bytes"),
        ({"role": "assistant", "content": "예산"}, "dict"),
        (["예산"], "str"),
        ([{"role": "assistant", "content": 7}], "int"),
        ([{"role": "assistant", "content": ["예산"]}], "str"),
        ([{"role": "assistant", "content": [{"type": "text", "text": None}]}], "NoneType"),
    ],
)
def test_a_wrong_type_is_named(completion: Completion, name: str) -> None:
    with pytest.raises(TypeError, match=f"not {name}$"):
        parse(completion)


PIECES = ["<think>", "</think>", "<answer>", "</answer>", "```", "\n", '"', "'", "`", "**", " "]
PIECES += ["Query:", "search ", "예산", "sql", "“", "”", "「", "」", "\u2028", "\r"]


@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
def test_properties(output: str) -> None:
    for tag in (None, "answer"):
        parsed = parse(output, tag)
        assert (parsed.text is None) == (parsed.failure in FAILURES)
        assert parsed.outside == len(output) - len(parsed.text or "")
        assert parsed.outside >= 0
    text = parse(output).text
    if text is not None:
        assert len(text.splitlines()) == 1
        assert text == text.strip()
        assert parse(text) == Parsed(text, None, 0)  # what is sent would be read as itself
