"""Leaks between splits: what is tuned on must not be judged on.

Ids are compared whenever a collection is loaded, near-duplicate documents on request, because that
needs the texts.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import ceil
from typing import TYPE_CHECKING
from unicodedata import normalize

from retrievers.identity import CollectionError
from retrievers.qrels import Judgements

if TYPE_CHECKING:
    from retrievers.collection import Collection

# Ideographs and kana are written without spaces: each counts as a word.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_SHINGLE = 3  # words
_EPSILON = 1e-9  # .8 * 5 may come out above 4

Pair = tuple[str, str, float]


class LeakError(CollectionError):
    """Two splits share a query or a relevant document."""


def overlaps(qrels: Mapping[str, Judgements]) -> list[str]:
    """Say what two splits share: query ids, and documents relevant (grade > 0) in both.

    qrels: split → query id → document id → grade. The result is empty where nothing leaks.
    """
    queries = {split: set(judged) for split, judged in qrels.items()}
    relevant = {split: _relevant(judged) for split, judged in qrels.items()}
    found = []
    for a, b in combinations(sorted(qrels), 2):
        for what, sets in (("query ids", queries), ("relevant documents", relevant)):
            if shared := sorted(sets[a] & sets[b]):
                found.append(
                    f"{len(shared)} {what} are in both {a!r} and {b!r}, for example "
                    f"{', '.join(map(repr, shared[:3]))}; split by source document"
                )
    return found


def _relevant(judged: Judgements) -> set[str]:
    return {doc for grades in judged.values() for doc, grade in grades.items() if grade > 0}


def check_leaks(
    collection: "Collection", strict: bool = True, splits: Sequence[str] | None = None
) -> list[str]:
    """Compare the query and document ids of splits (None: of all).

    Returns the messages of `overlaps`. Raises LeakError with all of them where `strict`: for
    training, which would be told what it is later judged on.
    """
    found = overlaps({split: collection.qrels(split) for split in splits or collection.splits})
    if found and strict:
        raise LeakError(f"collection {collection.name!r}: " + "\n".join(found))
    return found


def near_leaks(
    collection: "Collection", threshold: float = 0.8, splits: Sequence[str] | None = None
) -> list[Pair]:
    """Near-duplicate documents that are relevant in different splits (None: of all).

    Returns (id, id, similarity).
    """
    places = defaultdict(set)
    for split in splits or collection.splits:
        for document in _relevant(collection.qrels(split)):
            places[document].add(split)
    judged = [document for document in places if document in collection]
    pairs = near_duplicates(collection, judged, threshold)
    return [pair for pair in pairs if len(places[pair[0]] | places[pair[1]]) > 1]


def near_duplicates(
    collection: "Collection", ids: Iterable[str], threshold: float = 0.8
) -> list[Pair]:
    """Pairs among `ids` whose texts share most of their runs of three words.

    The similarity is the exact Jaccard similarity of the sets of word 3-grams (a shorter text is
    one run; a text without words is like no other). Two sets of similarity t or more, their members
    in one common order, share one of the first n - ceil(t * n) + 1 of each (prefix filtering;
    Chaudhuri et al. 2006, Bayardo et al. 2007). The order is rarest first, so frequent runs such as
    licence texts are hardly ever looked up, and nothing is lost.

    Returns:
        (id, id, similarity >= threshold), in corpus order.

    Raises:
        CollectionError: threshold outside 0 < threshold <= 1. UnknownNameError: an unknown id.
    """
    if not 0 < threshold <= 1:
        raise CollectionError(f"threshold {threshold!r}: wanted 0 < threshold <= 1, for example .8")
    rows = sorted({collection.position(identity) for identity in ids})
    texts = {row: collection.document(collection.ids[row]).text for row in rows}
    pairs = sorted(_join(_rarest_first(texts), threshold))
    return [(collection.ids[a], collection.ids[b], score) for a, b, score in pairs]


def words(text: str) -> list[str]:
    """The words in order, in form NFKC and case-folded; an ideograph or kana is one alone."""
    return _WORD.findall(normalize("NFKC", text).casefold())


def _shingles(text: str) -> set[tuple[str, ...]]:
    found = words(text)
    last = max(len(found) - _SHINGLE, 0) + 1 if found else 0
    return {tuple(found[i : i + _SHINGLE]) for i in range(last)}


def _rarest_first(texts: Mapping[int, str]) -> dict[int, list[int]]:
    """Each text's shingles as numbers, sorted, the shingle in the fewest texts being 0."""
    sets = {row: _shingles(text) for row, text in texts.items()}
    counts = Counter(shingle for shingles in sets.values() for shingle in shingles)
    order = sorted(counts, key=lambda shingle: (counts[shingle], shingle))
    rank = {shingle: number for number, shingle in enumerate(order)}
    return {row: sorted(rank[s] for s in shingles) for row, shingles in sets.items()}


def _join(ranked: Mapping[int, list[int]], threshold: float) -> Iterator[tuple[int, int, float]]:
    index: dict[int, list[int]] = defaultdict(list)
    for row in sorted(ranked, key=lambda row: (len(ranked[row]), row)):
        size = len(ranked[row])
        least = threshold * size - _EPSILON  # neither the overlap nor the other set can be smaller
        prefix = ranked[row][: size - ceil(least) + 1]
        candidates = {other for shingle in prefix for other in index[shingle]}
        own = set(ranked[row])
        for other in candidates:
            if len(ranked[other]) >= least:
                shared = len(own.intersection(ranked[other]))
                score = shared / (size + len(ranked[other]) - shared)
                if score >= threshold:
                    yield min(row, other), max(row, other), score
        for shingle in prefix:
            index[shingle].append(row)
