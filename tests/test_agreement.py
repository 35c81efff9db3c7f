"""Two annotators: figures worked out by hand, files, the command."""

import json
from pathlib import Path

import pytest

from retrievers.identity import CollectionError, EmptyCollectionError, MissingFileError
from retrievers.loaders.conflicts import read_settled, write_conflicts
from retrievers.loaders.judgements import read_qrels, write_qrels
from rewards.agreement import AgreementError, Conflict, agreement, merge
from rewriter import cli

close = pytest.approx

# Ten pairs that both judged: the first says 2, 2, 2, 2, 1, 1, 1, 0, 0, 0, the second
#                                            2, 2, 2, 1, 1, 1, 0, 0, 0, 2.
FIRST = {"q1": dict.fromkeys("abcd", 2.0), "q2": {"a": 1.0, "b": 1.0, "c": 1.0}}
FIRST["q3"] = {"a": 0.0, "b": 0.0, "c": 0.0}
SECOND = {"q1": {"a": 2.0, "b": 2.0, "c": 2.0, "d": 1.0}, "q2": {"a": 1.0, "b": 1.0, "c": 0.0}}
SECOND["q3"] = {"a": 0.0, "b": 0.0, "c": 2.0}


def test_the_figures() -> None:
    found = agreement(FIRST, SECOND)
    assert (found.n, found.raw, found.reached) == (10, 0.7, False)
    # Shares 0, 1, 2: first .3, .3, .4, second .3, .3, .4. By chance they agree on
    # .09 + .09 + .16 = .34: (.7 - .34) / (1 - .34).
    assert found.kappa == close(0.36 / 0.66)
    # Disagreement by distance: (1 + 1 + 2) / 10 = .4; by chance 1 × 2 × (.3 × .3) + 1 × 2 × (.3 ×
    # .4) + 2 × 2 × (.3 × .4) = .18 + .24 + .48 = .9.
    assert found.linear == close(1 - 0.4 / 0.9)
    # By its square: (1 + 1 + 4) / 10 = .6; by chance .18 + .24 + .96 = 1.38.
    assert found.quadratic == close(1 - 0.6 / 1.38)
    assert found.conflicts == (
        Conflict("q1", "d", 2.0, 1.0),
        Conflict("q2", "c", 1.0, 0.0),
        Conflict("q3", "c", 0.0, 2.0),
    )


def test_full_agreement_and_one_grade_throughout() -> None:
    found = agreement(FIRST, FIRST)
    assert (found.raw, found.kappa, found.linear, found.quadratic) == (1.0, 1.0, 1.0, 1.0)
    assert found.reached
    same = agreement({"q": {"a": 1.0, "b": 1.0}}, {"q": {"a": 1.0, "b": 1.0}})
    assert (same.raw, same.kappa) == (1.0, None)  # chance alone would agree as well


def test_the_bar_is_reached_at_85_percent() -> None:
    grades = {f"d{n}": 1.0 for n in range(20)}
    for wrong, reached in ((3, True), (4, False)):
        other = grades | {f"d{n}": 0.0 for n in range(wrong)}
        assert agreement({"q": grades}, {"q": other}).reached == reached


def test_pairs_of_one_annotator_are_to_be_settled_too() -> None:
    found = agreement({"q": {"a": 1.0, "b": 2.0}}, {"q": {"a": 1.0, "c": 0.0}, "p": {"a": 1.0}})
    assert (found.n, found.only_first, found.only_second) == (1, 1, 2)
    assert found.conflicts == (
        Conflict("q", "b", 2.0, None),
        Conflict("q", "c", None, 0.0),
        Conflict("p", "a", None, 1.0),
    )
    with pytest.raises(AgreementError, match=r"no pair .* judged by both"):
        agreement({"q": {"a": 1.0}}, {"p": {"a": 1.0}})


