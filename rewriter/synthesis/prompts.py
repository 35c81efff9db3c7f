"""What a generator is asked, and how its answer is read.

The method is that of RL-QR (arXiv 2507.23242): a scenario in which somebody needs the document, a
question for it, and its answer, in three tagged parts; the query is scenario and question. The
wording is our own.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, field_validator

from rewards.parsing import parse

Message = dict[str, Any]
TOO_LITTLE = "too little"  # the generator found nothing to ask about
UNPARSED = "unparsed"
_PLACEHOLDER = re.compile(r"\{(document|title)\}")


class Written(NamedTuple):
    """What was read from an answer. query: None where there is none; why: the reason then."""

    query: str | None
    why: str = ""
    scenario: str = ""
    question: str = ""


class WorkedExample(BaseModel):
    """A document and the answer to it, shown to the generator as earlier turns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = ""
    document: str
    scenario: str
    question: str
    answer: str


class SynthesisPrompt(BaseModel):
    """How a document is put to the generator.

    Attributes:
        system: the system message; None for none.
        template: the user's message; `{document}` stands for the text, `{title}` for the title.
        page_template: the same with a page image before it.
        examples: worked examples, as turns before the document.
        scenario_tag, question_tag, answer_tag: of the three parts.
        query: of what the query is made: `{scenario}` and `{question}`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    system: str | None = None
    template: str
    page_template: str
    examples: tuple[WorkedExample, ...] = ()
    scenario_tag: str = "scenario"
    question_tag: str = "question"
    answer_tag: str = "answer"
    query: str = "{scenario} {question}"

    @field_validator("template")
    @classmethod
    def _takes_document(cls, template: str) -> str:
        if template.count("{document}") != 1:
            raise ValueError("write {document} exactly once, where the text is to stand")
        return template

    @field_validator("query")
    @classmethod
    def _asks(cls, query: str) -> str:
        if "{question}" not in query:
            raise ValueError("write {question} where the question is to stand")
        return query

    @field_validator("scenario_tag", "question_tag", "answer_tag")
    @classmethod
    def _one_word(cls, tag: str) -> str:
        if not re.fullmatch(r"[\w-]+", tag):
            raise ValueError("give one word without brackets")
        return tag

    def messages(self, title: str, text: str) -> list[Message]:
        """The conversation about a text. What is filled in is never read as a template again."""
        turns = [{"role": "system", "content": self.system}] if self.system is not None else []
        for one in self.examples:
            turns.append({"role": "user", "content": self._user(one.title, one.document)})
            turns.append({"role": "assistant", "content": self._parts(one)})
        return [*turns, {"role": "user", "content": self._user(title, text)}]

    def page_messages(self, title: str, image_url: str) -> list[Message]:
        """The conversation about a page image, in the form of OpenAI's chat completions."""
        asked = _fill(self.page_template, {"title": title, "document": ""})
        parts = [
            {"type": "image_url", "image_url": {"url": image_url}},
            {"type": "text", "text": asked},
        ]
        turns = [{"role": "system", "content": self.system}] if self.system is not None else []
        return [*turns, {"role": "user", "content": parts}]

    def read(self, answer: str) -> Written:
        """The query in an answer; none where a part is missing, or left blank on purpose."""
        tags = (self.scenario_tag, self.question_tag, self.answer_tag)
        found = {tag: parse(answer, tag) for tag in tags}
        broken = [one.failure for one in found.values() if one.failure not in (None, "empty")]
        if broken:
            return Written(None, f"{UNPARSED}: {broken[0]}")
        if any(one.text is None for one in found.values()):
            return Written(None, TOO_LITTLE)
        scenario, question = (found[tag].text or "" for tag in tags[:2])
        parts = {"{scenario}": scenario, "{question}": question}
        query = re.sub(r"\{(?:scenario|question)\}", lambda m: parts[m.group()], self.query)
        return Written(query.strip(), "", scenario, question)

    def _user(self, title: str, text: str) -> str:
        return _fill(self.template, {"title": title, "document": text})

    def _parts(self, one: WorkedExample) -> str:
        pairs = (
            (self.scenario_tag, one.scenario),
            (self.question_tag, one.question),
            (self.answer_tag, one.answer),
        )
        return "\n".join(f"<{tag}>{text}</{tag}>" for tag, text in pairs)


def _fill(template: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: values[found.group(1)], template)


_ENGLISH = """\
{what} Imagine somebody who needs what it says and has never seen it. Write down who they are and \
what they are in the middle of, then the question they ask, then its answer.

Write these three parts and nothing else:
<scenario>one or two sentences in the first person</scenario>
<question>one question that this {thing} answers</question>
<answer>the answer, from this {thing} alone</answer>

Use your own words. Do not speak of the {thing} or its title. If it holds too little to ask about \
(empty, a cover, a table of contents, a list of names), leave all three parts empty."""

_KOREAN = """\
{what} 이 내용이 꼭 필요하지만 아직 본 적은 없는 사람을 떠올려 보세요. 그 사람이 누구이고 \
무엇을 하는 중인지, 무엇을 묻는지, 그 답이 무엇인지 쓰세요.

아래 세 부분만 쓰고 다른 말은 덧붙이지 마세요.
<scenario>그 사람의 입장에서 쓴 한두 문장</scenario>
<question>이 {thing}에서 답을 찾을 수 있는 질문 하나</question>
<answer>이 {thing}만 보고 쓴 답</answer>

표현을 그대로 옮기지 말고 자신의 말로 한국어로 쓰세요. {thing}나 제목을 언급하지 마세요. \
물어볼 내용이 부족하면(빈 페이지, 표지, 목차, 이름 목록) 세 부분을 모두 비워 두세요."""


def _built_in(text: str, read: str, look: str, thing: str, page: str) -> SynthesisPrompt:
    return SynthesisPrompt(
        template=text.replace("{what}", read).replace("{thing}", thing)
        + "\n\n<document>\n{title}\n{document}\n</document>",
        page_template=text.replace("{what}", look).replace("{thing}", page),
    )


PROMPTS: dict[str, SynthesisPrompt] = {
    "english": _built_in(
        _ENGLISH, "Read the document below.", "Look at the page above.", "document", "page"
    ),
    "korean": _built_in(
        _KOREAN, "아래 문서를 읽으세요.", "위의 페이지를 보세요.", "문서", "페이지"
    ),
}


def prompt_of(given: Any) -> Any:
    """A built-in prompt by name; or keys of one's own over the built-in one that `base` names.

    Raises:
        ValueError: no built-in prompt of this name.
    """
    if isinstance(given, SynthesisPrompt):
        return given
    name = given.get("base", "english") if isinstance(given, Mapping) else given
    if name not in PROMPTS:
        raise ValueError(f"no prompt {name!r}; there are: {', '.join(PROMPTS)}")
    own = given if isinstance(given, Mapping) else {}
    return PROMPTS[name].model_dump() | {key: own[key] for key in own if key != "base"}
