"""The configuration: every fault is one line with its place, every shipped file is usable."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rewriter.config import Config, ConfigError, load
from rewriter.config.collection import open_collection
from rewriter.yaml_source import Source, dump, scalar

CONFIGS = sorted(
    path
    for path in (Path(__file__).parent.parent / "configs").glob("**/*.yaml")
    if path.parent.name != "ablations"  # grids: test_ablation_grid.py
)
BASE = "model:\n  name: x\nreward:\n  backends: lexical\n"  # four lines: further ones begin at 5


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my.yaml"
    path.write_text(BASE)
    return path


def fault(file: Path, added: str, *overrides: str) -> str:
    """The message for `BASE` with lines added, the folder's name left out."""
    file.write_text(BASE + added)
    with pytest.raises(ConfigError) as caught:
        load(file, overrides)
    return str(caught.value).replace(f"{file.parent}/", "")


# -- faults name file:line, the value, and what to do ---------------------------------------------


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


@pytest.mark.parametrize(
    ("added", "message"),
    [
        (
            "retrievers:\n  lexcial:\n    k1: 1\n",
            "my.yaml:6: `retrievers.lexcial`: no backend 'lexcial'; there are: ",
        ),
        (
            "retrievers:\n  lexical:\n    engine: rank-bm25\n    k_1: 1\n",
            "my.yaml:8: `retrievers.lexical.k_1` is not a setting; did you mean `k1`?",
        ),
        (
            "retrievers:\n  lexical:\n    analysis:\n      stemer: english\n",
            "my.yaml:8: `retrievers.lexical.analysis.stemer` is not a setting; "
            "did you mean `stemmer`?",
        ),
        (
            "retrievers:\n  lexical:\n    variant: bm25l\n",
            'my.yaml:6: `retrievers.lexical`: variant "bm25l" needs engine "bm25s"',
        ),
    ],
)
def test_fault_of_a_backend_names_its_own_line(file: Path, added: str, message: str) -> None:
    assert fault(file, added).startswith(message)


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("backends: lexcial", "4: `reward.backends`: no backend 'lexcial'; there are: "),
        ("backends: {lexcial: 1}", "4: `reward.backends.lexcial`: no backend 'lexcial'"),
        ("backends: [lexical, lexical]", "3: `reward`: backends ['lexical', 'lexical'] names"),
        ("backends: {lexical: {kk: 1}}", "4: `reward.backends.lexical.kk` is not a setting; did"),
        ("backends: {lexical: true}", "4: `reward.backends.lexical`: a boolean is no weight; give"),
        ("backends: {1: 2}", "4: `reward.backends.1` is no setting: keys are names (given: 1)"),
        ("kind: hits", "4: `reward.kind`: Input should be 'hit', 'ndcg', 'mrr', 'recall' or"),
    ],
)
def test_fault_of_the_reward(tmp_path: Path, reward: str, message: str) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(f"model:\n  name: x\nreward:\n  {reward}\n")
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:{message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("collection", "message"),
    [
        ("{loader: bier}", "`collection.loader`: no loader 'bier'; there are: beir, "),
        ("{loader: beir}", "`collection.options.folder` is missing; add it"),
        (
            "{loader: beir, options: {foldr: a, folder: b}}",
            "`collection.options.foldr` is not a setting; did you mean `folder`?",
        ),
        (
            "{loader: beir, options: {folder: 3}}",
            "`collection.options.folder`: Input should be a valid string (given: 3)",
        ),
    ],
)
def test_fault_of_a_loader_is_found_without_opening_it(
    file: Path, collection: str, message: str
) -> None:
    assert fault(file, f"collection: {collection}\n").startswith(f"my.yaml:5: {message}")
    assert fault(file, "", "--collection", collection).startswith(f"command line: {message}")


def test_missing_file_of_a_loader_is_named_when_opened(file: Path) -> None:
    file.write_text(BASE + "collection:\n  loader: beir\n  options:\n    folder: data/none\n")
    config = load(file)  # whoever only reads the configuration does not need the data
    with pytest.raises(
        ConfigError, match=r"my.yaml:8: `collection.options.folder`: 'data/none' is"
    ):
        open_collection(config)
    with pytest.raises(ConfigError, match=r"`collection\.options\.folder`: '/none'"):
        open_collection(load(file, ["--collection.options.folder", "/none"]))
    for folder in ("", "a\0b"):
        with pytest.raises(
            ConfigError, match=r"command line: `collection.options.folder`: .* no path"
        ):
            open_collection(load(file, ["--collection.options.folder", folder]))


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


