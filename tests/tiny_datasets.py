"""Copies of published data sets of a few rows, in their columns and files; contents our own."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def parquet(path: Path, rows: Sequence[dict[str, Any]], schema: pa.Schema | None = None) -> Path:
    """Write a Parquet file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)
    return path


def picture(shade: int, other: int = 255) -> dict[str, Any]:
    """An image cell as the datasets library writes it: 8 x 8 pixels of one grey, a corner apart."""
    from PIL import Image

    image = Image.new("L", (8, 8), shade)
    image.putpixel((0, 0), other)
    out = io.BytesIO()
    image.save(out, "PNG")
    return {"bytes": out.getvalue(), "path": f"{shade}.png"}


MSMARCO = pa.schema(
    [
        ("answers", pa.list_(pa.string())),
        (
            "passages",
            pa.struct(
                [
                    ("is_selected", pa.list_(pa.int32())),
                    ("passage_text", pa.list_(pa.string())),
                    ("url", pa.list_(pa.string())),
                ]
            ),
        ),
        ("query", pa.string()),
        ("query_id", pa.int32()),
        ("query_type", pa.string()),
        ("wellFormedAnswers", pa.list_(pa.string())),
    ]
)


def msmarco_row(number: int, texts: Sequence[str], labels: Sequence[int]) -> dict[str, Any]:
    """A row of microsoft/ms_marco."""
    return {
        "answers": ["yes"],
        "passages": {
            "is_selected": list(labels),
            "passage_text": list(texts),
            "url": [f"https://example.org/{number}/{i}" for i in range(len(texts))],
        },
        "query": f"question {number}",
        "query_id": number,
        "query_type": "DESCRIPTION",
        "wellFormedAnswers": [],
    }


def msmarco(folder: Path) -> Path:
    """Four validation rows in two files, three test rows with hidden labels."""
    rows = [
        msmarco_row(10, ["alpha", "beta"], [0, 1]),
        msmarco_row(11, ["beta", "gamma"], [1, 0]),
        msmarco_row(12, ["delta", " "], [0, 0]),
        msmarco_row(13, ["epsilon"], [1]),
    ]
    place = folder / "v2.1"
    parquet(place / "validation-00000-of-00002.parquet", rows[:3], MSMARCO)
    parquet(place / "validation-00001-of-00002.parquet", rows[3:], MSMARCO)
    test = [msmarco_row(number, [f"p{number}", "alpha"], [-1, -1]) for number in (20, 21, 22)]
    parquet(place / "test-00000-of-00001.parquet", test, MSMARCO)
    return folder


def vidore_v1(folder: Path) -> Path:
    """Four rows: one question twice, one page twice, one page without a question."""
    rows = [
        {"query": "how much?", "image": picture(1), "image_filename": "a.png"},
        {"query": "who?", "image": picture(1), "image_filename": "a.png"},
        {"query": "how much?", "image": picture(2), "image_filename": "b.png"},
        {"query": None, "image": picture(3), "image_filename": "c.png"},
    ]
    kept = [{"questionId": str(i), **row, "answer": "x"} for i, row in enumerate(rows)]
    parquet(folder / "data" / "test-00000-of-00001.parquet", kept)
    return folder


def vidore_v2(folder: Path) -> Path:
    """Two pages, a question in two languages, with hyphens and whole numbers."""
    name = "test-00000-of-00001.parquet"
    pages = [{"corpus-id": i, "image": picture(i), "doc-id": f"report-{i}"} for i in range(2)]
    queries = [
        {"query-id": 0, "query": "how much waste?", "language": "english"},
        {"query-id": 1, "query": "combien de déchets ?", "language": "french"},
    ]
    qrels = [
        {"query-id": q, "corpus-id": c, "answer": "3 t", "score": s}
        for q, c, s in ((0, 1, 1), (1, 1, 1), (1, 0, 1))
    ]
    for config, rows in (("corpus", pages), ("queries", queries), ("qrels", qrels)):
        parquet(folder / config / name, rows)
    return folder


def vidore_v3(folder: Path) -> Path:
    """Two pages, a question in two languages, with underscores, graded."""
    name = "test-00000-of-00001.parquet"
    pages = [
        {
            "corpus_id": i,
            "image": picture(100 + i),
            "doc_id": "handbook",
            "markdown": f"# Page {i}",
            "page_number_in_doc": i,
        }
        for i in range(2)
    ]
    queries = [
        {
            "query_id": i,
            "query": text,
            "language": language,
            "query_types": ["extractive"],
            "answer": "ten",
        }
        for i, (text, language) in enumerate(
            [("how many days?", "english"), ("combien de jours ?", "french")]
        )
    ]
    qrels = [
        {
            "query_id": q,
            "corpus_id": c,
            "score": s,
            "content_type": ["text"],
            "bounding_boxes": [{"x1": 0, "y1": 0, "x2": 5, "y2": 5}],
        }
        for q, c, s in ((0, 0, 2), (0, 1, 1), (1, 0, 2))
    ]
    for config, rows in (("corpus", pages), ("queries", queries), ("qrels", qrels)):
        parquet(folder / config / name, rows)
    parquet(folder / "documents_metadata" / name, [{"doc_id": "handbook", "doc_type": "pdf"}])
    return folder


def kopub(folder: Path) -> Path:
    """Five pages in two files; the images of the second and the fourth are equal."""
    place = folder / "SDS-KoPub-corpus"
    pages = [
        {
            "id": f"page-{i}",
            "image": picture(shade),
            "text": f"본문 {i}",
            "ocr": f"인식 {i}",
        }
        for i, shade in enumerate((10, 20, 30, 20, 50))
    ]
    parquet(place / "test-00000-of-00002.parquet", pages[:2])
    parquet(place / "test-00001-of-00002.parquet", pages[2:])
    asked = [
        {"query": "예산은 얼마입니까?", "ground_truth": [3], "type": "text"},
        {"query": "누가 담당합니까?", "ground_truth": [0], "type": "cross"},
    ]
    parquet(folder / "SDS-KoPub-QA" / "test-00000-of-00001.parquet", asked)
    files = [{"file_id": "f1", "page_indices": [0, 1]}, {"file_id": "f2", "page_indices": [2, 3]}]
    parquet(folder / "SDS-KoPub-annotations" / "test-00000-of-00001.parquet", files)
    return folder
