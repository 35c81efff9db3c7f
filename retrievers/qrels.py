"""Judgements (qrels): query id → document id → grade, in kinds and splits."""

from collections.abc import Container, Iterable, Mapping
from math import isfinite
from typing import TypeAlias

from retrievers.identity import CollectionError, UnknownNameError, check_safe, nfc

Qrels: TypeAlias = dict[str, dict[str, float]]
Judgements: TypeAlias = Mapping[str, Mapping[str, float]]

SOURCE = "source"  # the main kind: what training and evaluation use, and what a split consists of


def clean_splits(
    splits: Mapping[str, Mapping[str, Judgements]], queries: Container[str]
) -> dict[str, dict[str, Qrels]]:
    """Copy split → kind → query id → document id → grade: splits sorted, ids in form NFC.

    queries: every query's id, in form NFC.

    Raises:
        CollectionError: a split without the kind "source", a name that is no file name, two ids
            that fall together in form NFC, a grade that is not a finite number.
        UnknownNameError: a judged query is not in `queries`, or a further kind judges a query that
            the split does not hold.
    """
    return {split: _clean_split(split, splits[split], queries) for split in sorted(splits)}


def _clean_split(
    split: str, kinds: Mapping[str, Judgements], queries: Container[str]
) -> dict[str, Qrels]:
    check_safe(split, "split")
    if SOURCE not in kinds:
        raise CollectionError(
            f"split {split!r} has qrels of the kinds {', '.join(kinds) or 'none'}, but none of the "
            f"kind {SOURCE!r}, which says what queries it holds; add them"
        )
    clean: dict[str, Qrels] = {}
    for kind in sorted(kinds, key=lambda kind: (kind != SOURCE, kind)):
        check_safe(kind, "kind of qrels")
        place = f"split {split!r}, kind {kind!r}"
        clean[kind] = _clean(kinds[kind], place)
        known, said = (queries, "the queries") if kind == SOURCE else (clean[SOURCE], "the split")
        unknown = [query for query in clean[kind] if query not in known]
        if unknown:
            raise UnknownNameError(
                f"{place}: {len(unknown)} judged queries are not in {said}, for example "
                f"{unknown[0]!r}; add them or remove their judgements"
            )
    return clean


def _clean(judgements: Judgements, place: str) -> Qrels:
    qrels: Qrels = {}
    for query, grades in judgements.items():
        if nfc(query) in qrels:
            raise CollectionError(
                f"{place}: query id {query!r} is there twice in Unicode form NFC; drop one"
            )
        row = qrels.setdefault(nfc(query), {})
        for document, grade in grades.items():
            if nfc(document) in row or not isfinite(grade):
                raise CollectionError(
                    f"{place}: query {query!r}, document {document!r}, grade {grade!r}: one finite "
                    f"number for each document, ids compared in Unicode form NFC"
                )
            row[nfc(document)] = float(grade)
    return qrels


def dangling(judgements: Iterable[Judgements], ids: Container[str]) -> list[tuple[str, str]]:
    """Pairs (query id, document id) that judge a document outside `ids`, each once, in order."""
    pairs = (
        (query, document)
        for qrels in judgements
        for query, grades in qrels.items()
        for document in grades
        if document not in ids
    )
    return list(dict.fromkeys(pairs))