# -- the trainer and lora sections, whose faults are found later ----------------------------------


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ("trainer:\n  seed: 1\n  learnin_rate: 1\n", "7: `trainer.learnin_rate` is not a field"),
        ("trainer:\n  max_steps: soon\n", "6: `trainer.max_steps`: Input should be a valid int"),
        ("trainer:\n  output_dir: a\n", "6: `trainer.output_dir` is decided by `output`"),
        ("trainer:\n  save_steps: 3\n  max_steps: 5\n", "6: `trainer.save_steps` is 3, but must"),
        ("trainer:\n  num_generations: 1\n", "6: `trainer.num_generations` is 1; it must be 2"),
        ("trainer:\n  num_generations: 3\n", "5: `trainer`: "),
    ],
)
def test_fault_of_the_trainer_names_its_line(file: Path, added: str, message: str) -> None:
    from rewriter.trainer_options import grpo_config

    if "save_steps" in added:
        added += "  gradient_accumulation_steps: 1\n  steps_per_generation: 2\n"
    file.write_text(BASE + added + "  use_cpu: true\n")
    with pytest.raises(ConfigError) as caught:
        grpo_config(load(file))
    assert str(caught.value).startswith(f"{file}:{message}")
    assert "\n" not in str(caught.value)


def test_fault_of_lora_names_its_line(file: Path) -> None:
    from rewriter.trainer_options import lora_config

    file.write_text(BASE + "lora:\n  rank: 8\n")
    with pytest.raises(ConfigError, match=r"my.yaml:6: `lora.rank` is not a field of LoraConfig"):
        lora_config(load(file))
    with pytest.raises(ConfigError, match=r"command line: `lora.r`: .* \(given: 'many'\)"):
        lora_config(load(file, ["--lora", "{r: many}"]))


def test_where_without_a_file_is_the_key_alone() -> None:
    config = Config.model_validate({"model": {"name": "x"}, "reward": {}})
    assert config.where("lora.r") == "`lora.r`"


# -- overrides ------------------------------------------------------------------------------------


def reward_of(file: Path, backends: str, *overrides: str) -> dict[str, Any]:
    file.write_text(f"model:\n  name: x\nreward:\n  backends: {backends}\n")
    backends = load(file, overrides).reward.backends
    return {name: one.model_dump() for name, one in backends.items()}


def test_reward_backends_are_opened_by_dotted_overrides(file: Path) -> None:
    full = {"kind": "ndcg", "k": 5, "gain": False, "weight": 1.0}
    override = ("--reward.backends.lexical.k", "5")
    assert reward_of(file, "lexical", *override) == {"lexical": full}
    assert reward_of(file, "[lexical]", *override) == {"lexical": full}
    assert reward_of(file, "null", *override) == {"lexical": full}
    assert reward_of(file, "{lexical: 0.5}", *override) == {"lexical": full | {"weight": 0.5}}
    assert reward_of(file, "{lexical: {k: 9}}", "--reward.backends", "lexical", *override) == {
        "lexical": full
    }


def test_a_saved_configuration_still_heeds_what_is_said_for_all_backends(
    file: Path, tmp_path: Path
) -> None:
    """With `kind` written out for each of them, `--reward.kind` would change nothing."""
    reward_of(file, "{lexical: {k: 9}, semantic: {weight: 0.5}}")
    saved = tmp_path / "saved.yaml"
    saved.write_text(load(file, ["--reward.kind", "rank"]).to_yaml())
    assert load(saved) == load(file, ["--reward.kind", "rank"])
    again = load(saved, ["--reward.kind", "hit", "--reward.k", "7"]).reward.backends
    assert [(one.kind, one.k, one.weight) for one in again.values()] == [
        ("hit", 9, 1.0),
        ("hit", 7, 0.5),
    ]


def test_short_form_of_a_backend_that_does_not_exist(file: Path) -> None:
    assert fault(file, "", "--reward.backends", "semantik").startswith(
        "command line: `reward.backends`: no backend 'semantik'; there are: "
    )


def test_later_override_counts(file: Path) -> None:
    assert load(file, ["--threads=1", "--threads=2"]).threads == 2
    whole = ["--alarms.length", "5", "--alarms", "{window: 3}"]
    assert load(file, whole).alarms.model_dump(exclude_unset=True) == {"window": 3}


