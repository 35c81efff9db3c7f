"""Folders that the report takes with something missing, and those that it refuses; the command."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rewriter import cli
from rewriter.evaluation import write_result
from rewriter.records import RecordError, write_lines, write_records
from rewriter.report import ReportError, write
from rewriter.report.gather import gather
from tests.report_folder import add_training, data, fill, record, records

ROOT = Path(__file__).parent.parent


# What a folder may hold or lack


def test_folder_of_a_training_without_documents_or_judgements(tmp_path: Path) -> None:
    fill(tmp_path)
    for name in ("documents.jsonl", "qrels.trec"):
        (tmp_path / name).unlink()
    add_training(tmp_path)
    write_lines(["output: runs/demo"], tmp_path / "config.yaml")
    page = write(tmp_path).read_text(encoding="utf-8")
    assert data(page, "texts")["texts"] == [""] * len(data(page, "hits")["ids"])
    assert data(page, "hits")["judged"][2] == []  # nobody found it, so that nobody knows it
    assert "output: runs/demo" in page
    assert "Held-out NDCG@3" in page


def test_result_is_computed_where_there_is_none(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "result.json").unlink()
    assert gather(tmp_path).result["lexical"]["raw"]["ndcg@3"]["mean"] == pytest.approx(0.5327324)


def test_without_a_baseline_there_are_no_changes(tmp_path: Path) -> None:
    rows = [row for row in records() if row.system == "trained"]
    write_records(rows, tmp_path / "records.jsonl")
    page = write(tmp_path).read_text(encoding="utf-8")
    found = data(page, "list")
    assert (found["baseline"], found["main"]) == (None, "trained")
    assert not list((tmp_path / "plots").glob("changes-*"))


def test_failed_search_of_one_system_leaves_the_pair_out(tmp_path: Path) -> None:
    rows = records(backends=["lexical"])
    rows[0] = replace(rows[0], metrics={}, hits=(), grades=(), error="HTTP 503")
    write_records(rows, tmp_path / "records.jsonl")
    page = write(tmp_path).read_text(encoding="utf-8")
    assert "1 better, 1 equal, 1 worse; n = 3" in page
    assert "n = 3–4, 1 excluded, 0–1 failed" in page
    assert "HTTP 503" in data(page, "list")["strings"]


def test_excluded_query_of_percent_encoded_id(tmp_path: Path) -> None:
    fill(tmp_path)
    write_lines(["a%20b 0 doc%25 2", "q1 0 nothing 0"], tmp_path / "qrels.trec")
    judged = gather(tmp_path).judged
    assert judged["a b"] == {"doc%": 2.0}
    assert judged["q1"] == {"doc-q1": 1.0}  # from the hits; grade 0 is not relevant


def test_systems_are_called_as_the_evaluation_called_them(tmp_path: Path) -> None:
    fill(tmp_path)
    systems = {"trained": {"label": "step 24 <i>"}, "raw": {"kind": "rule"}}
    write_lines([json.dumps({"systems": systems})], tmp_path / "facts.json")
    page = write(tmp_path).read_text(encoding="utf-8")
    assert data(page, "list")["systems"] == {"raw": "raw query", "trained": "step 24 <i>"}
    assert '<th scope="row">step 24 &lt;i&gt;</th>' in page
    assert "| step 24 <i> |" in (tmp_path / "table.md").read_text(encoding="utf-8")
    svg = (tmp_path / "plots" / "means-lexical.svg").read_text(encoding="utf-8")
    assert "step 24 &lt;i&gt;" in svg


# What is refused


def change(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: write_lines([text], folder / name)


def wrong_mean(folder: Path) -> None:
    result = json.loads((folder / "result.json").read_text())
    result["semantic"]["trained"]["ndcg@3"]["mean"] = 0.5
    write_result(result, folder / "result.json")


def more_systems(folder: Path) -> None:
    result = json.loads((folder / "result.json").read_text())
    result["lexical"]["hyde"] = result["lexical"]["raw"]
    write_result(result, folder / "result.json")


def other_split(folder: Path) -> None:
    rows = records()
    write_records([*rows[:-1], replace(rows[-1], split="validation")], folder / "records.jsonl")


def twice(folder: Path) -> None:
    write_records([record("raw", "q1", "x", None, 1)] * 2, folder / "records.jsonl")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (change("result.json", "{}"), r"result.json: no ndcg@3 of raw on lexical; remove"),
        (change("result.json", "{"), r"result.json is no JSON"),
        (
            wrong_mean,
            r"trained on semantic has ndcg@3 0.5000 of 4 queries, the records 0.4077 of 4",
        ),
        (more_systems, r"has \('lexical', 'hyde'\), of which there is no record"),
        (other_split, r"records of 2 splits \(test, validation\)"),
        (twice, r"has two records"),
        (lambda folder: (folder / "records.jsonl").write_text(""), r"records.jsonl is empty"),
        (change("qrels.trec", "q1 doc 1"), r"qrels.trec:1: 'q1 doc 1' is not"),
        (change("documents.jsonl", '{"title": "x"}'), r'documents.jsonl:1: no "id"'),
        (change("documents.jsonl", "[1]"), r"documents.jsonl:1: '\[1\]' is no JSON object"),
        (change("documents.jsonl", '{"id": "a", "image": "../x.png"}'), r"no file inside of"),
        (change("documents.jsonl", '{"id": "doc-q1", "image": "result.json"}'), r"is no image"),
        (change("matrix.json", '{"rows": ["a"], "columns": ["b"], "values": []}'), r"matrix.json"),
        (change("matrix.json", '{"rows": ["a"]}'), r"matrix.json.*wanted is"),
        (change("metrics.jsonl", "x"), r"metrics.jsonl:1 is no JSON"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, spoil: Callable[[Path], None], said: str
) -> None:
    fill(tmp_path)
    spoil(tmp_path)
    with pytest.raises((ReportError, RecordError), match=said):
        write(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_file_that_is_no_utf8(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "qrels.trec").write_bytes(b"\xff")
    with pytest.raises(ReportError, match="is not UTF-8"):
        write(tmp_path)


def test_folder_without_records(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"no records.jsonl in .*; give the folder of"):
        write(tmp_path)


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_missing_extra_is_named(
    tmp_path: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ReportError, match=rf'{package} is not installed; pip install "rlqr\[report\]"'
    ):
        write(tmp_path)


# The command


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path)
    cli.main(["report", str(tmp_path)])
    said = capsys.readouterr().err
    assert f"page   {tmp_path / 'report.html'} (0." in said
    assert (tmp_path / "table.md").is_file()


def test_command_without_records_ends_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["report", str(tmp_path)])
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("error: no records.jsonl in")


def test_report_needs_no_model_package(tmp_path: Path) -> None:
    fill(tmp_path)
    code_ = (
        f"import sys; from rewriter.report import write; assert 'matplotlib' not in sys.modules; "
        f"write({str(tmp_path)!r}); "
        "assert not {'torch', 'transformers', 'trl', 'datasets'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code_],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
