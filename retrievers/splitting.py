"""Splits by source document, so that no document is both trained on and judged on."""

from collections import defaultdict
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING

from retrievers.identity import CollectionError, check_safe, nfc
from retrievers.leaks import near_duplicates

if TYPE_CHECKING:
    from retrievers.collection import Collection


def split_by_document(
    collection: "Collection",
    sources: Mapping[str, str],
    fractions: Mapping[str, float],
    seed: int,
    threshold: float = 0.8,
) -> dict[str, list[str]]:
    """Distribute queries over splits by source document, near-duplicates kept together.

    Args:
        collection: holds the documents.
        sources: query id → source document id.
        fractions: split → share of the queries, all above 0, together 1. Groups of documents are
            handed out whole, each to the split that lacks most, so shares are met as nearly as the
            groups' sizes allow.
        seed: decides the order of the groups; equal arguments give equal splits.
        threshold: similarity from which two documents belong together.

    Returns:
        split → query ids, in the order of `sources`.

    Raises:
        UnknownNameError: a source document is not in the collection.
        CollectionError: fractions that are no shares, or a split that would stay empty.
    """
    _check_fractions(fractions)
    groups = _groups(collection, sources, threshold)
    Random(seed).shuffle(groups)
    lacking = {split: share * len(sources) for split, share in fractions.items()}
    chosen: dict[str, str] = {}
    for group in groups:
        split = max(lacking, key=lambda split: lacking[split])
        lacking[split] -= len(group)
        chosen.update(dict.fromkeys(group, split))
    splits = {s: [query for query in sources if chosen[query] == s] for s in fractions}
    if empty := [split for split, queries in splits.items() if not queries]:
        raise CollectionError(
            f"{len(sources)} queries in {len(groups)} groups of documents leave {', '.join(empty)} "
            f"empty with fractions {dict(fractions)}; give more queries or larger fractions"
        )
    return splits


def _check_fractions(fractions: Mapping[str, float]) -> None:
    for split in fractions:
        check_safe(split, "split")
    total = sum(fractions.values())
    if not all(share > 0 for share in fractions.values()) or abs(total - 1) > 1e-6:
        raise CollectionError(
            f"fractions {dict(fractions)}: wanted shares above 0 that add up to 1, for example "
            f"{{'train': .7, 'validation': .1, 'test': .2}}"
        )


def _groups(
    collection: "Collection", sources: Mapping[str, str], threshold: float
) -> list[list[str]]:
    """Query ids by connected group of near-duplicate source documents, in a fixed order."""
    leader = {nfc(document): nfc(document) for document in sources.values()}

    def find(document: str) -> str:
        while leader[document] != document:
            document = leader[document]
        return document

    for a, b, _ in near_duplicates(collection, leader, threshold):
        leader[find(b)] = find(a)
    groups = defaultdict(list)
    for query in sorted(sources):  # not in the mapping's order, which is the caller's accident
        groups[find(nfc(sources[query]))].append(query)
    return list(groups.values())