def test_override_of_a_part_names_both_places(file: Path) -> None:
    message = fault(
        file, "retrievers:\n  lexical: {k1: 2}\n", "--retrievers.lexical.variant", "bm25l"
    )
    assert message.startswith("my.yaml:6 with --retrievers.lexical.variant: `retrievers.lexical`: ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["seed"], "command line: 'seed': expected an override such as"),
        (["--"], "command line: '--': expected an override"),
        (["--a..b", "1"], "command line: '--a..b': expected an override"),
        (["--output"], "command line: --output has no value; write --output VALUE"),
        (["--trainer.bf16", "--output", "a"], "command line: --trainer.bf16 has no value"),
        (["--model.name.x", "a"], "command line: --model.name.x: `model.name` is 'x', which holds"),
        (["--alarms.lenght", "3"], "command line: `alarms.lenght` is not a setting; did you mean"),
        (["--trainr.seed", "2"], "command line: `trainr` is not a setting; did you mean `trainer`"),
        (["--output", ""], "command line: `output`: is empty; give a folder"),
        (["--index_dir", ""], "command line: `index_dir`: is empty; give a folder"),
        (["--model.name", "package:"], "command line: `model.name`: names no model; give a hub id"),
        (["--model.name", ""], "command line: `model.name`: names no model; give a hub id"),
        (["--alarms", "{length: 1, length: 2}"], "command line:1: `length` is given twice"),
    ],
)
def test_fault_of_an_override(file: Path, words: list[str], message: str) -> None:
    assert fault(file, "", *words).startswith(message)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("5", 5),
        ("-1", -1),
        ("1_000", 1000),
        (".5", 0.5),
        (".inf", math.inf),
        ("010", "010"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", ""),
        ("''", ""),
        ("'5'", "5"),
        ("[raw, untrained]", ["raw", "untrained"]),
        ("{a: 1e3}", {"a": 1000.0}),
        ("Note: be short", "Note: be short"),
        ("- a", "- a"),
        ("a #1", "a #1"),
        ("{query", "{query"),
        ("@x", "@x"),
    ],
)
def test_scalar(text: str, value: Any) -> None:
    assert scalar(text) == value
    assert type(scalar(text)) is type(value)


# -- what is written reads back equal -------------------------------------------------------------


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_shipped_config_reads_back_equal(path: Path, tmp_path: Path) -> None:
    config = load(path)
    written = tmp_path / "config.yaml"
    written.write_text(config.to_yaml(), encoding="utf-8")
    assert load(written) == config
    assert load(written).to_yaml() == config.to_yaml()
    # Other readers of YAML see the same.
    assert yaml.safe_load(config.to_yaml()) == config.dump()


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_shipped_config_is_accepted_by_trl_and_peft(path: Path) -> None:
    from rewriter.trainer_options import grpo_config, lora_config

    config = load(path, ["--trainer.use_cpu", "true", "--trainer.report_to", "none"])
    options = grpo_config(config)
    assert options.max_steps == config.trainer.get("max_steps", -1)
    assert lora_config(config).r == config.lora.get("r", 8)


def test_configs_differ_where_their_settings_do(file: Path) -> None:
    assert load(file) == load(file)
    assert load(file) == load(file, ["--retrievers.lexical.k1", "1.5"])  # the default
    assert load(file) != load(file, ["--retrievers.lexical.k1", "1.6"])


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "1e5"]), PLAIN, max_size=3))
def test_dump_reads_back_equal(tmp_path_factory: pytest.TempPathFactory, values: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(dump(values), encoding="utf-8", newline="")
    assert Source(path).values == values


@pytest.mark.parametrize("text", ["1e5", "010", "1:30", "2024-01-01", "no", "0x1F", "~", "1_0"])
def test_texts_that_look_like_something_else_stay_texts(text: str) -> None:
    assert yaml.safe_load(dump({"a": text})) == {"a": text}
    assert scalar("{" + dump({"a": text}).strip() + "}") == {"a": text}


@pytest.mark.parametrize(
    ("one", "other"), [("validation", "test"), ("train", "test"), ("train", "validation")]
)
def test_a_split_has_one_use(tmp_path: Path, one: str, other: str) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(BASE)
    with pytest.raises(ConfigError, match=rf"{one} and {other} are both 'same'"):
        load(path, [f"--collection.{one}", "same", f"--collection.{other}", "same"])
