"""Builds what the model reads and what the backend is sent; nothing else does either.

A prompt is a list of messages, never a bare string: a chat model that sees a string gets no
template, never ends its turn, and earns nothing for a whole run.
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator

from rewards.parsing import check_tag

Message = dict[str, str]
_BACKEND = "{backend}"


class PromptError(ValueError):
    """A prompt that cannot be written; the message says what to give."""


class Example(BaseModel):
    """One worked example, shown to the model as an earlier turn.

    backend: it is shown only where this backend will read the rewrite; None: always.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: str
    rewrite: str
    backend: str | None = None


class PromptSettings(BaseModel):
    """How a query is put to the model, and how its rewrite is put to the backend.

    Attributes:
        system: the system message; None for none. `{backend}`, here and in `template`, stands for
            the backend that will read the rewrite: one model then writes for each backend apart.
        examples: worked examples, as turns before the query.
        template: the user's message; `{query}` stands for the query.
        backends: backend → what `{backend}` becomes; its name where it is not given.
        answer_tag: the rewrite is what stands between <tag> and </tag>; None: the whole answer.
        mode: "replace" sends the rewrite alone, "append" sends `append_template`.
        append_template: with `{query}` and `{rewrite}`, each as often as its words are to count.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    system: str | None = "Rewrite the message as a short search query."
    examples: tuple[Example, ...] = ()
    template: str = "{query}"
    backends: dict[str, str] = {}
    answer_tag: str | None = None
    mode: Literal["replace", "append"] = "replace"
    append_template: str = "{query} {rewrite}"

    @field_validator("template")
    @classmethod
    def _takes_query(cls, template: str) -> str:
        if template.count("{query}") != 1:
            raise ValueError("write {query} exactly once, where the query is to stand")
        return template

    @field_validator("append_template")
    @classmethod
    def _takes_rewrite(cls, template: str) -> str:
        if "{rewrite}" not in template:
            raise ValueError("write {rewrite} where the rewrite is to stand")
        return template

    @field_validator("system")
    @classmethod
    def _takes_no_query(cls, system: str | None) -> str | None:
        if "{query}" in (system or ""):
            raise ValueError("holds {query}, which stands for it in `template` only; move it")
        return system

    @field_validator("answer_tag")
    @classmethod
    def _tag(cls, tag: str | None) -> str | None:
        if tag is not None:
            check_tag(tag)
        return tag

    @property
    def by_backend(self) -> bool:
        """Whether the prompt is another one for each backend."""
        named = any(_BACKEND in text for text in (self.system or "", self.template))
        return named or any(example.backend is not None for example in self.examples)

    def messages(self, query: str, backend: str | None = None) -> list[Message]:
        """The conversation that ends with the query; the model writes the next turn.

        Args:
            query: to be rewritten.
            backend: what will read the rewrite; looked at only where the prompt names it.

        Raises:
            PromptError: the prompt names the backend, and there is none.
        """
        if backend is None and self.by_backend:
            raise PromptError(
                "the prompt is another one for each backend; say which backend reads the rewrite"
            )
        word = self.backends.get(backend or "", backend or "")
        turns = []
        if self.system is not None:
            turns.append({"role": "system", "content": self.system.replace(_BACKEND, word)})
        for example in self.examples:
            if example.backend in {None, backend}:
                turns.append({"role": "user", "content": self._user(example.query, word)})
                turns.append({"role": "assistant", "content": self.answer(example.rewrite)})
        return [*turns, {"role": "user", "content": self._user(query, word)}]

    def batch(self, queries: Sequence[str], backend: str | None = None) -> list[list[Message]]:
        """Conversations of several queries, in their order; see `messages`."""
        return [self.messages(query, backend) for query in queries]

    def search_text(self, query: str, rewrite: str) -> str:
        """What is sent to the backend.

        Braces in a query are plain text: parts are replaced, nothing is formatted.
        """
        if self.mode == "replace":
            return rewrite
        parts = self.append_template.split("{rewrite}")
        return rewrite.join(part.replace("{query}", query) for part in parts)

    def _user(self, query: str, word: str) -> str:
        parts = self.template.partition("{query}")
        before, after = (part.replace(_BACKEND, word) for part in parts[::2])
        return before + query + after

    def answer(self, rewrite: str) -> str:
        """The turn that the model would write for a rewrite."""
        if self.answer_tag is None:
            return rewrite
        return f"<{self.answer_tag}>{rewrite}</{self.answer_tag}>"
