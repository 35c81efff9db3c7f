"""Systems that prompt the base model without any training, to stand beside a trained rewriter.

    hyde        a passage that would answer, searched with instead of the query
                (Gao and others, 2022, arXiv 2212.10496)
    query2doc   the query with such a passage after it
                (Wang, Yang and Wei, 2023, arXiv 2303.07678)
    keywords    the terms that one would type

The wording is our own. Query2doc repeats the query five times before the passage for BM25, because
its queries are a few words long; give `append_template` a `{query}` for each repetition if yours
are too.
"""

from typing import Any

from pydantic import Field

from rewriter.prompt import PromptSettings


class PromptSystem(PromptSettings):
    """A prompt for the base model.

    Attributes:
        max_new_tokens: longest answer.
    """

    system: str | None = None
    max_new_tokens: int = Field(default=64, ge=1)


PROMPT_SYSTEMS: dict[str, PromptSystem] = {
    "hyde": PromptSystem(
        template="Write a short passage of a document that answers this message. Write the passage "
        "alone.\n\n{query}",
        max_new_tokens=128,
    ),
    "query2doc": PromptSystem(
        template="Write a short passage of a document that answers this message. Write the passage "
        "alone.\n\n{query}",
        mode="append",
        append_template="{query} {rewrite}",
        max_new_tokens=128,
    ),
    "keywords": PromptSystem(
        template="List the few search terms that would find a document which answers this message. "
        "Write the terms alone, apart by spaces.\n\n{query}",
        max_new_tokens=32,
    ),
}
LABELS = {
    "hyde": "HyDE passage",
    "query2doc": "query + passage (query2doc)",
    "keywords": "prompted keywords",
}


def merged(given: Any) -> Any:
    """What a configuration gives over what is built in: a prompt's other keys keep theirs."""
    if not isinstance(given, dict):
        return given
    built_in = {name: one.model_dump() for name, one in PROMPT_SYSTEMS.items()}
    return built_in | {
        name: built_in.get(name, {}) | one if isinstance(one, dict) else one
        for name, one in given.items()
    }
