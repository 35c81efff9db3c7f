"""Leaks between splits: what is tuned on must not be judged on.

Ids are compared whenever a collection is loaded, near-duplicate documents on request, because that
needs the texts.
"""

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from math import ceil
from typing import TYPE_CHECKING
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

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
Numbers = NDArray[np.int64]


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
    collection: "Collection", ids: Iterable[str], threshold: float = 0.8, most: int | None = None
) -> list[Pair]:
    """Pairs among `ids` whose texts share most of their runs of three words.

    The similarity is the exact Jaccard similarity of the sets of word 3-grams (a shorter text is
    one run; a text without words is like no other). Two sets of similarity t or more, their members
    in one common order, share one of the first n - ceil(t * n) + 1 of each (prefix filtering;
    Chaudhuri et al. 2006, Bayardo et al. 2007). The order is rarest first, so frequent runs such as
    licence texts are hardly ever looked up, and nothing is lost. Each run takes 8 bytes, and a few
    times as much while they are counted.

    Args:
        collection: holds the documents.
        ids: those that are compared.
        threshold: least similarity.
        most: stop after so many pairs; None: find all. A thousand equal texts are half a million.

    Returns:
        (id, id, similarity >= threshold), in corpus order.

    Raises:
        CollectionError: threshold outside 0 < threshold <= 1. UnknownNameError: an unknown id.
    """
    if not 0 < threshold <= 1:
        raise CollectionError(f"threshold {threshold!r}: wanted 0 < threshold <= 1, for example .8")
    rows = sorted({collection.position(identity) for identity in ids})
    texts = (collection.document(collection.ids[row]).text for row in rows)
    ranked = dict(zip(rows, _rarest_first(texts), strict=True))
    pairs = sorted(islice(_join(ranked, threshold), most))
    return [(collection.ids[a], collection.ids[b], score) for a, b, score in pairs]


def words(text: str) -> list[str]:
    """The words in order, in form NFKC and case-folded; an ideograph or kana is one alone."""
    return _WORD.findall(normalize("NFKC", text).casefold())


def _rarest_first(texts: Iterable[str]) -> list[Numbers]:
    """Each text's shingles as numbers, sorted and each once, the one in the fewest texts being 0.

    All are numbered at once in arrays: as Python's tuples they would take fifty times the memory.
    """
    known: dict[str, int] = {}
    tokens, sizes = array("q"), []
    for text in texts:
        found = [known.setdefault(word, len(known) + 1) for word in words(text)]
        # The one run of a shorter text is filled up with 0, which is no word.
        found += [0] * (_SHINGLE - len(found)) if found else []
        tokens.extend(found)
        sizes.append(len(found))
    if not tokens:
        return [np.empty(0, dtype=np.int64) for _ in sizes]
    ends = np.cumsum(sizes, dtype=np.int64)
    # Where a run begins: not at the last words of a text, whose run would go on in the next text.
    whole = np.ones(len(tokens), dtype=bool)
    for back in range(1, _SHINGLE):
        whole[ends[np.array(sizes) > 0] - back] = False
    starts = np.flatnonzero(whole)
    shingles = _numbered(np.frombuffer(tokens, dtype=np.int64), starts)
    # A text and a number as one: sorted by text, each number of a text once.
    owners = np.searchsorted(ends, starts, side="right")
    pairs = np.unique(owners << 32 | shingles)
    counts = np.bincount(pairs & 0xFFFFFFFF)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(counts, kind="stable")] = np.arange(len(counts))
    ranked = np.sort(pairs >> 32 << 32 | rank[pairs & 0xFFFFFFFF])
    edges = np.searchsorted(ranked >> 32, np.arange(1, len(sizes)))
    return np.split(ranked & 0xFFFFFFFF, edges)


def _numbered(tokens: Numbers, starts: Numbers) -> Numbers:
    """Numbers below 2 ** 31 of the runs of words that begin there, equal for equal runs only."""
    found = tokens[starts]
    for later in range(1, _SHINGLE):
        pairs = found << 32 | tokens[starts + later]
        found = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return found


def _join(ranked: Mapping[int, Numbers], threshold: float) -> Iterator[tuple[int, int, float]]:
    index: dict[int, list[int]] = defaultdict(list)
    for row in sorted(ranked, key=lambda row: (len(ranked[row]), row)):
        size = len(ranked[row])
        least = threshold * size - _EPSILON  # neither the overlap nor the other set can be smaller
        prefix = ranked[row][: size - ceil(least) + 1].tolist()
        candidates = {other for shingle in prefix for other in index.get(shingle, ())}
        own = set(ranked[row].tolist()) if candidates else set()
        for other in candidates:
            if len(ranked[other]) >= least:
                shared = len(own.intersection(ranked[other].tolist()))
                score = shared / (size + len(ranked[other]) - shared)
                if score >= threshold:
                    yield min(row, other), max(row, other), score
        for shingle in prefix:
            index[shingle].append(row)