def test_merged() -> None:
    with pytest.raises(AgreementError, match=r"3 conflicts are not settled.*'q1', document 'd'"):
        merge(FIRST, SECOND)
    settled = {"q1": {"d": 2.0, "a": 0.0}, "q2": {"c": 0.0}, "q3": {"c": 1.0}}
    merged = merge(FIRST, SECOND, settled)
    assert merged["q1"] == dict.fromkeys("abcd", 2.0)  # on "a" the two agree: theirs stands
    assert merged["q2"] == {"a": 1.0, "b": 1.0, "c": 0.0}
    assert merged["q3"] == {"a": 0.0, "b": 0.0, "c": 1.0}
    with pytest.raises(AgreementError, match=r"in neither set.*'q9'"):
        merge(FIRST, SECOND, settled | {"q9": {"a": 1.0}})


@pytest.mark.parametrize("name", ["a.json", "a.tsv", "a.trec", "a.qrels"])
def test_judgements_are_read_as_they_were_written(tmp_path: Path, name: str) -> None:
    write_qrels(FIRST, tmp_path / "new" / name)
    assert read_qrels(tmp_path / "new" / name) == FIRST
    (tmp_path / "new" / name).rename(tmp_path / "unnamed")
    assert read_qrels(tmp_path / "unnamed") == FIRST  # by what it looks like


