"""The configuration: every fault is one line with its place, the value, and what to do."""

from pathlib import Path

import pytest

from rewriter.config import ConfigError, load
from tests.config_files import fault


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ("ouput: runs/a\n", "my.yaml:5: `ouput` is not a setting; did you mean `output`?"),
        (
            "alarms:\n  length: many\n",
            "my.yaml:6: `alarms.length`: Input should be a valid integer, unable to parse string as"
            " an integer (given: 'many')",
        ),
        (
            "evaluation:\n  every: 0\n",
            "my.yaml:6: `evaluation.every`: Input should be greater than or equal to 1 (given: 0)",
        ),
        (
            "evaluation:\n  measures: ndcg@3\n",
            "my.yaml:6: `evaluation.measures`: Input should be a valid tuple; write [a, b] "
            "(given: 'ndcg@3')",
        ),
        (
            "evaluation:\n  systems: [rwa]\n",
            "my.yaml:6: `evaluation.systems`: no system 'rwa'; there are: raw, last_sentence, "
            "question, top_idf, reference, untrained, hyde, query2doc, keywords "
            "(given: ['rwa'])",
        ),
        (
            "prompt:\n  template: hello\n",
            "my.yaml:6: `prompt.template`: write {query} exactly once, where the query is to stand "
            "(given: 'hello')",
        ),
        (
            "prompt:\n  answer_tag: <answer>\n",
            "my.yaml:6: `prompt.answer_tag`: answer_tag is '<answer>'; give one word without "
            "brackets, such as \"answer\" (given: '<answer>')",
        ),
        (
            "prompt:\n  append_template: '{query} rewrite'\n",
            "my.yaml:6: `prompt.append_template`: write {rewrite} where the rewrite is to stand "
            "(given: '{query} rewrite')",
        ),
        (
            "prompt:\n  system: 'Rewrite {query}'\n",
            "my.yaml:6: `prompt.system`: holds {query}, which stands for it in `template` only; "
            "move it (given: 'Rewrite {query}')",
        ),
        (
            "prompt:\n  backends:\n    lexcial: keywords\n",
            "my.yaml:7: `prompt.backends.lexcial`: no backend 'lexcial'; there are: custom, http, "
            "hybrid, lexical, multimodal, semantic (given: 'lexcial')",
        ),
        (
            "prompt:\n  examples:\n    - {query: a, rewrite: b, backend: lexcial}\n",
            "my.yaml:7: `prompt.examples.0.backend`: no backend 'lexcial'; there are: custom, "
            "http, hybrid, lexical, multimodal, semantic (given: 'lexcial')",
        ),
        (
            "prompt:\n  examples:\n    - query: a\n",
            "my.yaml:7: `prompt.examples.0.rewrite` is missing; add it",
        ),
        (
            "trainer: 3\n",
            "my.yaml:5: `trainer`: Input should be a valid dictionary; write keys below it, or "
            "{a: 1} (given: 3)",
        ),
        (
            "output: null\n",
            "my.yaml:5: `output`: Input should be a valid string (given: None)",
        ),
        (
            "output: ''\n",
            "my.yaml:5: `output`: is empty; give a folder, such as runs/demo (given: '')",
        ),
        (
            'output: "a\\0b"\n',
            "my.yaml:5: `output`: holds a NUL byte, which no path can; remove it "
            "(given: 'a\\x00b')",
        ),
        (
            "1: 2\n",
            "my.yaml:5: `1` is no setting: keys are names (given: 1); correct or remove it",
        ),
        (
            "alarms:\n  1: 2\n",
            "my.yaml:6: `alarms.1` is no setting: keys are names (given: 1); correct or remove it",
        ),
        (
            "trainer:\n  1: 2\n",
            "my.yaml:6: `trainer.1` is no setting: keys are names (given: 1); correct or remove it",
        ),
        (
            "model:\n  name: y\n",
            "my.yaml:5: `model` is given twice (first on line 1); keep one",
        ),
    ],
)
def test_fault_of_the_file(file: Path, added: str, message: str) -> None:
    assert fault(file, added) == message


def test_every_fault_is_listed_once(file: Path) -> None:
    lines = fault(file, "threads: 0\nlabels: 1\n").splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["my.yaml:5", "my.yaml:6"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "my.yaml:1: `model` is missing; add it"),
        ("model:\n", "my.yaml:1: `model.name` is missing; add it"),
        ("- a\n", "my.yaml:1: expected sections such as `trainer:`, got ['a']"),
        ("a: 1\nb: [\n", "my.yaml:3: not valid YAML: "),
        ("a: &a\n  b: *a\n", "my.yaml: nested too deeply, or an alias that holds itself"),
        ("a: \ud800", "my.yaml: not UTF-8 "),
    ],
)
def test_fault_of_the_whole_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "my.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{tmp_path}/{message}")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none.yaml: no such file; give an existing one"):
        load(tmp_path / "none.yaml")
