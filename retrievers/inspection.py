"""What a collection holds, as text to read before anything is trained on it.

print(inspect(load("beir", folder="data/scifact")))
"""

import json
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from statistics import median

from retrievers.collection import Collection
from retrievers.documents import values
from retrievers.leaks import check_leaks, near_duplicates, near_leaks
from retrievers.queries import Query
from retrievers.scripts import language

SHOWN = 5  # of a list of faults
# Documents that are compared with one another, and characters of all of them together. 30,000 texts
# of 150 words (30 million characters) took 20 s of one core and 0.5 GB.
COMPARED, COMPARED_CHARS = 100_000, 100_000_000
PAIRS = 100_000  # of near-duplicates, after which the search for more of them ends
WIDTH = 96


def inspect(collection: Collection, near_duplicates: float = 0.8, samples: int = 2) -> str:
    """Describe a collection.

    Args:
        collection: what to look at.
        near_duplicates: similarity (Jaccard, three-word runs) from which two documents are listed.
        samples: queries shown from each split, spread evenly over it.

    Returns:
        Counts, lengths in characters, languages (as far as letters tell, or as the data says),
        origins and grades of every split, what was left out, doubts about documents, ids that are
        judged or named as a source and are absent, equal and nearly equal documents, leaks between
        splits, and samples.
    """
    lines = [f"collection {collection.name}", *_documents(collection)]
    for split in collection.splits:
        lines += ["", *_split(collection, split)]
    lines += ["", *_faults(collection, near_duplicates)]
    for split in collection.splits:
        lines += _samples(collection, split, samples)
    return "\n".join(lines)


def _documents(collection: Collection) -> Iterator[str]:
    lengths, blank, untitled = array("Q"), 0, 0
    languages: Counter[str] = Counter()
    for title, text in collection.texts():  # once: the texts may not fit into memory
        lengths.append(len(text))
        untitled += not title.strip()
        if title.strip() or text.strip():
            languages[language(text or title)] += 1
        else:
            blank += 1
    yield f"  {len(collection)} documents, {blank} blank, {untitled} without a title"
    yield f"  text: {_range(lengths, ' characters')}"
    yield f"  languages: {_most(languages) or 'none'}"
    for column in ("images", "image"):
        if column in collection.documents.column_names:
            cells = collection.documents.column(column)
            yield f"  page images: {len(cells) - cells.null_count} documents have some"


def _split(collection: Collection, split: str) -> Iterator[str]:
    queries = collection.queries(split)
    origins = _counted(Counter(query.origin for query in queries))
    references = sum(query.reference is not None for query in queries)
    yield f"split {split}: {len(queries)} queries ({origins}), {references} with a reference"
    if queries:
        yield f"  text: {_range([len(query.text) for query in queries], ' characters')}"
        said = Counter(str(q.metadata.get("language") or language(q.text)) for q in queries)
        yield f"  languages: {_most(said)}"
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
    yield f"doubts about documents: {_most(_doubts(collection)) or 'none'}"
    lost = [f"query {query}, document {document}" for query, document in collection.dangling]
    yield from _listed("judgements of absent documents", lost)
    yield from _listed("queries from absent documents", list(_without_source(collection)))
    equal, distinct, size = _equal(collection)
    yield from _listed("documents with the text of another", equal)
    yield from _nearly_equal(collection, distinct, size, threshold)
    yield from _listed("leaks between splits", check_leaks(collection, strict=False))
    near = [
        f"{score:.2f} {one}, {other}" for one, other, score in near_leaks(collection, threshold)
    ]
    yield from _listed(f"near-duplicates (from {threshold:g}) in different splits", near)


def _doubts(collection: Collection) -> Counter[str]:
    """What the loader found doubtful: blank pages, garbled text layers, images that came twice."""
    found: Counter[str] = Counter()
    if "metadata" in collection.documents.column_names:
        for (text,) in values(collection.documents, "metadata"):
            if text and ('"doubts"' in text or '"same_image_as"' in text):
                facts = json.loads(text)
                found.update(facts.get("doubts") or [])
                found["page with the image of another"] += bool(facts.get("same_image_as"))
    return +found


def _without_source(collection: Collection) -> Iterator[str]:
    for split in collection.splits:
        for query in collection.queries(split):
            if query.source is not None and query.source not in collection:
                yield f"query {query.id}, document {query.source}"


def _equal(collection: Collection) -> tuple[list[str], list[int], int]:
    """Pairs of documents with the same title and text, rows of those that have it first, and the
    characters of their texts.
    """
    first: dict[bytes, int] = {}
    pairs = []
    size = 0
    for row, (title, text) in enumerate(collection.texts()):
        if title.strip() or text.strip():
            digest = blake2b(f"{title}\0{text}".encode("utf-8", "replace"), digest_size=16).digest()
            held = first.setdefault(digest, row)
            if held == row:
                size += len(text)
            else:
                pairs.append(f"{collection.ids[held]}, {collection.ids[row]}")
    return pairs, list(first.values()), size


def _nearly_equal(
    collection: Collection, rows: Sequence[int], size: int, threshold: float
) -> Iterator[str]:
    """Pairs among documents that are not equal; of many documents, some from all over."""
    step = max(1, -(-len(rows) // COMPARED), -(-size // COMPARED_CHARS))
    compared = [collection.ids[row] for row in rows[::step]]
    pairs = near_duplicates(collection, compared, threshold, PAIRS)
    which = "the documents" if step == 1 else f"{len(compared)} of the documents"
    if len(pairs) == PAIRS:
        which += ", where the search for more ended"
    shown = [f"{score:.2f} {one}, {other}" for one, other, score in pairs]
    yield from _listed(f"near-duplicates (from {threshold:g}) among {which}", shown)


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


def _most(counts: Mapping[str, int]) -> str:
    """The most frequent ones first."""
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{what} × {count}" for what, count in ordered)


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
