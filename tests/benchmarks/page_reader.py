"""How well the demo's page reader finds pages by words that are printed on them.

    python -m tests.benchmarks.page_reader            3,100 documents, 300 queries
    python -m tests.benchmarks.page_reader --small    150 documents, 40 queries
    python -m tests.benchmarks.page_reader --model runs/page-reader

The documents of the demo are rendered and searched among all of them. A query is 3 to 8 words of
one document's text: words that follow each other, or words picked from all over it. One document
counts as relevant, the one that the words are of. BM25 has the same queries, on the text itself.
Then the demo's own test messages and reference rewrites, and what the search in two stages loses.
"""

import argparse
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import NamedTuple

from retrievers.base import Retriever
from retrievers.collection import Collection
from retrievers.lexical import LexicalRetriever, LexicalSettings
from retrievers.loaders.stdlib import load
from retrievers.multimodal import MultimodalRetriever, MultimodalSettings
from retrievers.pages import PageStyle
from retrievers.pages.page import PageSettings
from retrievers.qrels import SOURCE
from rewards.metrics import ndcg
from tests.benchmarks.figures import Figure, show

K = 3
WORD = re.compile(r"[A-Za-z0-9_]+")
SHARE = 0.02  # of the pages, for late interaction; as in tests.benchmarks.maxsim
STYLES = {
    "DejaVuSansMono, words on the grid": PageStyle(),
    "DejaVuSansMono, words anywhere": PageStyle(word_grid=1),
    "DejaVuSansMono-Bold": PageStyle(font="DejaVuSansMono-Bold", word_grid=1),
    "DejaVuSans": PageStyle(font="DejaVuSans", word_grid=1),
    "DejaVuSerif": PageStyle(font="DejaVuSerif", word_grid=1),
    "STIXGeneral 14": PageStyle(font="STIXGeneral", font_size=14, word_grid=1),
    "cmr10 14 (never trained on)": PageStyle(font="cmr10", font_size=14, word_grid=1),
    "DejaVuSansMono, moved, lines of 18": PageStyle(word_grid=1, offset=(5, 7), line_height=18),
    "DejaVuSans, moved, lines of 18": PageStyle(
        font="DejaVuSans", word_grid=1, offset=(5, 7), line_height=18
    ),
}
GRID, ANYWHERE = list(STYLES)[:2]


class Asked(NamedTuple):
    """Queries with the document that each is about."""

    texts: list[str]
    sources: list[str]


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="150 documents; no goal is judged")
    parser.add_argument("--model", default="bundled:page-reader", help="a folder, to try another")
    options = parser.parse_args()
    whole = load()
    collection = _some(whole, 150) if options.small else whole
    with tempfile.TemporaryDirectory() as folder:
        figures = _figures(collection, options.model, 40 if options.small else 300, Path(folder))
        show(dict(figures), options.small)


def _figures(
    collection: Collection, model: str, count: int, folder: Path
) -> Iterator[tuple[str, Figure]]:
    runs, picked = _asked(collection, count)
    own = {side: _own(collection, side) for side in ("messages", "references")}
    bm25 = LexicalRetriever(collection, LexicalSettings(engine="bm25s"))
    _row("BM25 on the text", bm25, runs, picked, own)
    found, two = {}, 0.0
    for number, (name, style) in enumerate(STYLES.items()):
        settings = MultimodalSettings(model=model, pages=PageSettings(source="text", style=style))
        place = folder / str(number)
        pages = MultimodalRetriever(collection, settings, place)
        found[name] = _row(name, pages, runs, picked, own if name == GRID else {})
        if name == GRID:
            update = {"candidates": SHARE, "min_candidates": K}
            staged = settings.model_copy(update=update)
            confined = MultimodalRetriever(collection, staged, place)
            two = _row(f"  {SHARE:.0%} of them as candidates", confined, runs, picked, own)
    yield "ndcg@3_on_the_grid", Figure(found[GRID], 0.6)
    yield "ndcg@3_monospaced_anywhere", Figure(found[ANYWHERE], 0.3)
    yield "two_stages_lose", Figure(found[GRID] - two, 0.01, "lower", "NDCG@3")


def _row(
    name: str, retriever: Retriever, runs: Asked, picked: Asked, own: dict[str, Asked]
) -> float:
    """Print a line; the value for words that follow each other."""
    columns = {"in a row": runs, "picked": picked, **own}
    values = {column: _ndcg(retriever, asked) for column, asked in columns.items()}
    told = "  ".join(f"{column} {value:.3f}" for column, value in values.items())
    print(f"{name:38}  {told}", flush=True)
    return values["in a row"]


def _ndcg(retriever: Retriever, asked: Asked) -> float:
    found = retriever.search(asked.texts, K)
    rankings = [[hit.id for hit in hits] for hits in found]
    return fmean(
        ndcg(ranking, {source: 1.0}, K)
        for ranking, source in zip(rankings, asked.sources, strict=True)
    )


def _asked(collection: Collection, count: int) -> tuple[Asked, Asked]:
    """Words in a row, and words picked, of the same documents and as many."""
    random = Random(7)
    order = list(zip(collection.ids, collection.texts(), strict=True))
    random.shuffle(order)
    runs, picked = Asked([], []), Asked([], [])
    for identity, (_, text) in order:
        words, size = WORD.findall(text), random.randint(3, 8)
        if len(words) >= size and len(runs.texts) < count:
            start = random.randint(0, len(words) - size)
            for asked, chosen in (
                (runs, words[start : start + size]),
                (picked, random.sample(words, size)),
            ):
                asked.texts.append(" ".join(chosen))
                asked.sources.append(identity)
    return runs, picked


def _own(collection: Collection, side: str) -> Asked:
    """The demo's test messages, or their reference rewrites."""
    queries = [query for query in collection.queries("test") if query.source is not None]
    texts = [q.text if side == "messages" else q.reference or q.text for q in queries]
    return Asked(texts, [str(query.source) for query in queries])


def _some(collection: Collection, size: int) -> Collection:
    """The documents of the test queries, and others, so many in all."""
    queries = collection.queries("test")
    wanted: Sequence[str] = [str(query.source) for query in queries if query.source]
    kept = list(dict.fromkeys([*wanted, *collection.ids]))[:size]
    there = [query for query in queries if query.source in set(kept)]
    qrels = {"test": {SOURCE: {q.id: {str(q.source): 1.0} for q in there}}}
    documents = [collection.document(identity) for identity in sorted(kept)]
    return Collection.from_documents("some", documents, there, qrels)


if __name__ == "__main__":
    main()
