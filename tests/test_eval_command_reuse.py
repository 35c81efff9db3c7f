"""`rlqr eval` on the tiny collection: what it takes over, does again, or leaves as it is."""

from pathlib import Path
from typing import Any

import pytest

from retrievers.lexical import LexicalRetriever
from rewriter import generation
from rewriter.records import read_records
from tests import tiny
from tests.eval_results import evaluated


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
