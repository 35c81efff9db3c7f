"""`rlqr eval` on the tiny collection: what it writes, resumes, refuses."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ir_measures
import pytest
import yaml
from ir_measures import RR, R, nDCG

from retrievers.lexical import LexicalRetriever
from retrievers.pages import PageSettings
from rewriter import cli, generation
from rewriter.config import Config
from rewriter.evaluation.plan import plan
from rewriter.records import read_records
from rewriter.report import write as write_report
from tests import tiny

close = pytest.approx
RAW = close(0.63093, abs=1e-5)  # every raw query has its document in the second place: 1 / log2(3)


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("retrievers", "rewards", "rewriter")]
    before = [(logger.handlers, logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A short training, whose end compares with a prompt too."""
    folder = tmp_path_factory.mktemp("trained")
    systems = ["raw", "keywords", "untrained"]
    return tiny.train_tiny(folder, trainer={"max_steps": 2}, evaluation={"systems": systems})


def configured(folder: Path, **sections: Any) -> Path:
    """A configuration of the tiny policy, in a file."""
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(tiny.settings(folder, **sections)), encoding="utf-8")
    return path


def evaluated(folder: Path, *words: str, **sections: Any) -> Path:
    config = configured(folder, **sections)
    cli.main(["eval", "--config", str(config), "--output", str(folder / "result"), *words])
    return folder / "result"


