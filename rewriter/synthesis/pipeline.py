"""Synthesis, top to bottom: what `rlqr synth` does.

    run(config, Path("data/mine"), limit=50)

Documents are drawn; the generator answers what the journal lacks; answers are read and filtered;
what is kept is split by document and written as a collection, with a data card beside it.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from retrievers.collection import Collection
from retrievers.identity import CollectionError
from retrievers.splitting import split_by_document
from rewriter.config import Config, ConfigError
from rewriter.config.collection import open_source
from rewriter.synthesis.asking import Ask, Asking, is_tagged
from rewriter.synthesis.card import make_card, write_card
from rewriter.synthesis.filters import Context, Draft, Dropped, apply_filters
from rewriter.synthesis.journal import Journal
from rewriter.synthesis.output import Folder
from rewriter.synthesis.prompts import TOO_LITTLE, Written
from rewriter.synthesis.readings import draw, readings
from rewriter.synthesis.settings import SynthesisSettings

logger = logging.getLogger(__name__)

ANSWER = "answer"  # stands for a filter where an answer holds no query
CUT = "cut off by the limit of tokens"
FAILED_CALL = "the call failed"


class SynthesisError(ValueError):
    """No collection could be made of what was written."""


@dataclass
class Outcome:
    """What came of it.

    Attributes:
        settings: by which it was made.
        collection: the documents.
        read: documents read. passed: others that were drawn, by reason.
        answers: of the generator. new: those generated now.
        kept, dropped: queries.
        tokens: of prompts and of answers, where they were counted.
        splits: split → ids of queries; empty where there are too few.
    """

    settings: SynthesisSettings
    collection: Collection
    read: int
    passed: Counter[str]
    answers: int
    new: int
    kept: list[Draft]
    dropped: list[Dropped]
    tokens: tuple[int, int] = (0, 0)
    splits: dict[str, list[str]] = field(default_factory=dict)


def run(config: Config, output: Path, limit: int | None = None) -> Outcome:
    """Write queries, and the folder.

    Args:
        config: with a section `synthesis`.
        output: the folder; answers that are in its journal are not generated again.
        limit: documents at most, for a trial.

    Raises:
        ConfigError: no section `synthesis`, or a folder that is not there.
        GenerationError: the generator fails; what it answered is kept.
        SynthesisError: no document can be read, or too few queries are kept to fill the splits; the
            card says why.
        CollectionError, ModelError, SearchError: as they say.
    """
    settings = config.synthesis
    if settings is None:
        raise ConfigError("the configuration has no section `synthesis`; add one")
    folder = Folder(output)
    folder.prepare()
    collection = _source(config, settings)
    rows, passed = draw(collection, settings, limit)
    logger.info("documents    %d of %d are read", len(rows), len(collection))
    if not rows:
        why = ", ".join(f"{count} {reason}" for reason, count in sorted(passed.items()))
        raise SynthesisError(
            f"no document is read ({why}); lower synthesis.min_chars, keep fewer splits, or give "
            "other documents"
        )
    journal = Journal(folder.journal)
    asking = Asking(settings, collection, journal)
    asking.ask(readings(collection, settings, rows))
    logger.info("answers      %d new, %d in the journal", asking.calls, len(journal))
    drafts, unread = _read(settings, asking.asks, journal)
    context = Context(config, collection, folder.cache)
    kept, dropped = apply_filters(drafts, settings.filters, context)
    answered = [one for ask in asking.asks if (one := journal.get(ask.key))]
    outcome = Outcome(
        settings,
        collection,
        len(rows),
        passed,
        len(answered),
        asking.calls,
        kept,
        unread + dropped,
        (
            sum(one.prompt_tokens or 0 for one in answered),
            sum(one.completion_tokens or 0 for one in answered),
        ),
    )
    _finish(config, outcome, context, folder)
    return outcome


def _source(config: Config, settings: SynthesisSettings) -> Collection:
    if settings.source is None:
        return open_source(config, config.collection, "collection")
    return open_source(config, settings.source, "synthesis.source")


def _read(
    settings: SynthesisSettings, asks: Sequence[Ask], journal: Journal
) -> tuple[list[Draft], list[Dropped]]:
    """The queries in the answers, and the answers without one."""
    drafts: list[Draft] = []
    lost: list[Dropped] = []
    tagged = is_tagged(settings)
    for ask in asks:
        reply = journal.get(ask.key)
        text = reply.text or "" if reply else ""
        found = settings.prompt.read(text) if tagged else _plain(text)
        why = CUT if reply and reply.cut and found.query is None else found.why
        if ask.blank:
            why = TOO_LITTLE
        elif reply is None:
            why = FAILED_CALL
        parts = (found.scenario, found.question, ask.page, ask.number, ask.seed)
        draft = Draft(f"s{ask.key[:16]}", found.query or text, ask.document, *parts)
        if found.query is None:
            lost.append(Dropped(draft, ANSWER, why))
        else:
            drafts.append(draft)
    return drafts, lost


def _plain(text: str) -> Written:
    query = " ".join(text.split())
    return Written(query) if query else Written(None, TOO_LITTLE)


def _finish(config: Config, outcome: Outcome, context: Context, folder: Folder) -> None:
    """Split and write; the card is written even where the splits cannot be filled."""
    settings = outcome.settings
    sources = {draft.id: draft.document for draft in outcome.kept}
    few: CollectionError | None = None
    try:
        outcome.splits = split_by_document(
            outcome.collection, sources, settings.splits, settings.seed, settings.near_duplicates
        )
    except CollectionError as error:
        few = error
        folder.forget()
    write_card(make_card(outcome, context), folder.path)
    folder.write_dropped(outcome.dropped)
    if few:
        raise SynthesisError(
            f"{len(outcome.kept)} queries are kept, too few for the splits: {few}. "
            f"{folder.path / 'card.md'} says what the others were dropped for"
        ) from few
    folder.write(config, outcome)