def test_the_three_forms(tmp_path: Path) -> None:
    qrels = {"q001": {"page_012": 2.0, "page 13": 0.5}}
    write_qrels(qrels, tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text()) == {
        "q001": {"page_012": 2, "page 13": 0.5}
    }
    write_qrels(qrels, tmp_path / "a.tsv")
    assert (tmp_path / "a.tsv").read_text().splitlines() == [
        "query-id\tcorpus-id\tscore",
        "q001\tpage_012\t2",
        "q001\tpage 13\t0.5",
    ]
    with pytest.raises(CollectionError, match="TREC holds whole grades and ids without"):
        write_qrels(qrels, tmp_path / "a.trec")
    write_qrels({"q": {"d": -1.0}}, tmp_path / "a.trec")
    assert (tmp_path / "a.trec").read_text() == "q 0 d -1\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "[1]", "list; wanted"),
        ("a.json", '{"q": {"d": 1}', "no JSON"),
        ("a.json", '{"q": 1}', "query 'q' has 1"),
        ("a.json", '{"q": {"d": true}}', "grade True is not a finite number"),
        ("a.json", '{"q": {"d": 1, "d": 2}}', "'d' is given twice"),
        ("a.trec", "q 0 d", ":1: .* has 3 columns"),
        ("a.trec", "q 0 d 1\nq 0 d 2", ":2: .* were judged already"),
        ("a.trec", "q 0 d high", "score 'high' is not a finite number"),
        ("a.tsv", "q\td\t1", "wanted the header"),
    ],
)
def test_a_malformed_file_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(CollectionError, match=said) as caught:
        read_qrels(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_no_file_and_no_judgement(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        read_qrels(tmp_path / "a.json")
    (tmp_path / "a.json").write_text('{"q": {}}')
    with pytest.raises(EmptyCollectionError):
        read_qrels(tmp_path / "a.json")


def test_conflicts_are_filled_in_and_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "conflicts.tsv"
    write_conflicts([Conflict("q1", "d", 2.0, None), Conflict("q2", "c", 1.0, 0.5)], path)
    lines = path.read_text().splitlines()
    assert lines == [
        "query-id\tcorpus-id\tfirst\tsecond\tsettled",
        "q1\td\t2\t\t",
        "q2\tc\t1\t0.5\t",
    ]
    assert read_settled(path) == {}
    path.write_text("\n".join([*lines[:2], lines[2] + "1"]) + "\n")
    assert read_settled(path) == {"q2": {"c": 1.0}}
    path.write_text(lines[0] + "\nq1\td\t1\n")
    with pytest.raises(CollectionError, match=r":2: .* has 3 columns, wanted 5"):
        read_settled(path)
    path.write_text("\n".join([lines[0], lines[2] + "1", lines[2] + "2"]) + "\n")
    with pytest.raises(CollectionError, match=r":3: .*'c': settled as 2 here and as 1 before"):
        read_settled(path)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, conflicts, merged = (
        tmp_path / name for name in ("anna.json", "ben.tsv", "conflicts.tsv", "merged.trec")
    )
    write_qrels(FIRST, first)
    write_qrels(SECOND, second)
    words = ["agreement", str(first), str(second)]
    cli.main([*words, "--conflicts", str(conflicts)])
    out = capsys.readouterr().out
    assert "judged by both   10" in out
    assert "raw agreement    70.0%, the bar of 85% is missed" in out
    assert "Cohen's kappa    0.545" in out
    assert "conflicts        3, 3 not settled" in out
    with pytest.raises(SystemExit) as end:
        cli.main([*words, "--merged", str(merged)])
    assert end.value.code == 2
    assert "3 conflicts are not settled" in capsys.readouterr().err
    text = conflicts.read_text().splitlines()
    conflicts.write_text("\n".join([text[0], *(line + "1" for line in text[1:])]) + "\n")
    cli.main([*words, "--adjudicated", str(conflicts), "--merged", str(merged)])
    assert "conflicts        3, 0 not settled" in capsys.readouterr().out
    assert read_qrels(merged)["q3"] == {"a": 0.0, "b": 0.0, "c": 1.0}


def test_what_people_wrote_is_not_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, conflicts = (tmp_path / name for name in ("anna.json", "ben.tsv", "c.tsv"))
    write_qrels(FIRST, first)
    write_qrels(SECOND, second)
    words = ["agreement", str(first), str(second)]
    cli.main([*words, "--conflicts", str(conflicts)])
    cli.main([*words, "--conflicts", str(conflicts)])  # nothing is settled in it yet
    head, *lines = conflicts.read_text().splitlines()
    conflicts.write_text("\n".join([head, lines[0] + "1", *lines[1:]]) + "\n")
    capsys.readouterr()
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    settled = ["--adjudicated", str(conflicts)]
    for more, said in (
        (["--conflicts", str(conflicts)], "c.tsv: holds 1 settled grades, which would be lost"),
        ([*settled, "--conflicts", str(conflicts)], "is read, or written by another option"),
        (["--conflicts", str(first)], "is read, or written by another option"),
        (["--merged", str(second)], "is read, or written by another option"),
        (["--conflicts", str(tmp_path)], "cannot be a file there"),
        ([*settled, "--merged", str(first / "m.json")], "cannot be a file there"),
    ):
        with pytest.raises(SystemExit) as end:
            cli.main([*words, *more])
        assert end.value.code == 2
        assert said in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    cli.main([*words, *settled, "--conflicts", str(tmp_path / "left.tsv")])
    assert len((tmp_path / "left.tsv").read_text().splitlines()) == 3  # the heading, and two


def test_conflicts_do_not_replace_another_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, other = (tmp_path / name for name in ("anna.json", "ben.tsv", "test.tsv"))
    write_qrels(FIRST, first)
    write_qrels(SECOND, second)
    write_qrels(FIRST, other)
    with pytest.raises(SystemExit):
        cli.main(["agreement", str(first), str(second), "--conflicts", str(other)])
    assert "test.tsv: is there, and no file of conflicts" in capsys.readouterr().err
    assert read_qrels(other) == FIRST


def test_settled_pairs_of_other_queries_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / name for name in ("anna.json", "ben.json", "settled.json")]
    for path, judged in zip(paths, (FIRST, SECOND, {"q9": {"a": 1.0}}), strict=True):
        write_qrels(judged, path)
    with pytest.raises(SystemExit):
        cli.main(["agreement", *map(str, paths[:2]), "--adjudicated", str(paths[2])])
    assert "1 settled pairs are in neither" in capsys.readouterr().err
