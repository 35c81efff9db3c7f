"""`rlqr eval` on the tiny collection: systems, judgements and measures that are asked for."""

import json
from pathlib import Path

import pytest

from rewriter.config import Config
from rewriter.evaluation.plan import plan
from tests import tiny
from tests.eval_results import RAW, evaluated


def test_what_cannot_be_evaluated_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text('{"query_id": "q8", "rewrite": "iota"}\n')
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    for words, said in (
        (["--systems", "rwa"], "no system 'rwa'; there are: raw, "),
        (["--backends", "lexcal"], "no backend 'lexcal'; there are: lexical"),
        (["--backends", "http"], "backend 'http' needs settings"),
        (["--split", "tset"], "no split 'tset'"),
        (["--baseline", "hyde", "--systems", "raw"], "no system 'hyde' to compare with"),
        (["--checkpoint", str(tmp_path / "empty")], "no trained rewriter there"),
        (["--collection.subset", "lang"], "`collection.subset`: no query has a column 'lang'"),
        (["--output", str(few / "result")], "few.jsonl is a file; choose a folder"),
        (["--systems", f"file:{few}"], "1 of 2 queries have no line, for example 'q9'"),
        (["--output", str(tmp_path / "other")], "holds files that are no evaluation's"),
        (["--evaluation.sampels", "2"], "did you mean `samples`?"),
    ):
        with pytest.raises(SystemExit) as end:
            evaluated(tmp_path, *words)
        assert end.value.code == 2
        err = capsys.readouterr().err
        assert said in err, err
    counted = evaluated(tmp_path, "--systems", f"file:{few}", "--allow_missing")
    assert tiny.read(counted / "result.json")["lexical"]["few"]["fallbacks"] == 1


def test_names_that_mean_something_are_not_given_to_others(tmp_path: Path) -> None:
    """A run's folder called "hyde" is no HyDE; two files of one name are told apart."""
    config = Config.model_validate(tiny.settings(tmp_path))
    files = []
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        files.append(tmp_path / place / "mine.jsonl")
    run = tmp_path / "hyde"
    run.mkdir()
    (run / "manifest.json").touch()
    entries = plan(config, [f"file:{path}" for path in files], [str(run)])
    assert [(entry.name, entry.label) for entry in entries] == [
        ("raw", "raw query"),
        ("mine", "mine.jsonl"),
        ("mine-2", str(files[1])),
        ("hyde-2", "hyde-2"),
    ]


def test_judgements_from_a_file(tmp_path: Path) -> None:
    judged = tmp_path / "judged.json"
    judged.write_text('{"q8": {"d7": 2, "d8": 1}, "stranger": {"d1": 1}}')
    result = evaluated(tmp_path, "--systems", "raw", "--qrels", str(judged))
    summary = tiny.read(result / "result.json")["lexical"]["raw"]
    assert summary["ndcg@3"] == {"mean": 1, "low": 1, "high": 1, "n": 1}  # d7 first, then d8
    assert tiny.read(result / "facts.json")["judged_by"] == str(judged)


def test_what_a_file_of_judgements_lacks_or_has_too_many_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = tmp_path / "judged.json"
    words = ["--systems", "raw", "--qrels", str(judged)]
    judged.write_text('{"q8": {"d8": 1, "gone": 1}, "stranger": {"d1": 1}}')
    result = evaluated(tmp_path, *words)
    err = capsys.readouterr().err
    for said in (
        "1 queries of the split are not judged and left out, for example 'q9'",
        "1 judged queries are not in the split, for example 'stranger'",
        "1 judged documents are not in the collection, for example 'gone'",
    ):
        assert f"{judged}: {said}" in err
    assert tiny.read(result / "facts.json")["unjudged"] == 1
    for text, said in (
        ('{"stranger": {"d1": 1}}', "judges none of the 2 queries of the split, but for example"),
        ('{"q8": {"D8": 1}, "q9": {"D9": 1}}', "no judged document is in collection 'collection'"),
        ('{"q8": {}, "other": {"d1": 1}}', "no judgement of them"),
    ):
        judged.write_text(text)
        with pytest.raises(SystemExit):
            evaluated(tmp_path, *words)
        assert said in capsys.readouterr().err


def test_further_judgements_are_reported_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tiny.save_collection(tmp_path / "collection")
    graded = "query-id\tcorpus-id\tscore\nq8\td7\t2\nq8\td8\t1\n"
    (folder / "qrels" / "test.graded.tsv").write_text(graded)
    result = evaluated(tmp_path, "--systems", "raw")
    summary = tiny.read(result / "result.json")["lexical"]["raw"]
    assert summary["ndcg@3"]["mean"] == RAW
    # q8 alone is judged there: d7 first and d8 second is the ideal order.
    assert summary["graded_ndcg@3"] == {"mean": 1, "low": 1, "high": 1, "n": 1}
    assert "graded NDCG@3 (1 queries): raw query 1.000" in capsys.readouterr().out


def test_a_collections_own_measure_and_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tiny.save_collection(tmp_path / "collection")
    rows = tiny.lines(folder / "queries.jsonl")
    for row in rows:
        row["metadata"] |= {"kind": "odd" if int(row["_id"][1:]) % 2 else "even", "language": "ko"}
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"loader": "beir", "options": {"folder": str(folder)}}
    own = {"primary": "recall@1", "subset": "kind"}
    result = evaluated(tmp_path, "--systems", "raw,reference", collection={**options, **own})
    summary = tiny.read(result / "result.json")["lexical"]["reference"]
    assert summary["recall@1"]["mean"] == 1
    assert summary["primary_vs_raw"]["measure"] == "recall@1"
    assert summary["primary_vs_raw"]["diff"] == 1
    assert set(summary["by"]) == {"origin", "languages", "kind", "language"}
    assert list(summary["by"]["kind"]["groups"]) == ["even", "odd"]
    assert summary["by"]["languages"]["groups"]["ko→latin"]["queries"] == 2
    assert summary["by"]["kind"]["macro"] == {"ndcg@3": 1, "recall@1": 1}
    out = capsys.readouterr().out
    assert "raw: recall@1 macro over kind 0.000, micro 0.000" in out
