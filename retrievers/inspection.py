"""What a collection holds, as text to read before anything is trained on it.

print(inspect(load("beir", folder="data/scifact")))
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from retrievers.collection import Collection
from retrievers.leaks import check_leaks, near_leaks
from retrievers.queries import Query

SHOWN = 5  # of a list of faults
WIDTH = 96


def inspect(collection: Collection, near_duplicates: float = 0.8, samples: int = 2) -> str:
    """Describe a collection.

    Args:
        collection: what to look at.
        near_duplicates: similarity (Jaccard, three-word runs) from which two documents that are
            relevant in different splits are listed.
        samples: queries shown from each split, spread evenly over it.

    Returns:
        Counts, lengths in characters, origins and grades of every split, what was left out,
        judgements of absent documents, leaks between splits, and samples.
    """
    lines = [f"collection {collection.name}", *_documents(collection)]
    for split in collection.splits:
        lines += ["", *_split(collection, split)]
    lines += ["", *_faults(collection, near_duplicates)]
    for split in collection.splits:
        lines += _samples(collection, split, samples)
    return "\n".join(lines)


def _documents(collection: Collection) -> Iterator[str]:
    lengths, blank, untitled = [], 0, 0
    for title, text in collection.texts():  # once: the texts may not fit into memory
        lengths.append(len(text))
        untitled += not title.strip()
        blank += not (title.strip() or text.strip())
    yield f"  {len(collection)} documents, {blank} blank, {untitled} without a title"
    yield f"  text: {_range(lengths, ' characters')}"


def _split(collection: Collection, split: str) -> Iterator[str]:
    queries = collection.queries(split)
    origins = _counted(Counter(query.origin for query in queries))
    references = sum(query.reference is not None for query in queries)
    yield f"split {split}: {len(queries)} queries ({origins}), {references} with a reference"
    if queries:
        yield f"  text: {_range([len(query.text) for query in queries], ' characters')}"
    for kind in collection.kinds(split):
        yield f"  qrels {kind}: {_judgements(collection.qrels(split, kind))}"


def _judgements(qrels: Mapping[str, Mapping[str, float]]) -> str:
    grades = Counter(grade for row in qrels.values() for grade in row.values())
    relevant = [sum(grade > 0 for grade in row.values()) for row in qrels.values()]
    spread = ", ".join(f"{grade:g} × {count}" for grade, count in sorted(grades.items()))
    text = f"{len(qrels)} queries, grades {spread or 'none'}"
    if relevant:
        text += f"; relevant documents a query: {_range(relevant)}"
    if without := relevant.count(0):
        text += f"; {without} queries without any are excluded from metrics"
    return text


def _faults(collection: Collection, threshold: float) -> Iterator[str]:
    yield f"left out: {_counted(collection.left_out) or 'nothing'}"
    lost = [f"query {query}, document {document}" for query, document in collection.dangling]
    yield from _listed("judgements of absent documents", lost)
    yield from _listed("leaks between splits", check_leaks(collection, strict=False))
    near = [
        f"{score:.2f} {one}, {other}" for one, other, score in near_leaks(collection, threshold)
    ]
    yield from _listed(f"near-duplicates (from {threshold:g}) in different splits", near)


def _samples(collection: Collection, split: str, wanted: int) -> Iterator[str]:
    queries = collection.queries(split)
    step = max(1, len(queries) // wanted) if wanted > 0 else 0
    qrels = collection.qrels(split)
    for query in queries[::step][:wanted] if step else ():
        yield ""
        yield from _sample(collection, split, query, qrels[query.id])


def _sample(
    collection: Collection, split: str, query: Query, grades: Mapping[str, float]
) -> Iterator[str]:
    yield f"{split} {query.id}: {_short(query.text)}"
    if query.reference is not None:
        yield f"  reference: {_short(query.reference)}"
    for identity, grade in list(grades.items())[:SHOWN]:
        if identity in collection:
            document = collection.document(identity)
            yield f"  {grade:g} {_short(identity)}: {_short(f'{document.title} | {document.text}')}"
        else:
            yield f"  {grade:g} {_short(identity)}: not in the collection"


def _range(numbers: Sequence[int], unit: str = "") -> str:
    return f"{min(numbers)} to {max(numbers)}{unit}, median {median(numbers):g}"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))


def _listed(what: str, found: Sequence[str]) -> Iterator[str]:
    yield f"{what}: {len(found) or 'none'}"
    yield from (f"  {_plain(one)}" for one in found[:SHOWN])
    if len(found) > SHOWN:
        yield f"  … and {len(found) - SHOWN} more"


def _short(text: str) -> str:
    plain = _plain(text[: 4 * WIDTH])
    return plain if len(plain) <= WIDTH else plain[:WIDTH].rstrip() + "…"


def _plain(text: str) -> str:
    """One line of printable characters: a collection's texts may hold terminal commands."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
