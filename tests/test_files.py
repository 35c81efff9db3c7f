"""A folder of files: what becomes of each kind, ids that stay, faults that stop or are counted."""

import os
from pathlib import Path
from typing import Any

import pytest

from retrievers.identity import CollectionError, EmptyCollectionError, MissingFileError
from retrievers.loaders import load
from retrievers.pages import PageSettings, page_source
from retrievers.pages.pdf_text import PageText, garbled
from tests.tiny_datasets import parquet, picture
from tests.tiny_pdf import ENCRYPTED, pdf


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "mine"
    (made / "notes").mkdir(parents=True)
    return made


def texts(collection: Any) -> dict[str, tuple[str, str]]:
    return dict(zip(collection.ids, collection.texts(), strict=True))


def test_text_files(folder: Path) -> None:
    (folder / "notes" / "setup.md").write_text(
        "---\ntags: [a]\n---\n```\n# no heading\n```\nFirst.\r\n\n## Set up ##\n"
    )
    (folder / "a.txt").write_bytes("\ufeff세금 안내\n".encode())
    (folder / "b.rst").write_text("plain")
    assert texts(load("files", folder=folder)) == {
        "a.txt": ("", "세금 안내\n"),
        "b.rst": ("", "plain"),
        "notes/setup.md": ("Set up", "```\n# no heading\n```\nFirst.\n\n## Set up ##\n"),
    }


def test_html_is_what_a_reader_sees(folder: Path) -> None:
    page = (
        "<html><head><meta charset='euc-kr'><title>예산\n안내</title><style>b{}</style></head>"
        "<body><h1>2024</h1><p>서울<b>시</b> 예산<br>둘째 줄</p><script>var x</script>"
        "<table><tr><td>a</td><td>b</td></tr></table></body></html>"
    )
    (folder / "a.html").write_bytes(page.encode("euc-kr"))
    assert texts(load("files", folder=folder)) == {
        "a.html": ("예산 안내", "2024\n서울시 예산\n둘째 줄\na b")
    }


def test_tables(folder: Path) -> None:
    (folder / "faq.csv").write_text('title,text,lang\nTax,"opens,\nat nine",en\n,rain,en\n')
    (folder / "rows.jsonl").write_text('{"id": 7, "contents": "seven"}\n{"text": "no id"}\n')
    parquet(folder / "t.parquet", [{"doc_id": "x", "body": "y", "n": 3}])
    collection = load("files", folder=folder)
    assert texts(collection) == {
        "faq.csv#row-1": ("Tax", "opens,\nat nine"),
        "faq.csv#row-2": ("", "rain"),
        "rows.jsonl#7": ("", "seven"),
        "rows.jsonl#row-2": ("", "no id"),
        "t.parquet#x": ("", "y"),
    }
    assert collection.metadata("faq.csv#row-1") == {"lang": "en", "file": "faq.csv"}
    chosen = load("files", folder=folder / "..", text=["lang"], id="title", failed="skip")
    assert chosen.document("mine/faq.csv#Tax").text == "en"
    assert chosen.left_out == {"malformed row": 4}  # an empty title, and files without `lang`


def test_pages_of_a_pdf(folder: Path) -> None:
    (folder / "r.pdf").write_bytes(pdf("Budget 2024", "", None, "Weather"))
    collection = load("files", folder=folder)
    assert collection.ids == ("r.pdf#page-1", "r.pdf#page-2", "r.pdf#page-3", "r.pdf#page-4")
    assert collection.document("r.pdf#page-1").text == "Budget 2024"
    assert collection.metadata("r.pdf#page-2")["doubts"] == ["blank page"]
    assert collection.metadata("r.pdf#page-3")["doubts"] == ["no text layer"]
    assert collection.metadata("r.pdf#page-4") == {"page": 4, "file": "r.pdf"}
    source = page_source(collection, PageSettings(dpi=72))
    one, two, three, four = (list(pages) for pages in source.documents())
    assert [len(pages) for pages in (one, two, three, four)] == [1, 1, 1, 1]
    assert one[0].image is not None
    assert one[0].image.size == (200, 100)
    assert two[0].blank
    assert not three[0].blank
    assert four[0].image is not None
    assert four[0].image.tobytes() != one[0].image.tobytes()
    whole = load("files", folder=folder, pdf="files")
    assert texts(whole) == {"r.pdf": ("", "Budget 2024\n\nWeather")}
    assert len(list(next(iter(page_source(whole, PageSettings()).documents())))) == 4


