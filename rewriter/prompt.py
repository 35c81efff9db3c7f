"""Builds what the model reads and what the backend is sent; nothing else does either.

A prompt is a list of messages, never a bare string: a chat model that sees a string gets no
template, never ends its turn, and earns nothing for a whole run.
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

Message = dict[str, str]


class Example(BaseModel):
    """One worked example, shown to the model as an earlier turn."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: str
    rewrite: str


class PromptSettings(BaseModel):
    """How a query is put to the model, and how its rewrite is put to the backend.

    Attributes:
        system: the system message; None for none.
        examples: worked examples, as turns before the query.
        template: the user's message; `{query}` stands for the query.
        answer_tag: the rewrite is what stands between <tag> and </tag>; None: the whole answer.
        mode: "replace" sends the rewrite alone, "append" sends `append_template`.
        append_template: with `{query}` and `{rewrite}`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    system: str | None = "Rewrite the message as a short search query."
    examples: tuple[Example, ...] = ()
    template: str = "{query}"
    answer_tag: str | None = None
    mode: Literal["replace", "append"] = "replace"
    append_template: str = "{query} {rewrite}"

    @field_validator("template")
    @classmethod
    def _takes_query(cls, template: str) -> str:
        if template.count("{query}") != 1:
            raise ValueError("write {query} exactly once, where the query is to stand")
        return template

    @model_validator(mode="after")
    def _takes_rewrite(self) -> "PromptSettings":
        if "{rewrite}" not in self.append_template:
            raise ValueError(f"append_template {self.append_template!r} lacks {{rewrite}}")
        return self

    def messages(self, query: str) -> list[Message]:
        """The conversation that ends with the query; the model writes the next turn."""
        turns = [{"role": "system", "content": self.system}] if self.system is not None else []
        for example in self.examples:
            turns.append({"role": "user", "content": self._user(example.query)})
            turns.append({"role": "assistant", "content": self._answer(example.rewrite)})
        return [*turns, {"role": "user", "content": self._user(query)}]

    def batch(self, queries: Sequence[str]) -> list[list[Message]]:
        """Conversations of several queries, in their order."""
        return [self.messages(query) for query in queries]

    def search_text(self, query: str, rewrite: str) -> str:
        """What is sent to the backend.

        Braces in a query are plain text: parts are replaced, nothing is formatted.
        """
        if self.mode == "replace":
            return rewrite
        before, _, after = self.append_template.partition("{rewrite}")
        return before.replace("{query}", query) + rewrite + after.replace("{query}", query)

    def _user(self, query: str) -> str:
        before, _, after = self.template.partition("{query}")
        return before + query + after

    def _answer(self, rewrite: str) -> str:
        if self.answer_tag is None:
            return rewrite
        return f"<{self.answer_tag}>{rewrite}</{self.answer_tag}>"