def test_a_result_folder(run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "my rewrites.jsonl"
    rows = [{"query_id": "q8", "rewrite": "iota"}, {"query_id": "q9", "rewrite": None}]
    mine.write_text("".join(json.dumps(row) + "\n" for row in rows))
    systems = "raw,untrained,hyde,query2doc,keywords,last_sentence,top_idf,reference"
    result = evaluated(
        tmp_path,
        "--systems",
        f"{systems},file:{mine}",
        "--checkpoint",
        str(run.path),
        str(run.best),
        "--baseline",
        "reference",
        "--mteb",
    )
    names = [*systems.split(","), "my-rewrites", "run", "run-2"]
    assert {path.name for path in result.iterdir()} == {
        "records.jsonl",
        "result.json",
        "facts.json",
        "diagnostics.json",
        "documents.jsonl",
        "qrels.trec",
        "runs",
        "cache",
        "mteb",
    }
    found = tiny.read(result / "result.json")["lexical"]
    assert list(found) == names
    assert found["raw"]["ndcg@3"] == {"mean": RAW, "low": RAW, "high": RAW, "n": 2}
    assert found["reference"]["ndcg@3"]["mean"] == 1
    # q8 found at once, q9 as its raw query: (1 + .63093) / 2, and counted.
    assert found["my-rewrites"]["ndcg@3"]["mean"] == close((1 + 0.63093) / 2, abs=1e-5)
    assert found["my-rewrites"]["fallbacks"] == 1
    assert found["raw"]["vs_reference"]["loss"] == 2
    assert found["reference"]["vs_raw"]["win"] == 2
    assert found["run"]["ndcg@3"] == found["run-2"]["ndcg@3"]  # one adapter, named twice
    records = read_records(result / "records.jsonl")
    assert [r.system for r in records] == [name for name in names for _ in range(2)]
    assert {path.name for path in (result / "runs").iterdir()} == {
        f"lexical.{name}.trec" for name in names
    }
    out = capsys.readouterr().out
    assert "lexical, 2 test queries" in out
    assert "HyDE passage" in out
    assert "p against raw, Holm-corrected for 10" in out


def test_a_training_ends_with_the_same_figures(run: Any) -> None:
    result = evaluated(
        run.path.parent, "--systems", "keywords,untrained", "--checkpoint", str(run.path)
    )
    here, there = (tiny.read(folder / "result.json")["lexical"] for folder in (result, run.path))
    assert list(there) == ["raw", "keywords", "untrained", "trained"]
    assert list(here) == ["raw", "keywords", "untrained", "run"]
    for one, other in zip(here.values(), there.values(), strict=True):
        assert one["ndcg@3"] == other["ndcg@3"]
        assert one["recall@5"] == other["recall@5"]


def test_outside_tools_give_the_means_of_the_result(tmp_path: Path) -> None:
    result = evaluated(tmp_path, "--systems", "raw,question,reference")
    tool: Any = ir_measures
    qrels = list(tool.read_trec_qrels(str(result / "qrels.trec")))
    for system, summary in tiny.read(result / "result.json")["lexical"].items():
        rows = list(tool.read_trec_run(str(result / "runs" / f"lexical.{system}.trec")))
        values = tool.calc_aggregate([nDCG @ 3, RR, R @ 5], qrels, rows)
        for key, measure in (("ndcg@3", nDCG @ 3), ("mrr", RR), ("recall@5", R @ 5)):
            assert values[measure] == close(summary[key]["mean"], abs=1e-9)


def test_facts_and_documents(tmp_path: Path) -> None:
    result = evaluated(tmp_path, "--systems", "raw,untrained")
    facts = tiny.read(result / "facts.json")
    assert facts["split"] == "test"
    assert facts["backends"]["lexical"]["settings"]["engine"] == "rank-bm25"
    assert facts["systems"]["raw"] == {"kind": "rule", "label": "raw query"}
    assert len(facts["systems"]["untrained"]["weights"]) == 64
    assert facts["systems"]["untrained"]["decoding"]["max_new_tokens"] == 8
    assert facts["config"]["reward"]["kind"] == "ndcg"
    assert "torch" in facts["versions"]
    documents = tiny.lines(result / "documents.jsonl")
    # Judged: d8 and d9. The raw queries find d7, d8 and d9; a rewrite may find more.
    assert {"id": "d8", "title": "", "text": "iota"} in documents
    assert {"d7", "d8", "d9"} <= {row["id"] for row in documents}


def test_a_batch_of_1_writes_what_a_batch_of_16_writes(run: Any, tmp_path: Path) -> None:
    tiny.save_collection(tmp_path / "collection", test=range(8, 10))
    texts = []
    for size in (1, 16):
        folder = tmp_path / str(size)
        folder.mkdir()
        (folder / "collection").symlink_to(tmp_path / "collection")
        result = evaluated(
            folder,
            "--systems",
            "untrained,keywords",
            "--split",
            "train",
            "--checkpoint",
            str(run.path),
            evaluation={"batch_size": size},
        )
        texts.append([record.text for record in read_records(result / "records.jsonl")])
    assert texts[0] == texts[1]
    assert len(texts[0]) == 4 * 6


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Prompts given to the model, one number a call."""
    calls: list[int] = []
    generate = generation.generate

    def counting(model: Any, tokenizer: Any, conversations: Any, *rest: Any, **more: Any) -> Any:
        calls.append(len(conversations))
        return generate(model, tokenizer, conversations, *rest, **more)

    monkeypatch.setattr("rewriter.evaluation.writing.generate", counting)
    return calls


def test_rewrites_are_generated_once_for_all_backends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(monkeypatch)
    words = ["--backends", "lexical,custom", "--retrievers.custom.path", "tests.own_engines:Engine"]
    result = evaluated(tmp_path, "--systems", "untrained", *words)
    assert calls == [2]
    assert list(tiny.read(result / "result.json")) == ["lexical", "custom"]
    searched = {r.text for r in read_records(result / "records.jsonl") if r.system != "raw"}
    assert len(searched) <= 2


def test_what_is_finished_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the middle of the third pair; the two before it are not searched again."""
    calls, searches = counted(monkeypatch), []
    search = LexicalRetriever._search

    def dying(self: LexicalRetriever, queries: list[str], k: int) -> Any:
        searches.append(queries)
        if len(searches) == 3:
            raise KeyboardInterrupt
        return search(self, queries, k)

    monkeypatch.setattr(LexicalRetriever, "_search", dying)
    words = ["--systems", "raw,reference,untrained"]
    with pytest.raises(SystemExit) as end:
        evaluated(tmp_path, *words)
    assert end.value.code == 130
    assert not (tmp_path / "result" / "records.jsonl").exists()
    evaluated(tmp_path, *words)
    assert len(searches) == 4
    assert calls == [2]  # the completions were on the disk
    assert not (tmp_path / "result" / "parts").exists()
    first = (tmp_path / "result" / "records.jsonl").read_bytes()
    evaluated(tmp_path, *words)
    assert (len(searches), calls) == (4, [2])
    assert (tmp_path / "result" / "records.jsonl").read_bytes() == first
    # Another depth is another result.
    evaluated(tmp_path, *words, "--evaluation.depth", "50")
    assert len(searches) == 7


def test_samples_have_a_spread_and_headroom(tmp_path: Path) -> None:
    words = ["--systems", "untrained", "--split", "train"]
    result = evaluated(tmp_path, *words, evaluation={"samples": 4})
    (record, *_) = rows = [r for r in read_records(result / "records.jsonl") if r.samples]
    assert len(rows) == 6
    assert [len(row.samples) for row in rows] == [4] * 6
    assert len({sample.rewrite for row in rows for sample in row.samples}) > 4
    mean = sum(sample.metrics["ndcg@3"] for sample in record.samples) / 4
    assert record.metrics["ndcg@3"] == close(mean)
    summary = tiny.read(result / "result.json")["lexical"]["untrained"]
    assert summary["samples"] == 4
    assert summary["spread"]["ndcg@3"] > 0
    search = tiny.read(result / "diagnostics.json")["search"]["lexical"]
    assert search["untrained"]["samples"] == 4
    assert search["untrained"]["headroom"] >= search["untrained"]["mean"]
    assert search["raw"] == {
        "samples": 1,
        "mean": close(search["raw"]["headroom"]),
        "headroom": close(search["raw"]["mean"]),
        "always_hit": 1,
        "never_hit": 0,
    }
    assert (result / "runs" / "lexical.untrained.sample4.trec").is_file()
    other_place = ["--output", str(tmp_path / "again")]
    evaluated(tmp_path, *words, *other_place, evaluation={"samples": 4})
    one, other = (
        [r.samples for r in read_records(folder / "records.jsonl")]
        for folder in (result, tmp_path / "again")
    )
    assert one == other  # the same seed draws the same


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


def test_a_result_is_not_replaced_by_that_of_another_split(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = evaluated(tmp_path, "--systems", "raw")
    before = (result / "records.jsonl").read_bytes()
    judged = tmp_path / "judged.json"
    judged.write_text('{"q8": {"d7": 1}}')
    for words, said in (
        (["--split", "validation"], "holds a result with split 'test', this one has 'validation'"),
        (["--qrels", str(judged)], "holds a result with judged_by 'split'"),
    ):
        with pytest.raises(SystemExit):
            evaluated(tmp_path, "--systems", "raw", *words)
        err = capsys.readouterr().err
        assert said in err
        assert "choose another folder with --output" in err
    assert (result / "records.jsonl").read_bytes() == before


def test_systems_that_are_not_asked_for_again_go_with_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = evaluated(tmp_path, "--systems", "raw,reference,question", "--mteb")
    evaluated(tmp_path, "--systems", "raw,question")
    assert "held lexical.reference too" in capsys.readouterr().err
    assert {path.name for path in (result / "runs").iterdir()} == {
        "lexical.raw.trec",
        "lexical.question.trec",
    }
    assert not list(result.glob("mteb/*"))


@pytest.mark.parametrize("name", ["facts.json", "records.jsonl"])
def test_a_damaged_result_is_evaluated_again(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = evaluated(tmp_path, "--systems", "raw")
    before = (result / "records.jsonl").read_bytes()
    (result / name).write_text("{\n")
    evaluated(tmp_path, "--systems", "raw")
    err = capsys.readouterr().err
    assert f"{result / name}" in err
    assert "all of it is evaluated again" in err
    assert (result / "records.jsonl").read_bytes() == before


def test_a_damaged_completion_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = evaluated(tmp_path, "--systems", "untrained")
    (path,) = (result / "cache").iterdir()
    lines = path.read_text().splitlines()
    for damage in ("{", "[]", '{"query": "alpha"}'):
        path.write_text("\n".join([*lines[:-1], damage]) + "\n")
        with pytest.raises(SystemExit):
            evaluated(tmp_path, "--systems", "untrained")
        assert f"error: {path}:{len(lines)}: " in capsys.readouterr().err


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


def test_pages_reach_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny documents as rendered pages, without a page model."""
    style = PageSettings(source="text")
    monkeypatch.setattr("rewriter.evaluation.export.page_settings", lambda *_: style)
    result = evaluated(tmp_path, "--systems", "raw,reference")
    documents = {row["id"]: row for row in tiny.lines(result / "documents.jsonl")}
    assert (result / documents["d8"]["image"]).is_file()
    page = write_report(result).read_text(encoding="utf-8")
    assert "Pages are shown small for the 2 queries" in page
    monkeypatch.setattr("rewriter.evaluation.export.page_settings", lambda *_: None)
    evaluated(tmp_path, "--systems", "raw,reference")
    assert not (result / "pages").exists()


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