def test_pages_swapped_make_another_source_of_pages(folder: Path) -> None:
    (folder / "r.pdf").write_bytes(pdf("Budget", "Weather"))
    collection = load("files", folder=folder)
    table = collection.documents
    identities = [
        page_source(type(collection)("x", rows), PageSettings()).identity()["sha256"]
        for rows in (table, table.take([1, 0]))
    ]
    assert identities[0] != identities[1]


def test_images(folder: Path) -> None:
    (folder / "scan.PNG").write_bytes(picture(9)["bytes"])
    (folder / "a.txt").write_text("words")
    collection = load("files", folder=folder)
    assert texts(collection) == {"a.txt": ("", "words"), "scan.PNG": ("", "")}
    assert [len(list(p)) for p in page_source(collection, PageSettings()).documents()] == [0, 1]


FAULTS = {
    "broken.pdf": (b"%PDF-1.4\nnothing", r"broken.pdf: no readable PDF", "broken PDF"),
    "empty.pdf": (b"", r"empty.pdf: an empty file of 0 bytes", "empty PDF"),
    "locked.pdf": (ENCRYPTED, r"locked.pdf: encrypted with a password", "encrypted PDF"),
    "long.pdf": (pdf(*["x"] * 4), r"long.pdf: 4 pages, and at most 3", "PDF with too many pages"),
    "bad.txt": ("한글\n한글".encode("cp949"), r"bad.txt:1: 'utf-8'", "undecodable file"),
    "empty.md": (b"", r"empty.md: an empty file", "empty file"),
    "empty.png": (b"", r"empty.png: an empty file", "empty file"),
    "empty.html": (b"", r"empty.html: an empty file", "empty file"),
    "empty.jsonl": (b"\n", r"empty.jsonl: a table without a row", "empty table"),
    "empty.csv": (b"id,text\n", r"empty.csv: a table without a row", "empty table"),
    "bad.parquet": (b"PAR1", r"bad.parquet: no Parquet file", "unreadable table"),
    "bad.jsonl": (b'{"text": "a"}\n{]\n', r"bad.jsonl:2: no JSON", "malformed row"),
    "bad.csv": (b"text,b\nx\n", r"bad.csv:2: 1 fields, and the header has 2", "malformed row"),
    "none.csv": (b"a,b\nx,y\n", r"none.csv:2: no text column: none of text", "malformed row"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_file_that_cannot_be_read_stops_or_is_counted(folder: Path, name: str) -> None:
    content, said, reason = FAULTS[name]
    (folder / name).write_bytes(content)
    (folder / "good.txt").write_text("good")
    with pytest.raises(CollectionError, match=said):
        load("files", folder=folder, max_pages=3)
    collection = load("files", folder=folder, max_pages=3, failed="skip")
    assert "good.txt" in collection
    assert collection.left_out == {reason: 1}


def test_other_encodings(folder: Path) -> None:
    (folder / "a.txt").write_bytes("세금".encode("cp949"))
    assert texts(load("files", folder=folder, encoding="cp949")) == {"a.txt": ("", "세금")}
    with pytest.raises(CollectionError, match="no encoding 'utf-99'"):
        load("files", folder=folder, encoding="utf-99")


def test_files_of_other_kinds_are_counted_and_hidden_ones_passed_over(folder: Path) -> None:
    for name in ("a.docx", "b.docx", "LICENSE", "a.txt", ".hidden.txt"):
        (folder / name).write_text("x")
    (folder / ".git").mkdir()
    (folder / ".git" / "a.txt").write_text("x")
    collection = load("files", folder=folder)
    assert collection.ids == ("a.txt",)
    assert collection.left_out == {
        "file of a kind that is not read (.docx)": 2,
        "file of a kind that is not read (no ending)": 1,
    }
    (folder / "a.txt").unlink()
    with pytest.raises(EmptyCollectionError, match="holds no file that is read"):
        load("files", folder=folder)
    with pytest.raises(MissingFileError, match="is no folder"):
        load("files", folder=folder / "none")


def test_links_are_counted(folder: Path) -> None:
    (folder / "a.txt").write_text("x")
    (folder / "linked.txt").symlink_to(folder / "a.txt")
    (folder / "gone.txt").symlink_to(folder / "none.txt")
    (folder / "loop").symlink_to(folder)
    collection = load("files", folder=folder)
    assert collection.ids == ("a.txt", "linked.txt")
    assert collection.left_out == {"link to nothing": 1, "link to a folder, not followed": 1}


def test_a_folder_that_may_not_be_read_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.txt").write_text("x")
    plain = os.scandir

    def scandir(path: Any) -> Any:
        if Path(path).name == "notes":
            raise PermissionError(13, "Permission denied", str(path))
        return plain(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(CollectionError, match=r"notes: Permission denied; make the folder"):
        load("files", folder=folder)


def test_a_text_between_two_rules_is_no_yaml(folder: Path) -> None:
    (folder / "a.md").write_text("---\nnot yaml, a text\n---\nmore")
    (folder / "b.md").write_text("---\ntitle: x\n---")
    (folder / "c.md").write_text("---\nit's: a: text\n---\nmore")
    found = texts(load("files", folder=folder))
    assert found["a.md"][1] == "---\nnot yaml, a text\n---\nmore"
    assert found["b.md"][1] == ""
    assert found["c.md"][1].startswith("---\nit's")


def test_the_rest_of_a_table_is_counted_as_such(folder: Path) -> None:
    (folder / "a.csv").write_text('text\none\n"open\ntwo\n')
    collection = load("files", folder=folder, failed="skip")
    assert texts(collection) == {"a.csv#row-1": ("", "one")}
    assert collection.left_out == {"rest of a table that cannot be read": 1}


def test_chunks(folder: Path) -> None:
    (folder / "a.txt").write_text("one two three four five")
    (folder / "r.pdf").write_bytes(pdf("Budget of 2024", ""))
    collection = load("files", folder=folder, chunk_words=3, chunk_overlap=1)
    assert texts(collection) == {
        "a.txt#chunk-1": ("", "one two three"),
        "a.txt#chunk-2": ("", "three four five"),
        "r.pdf#page-1#chunk-1": ("", "Budget of 2024"),
        "r.pdf#page-2": ("", ""),
    }
    assert collection.metadata("r.pdf#page-1#chunk-1") == {"page": 1, "file": "r.pdf", "chunk": 1}
    with pytest.raises(CollectionError, match="pieces cannot share all"):
        load("files", folder=folder, chunk_words=3, chunk_overlap=3)


def test_own_queries_and_judgements(folder: Path) -> None:
    (folder / "r.pdf").write_bytes(pdf("Budget", "Weather"))
    (folder / "queries.txt").write_text("how much?\nwill it rain?\n")
    (folder / "qrels.json").write_text('{"q2": {"r.pdf#page-2": 2}}')
    options: dict[str, Any] = {"queries": {"test": folder / "queries.txt"}}
    listed = load("files", folder=folder, **options)
    assert listed.qrels("test") == {"q1": {}, "q2": {}}
    assert len(listed) == 2  # the queries' file is no document
    judged = load("files", folder=folder, **options, qrels={"test": folder / "qrels.json"})
    assert judged.qrels("test") == {"q2": {"r.pdf#page-2": 2.0}}
    assert judged.left_out == {"query without a judgement": 1}
    assert judged.dangling == []


def test_garbage_is_told_from_text() -> None:
    assert not garbled("예산 2024: 1,200원 — ½ “x”")
    assert garbled("\ufffd\ufffd bu")  # 2 of 4
    assert garbled("\ue000\ue001 ok")
    assert garbled("(cid:12)(cid:7) ab")
    assert not garbled("a" * 19 + "\ufffd")  # 1 of 20
    assert PageText(1, "\ufffd", drawn=True).doubts == ["garbled text layer"]
