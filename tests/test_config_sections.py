"""The configuration: faults that a section finds, some of them when it is used."""

from pathlib import Path

import pytest

from rewriter.config import Config, ConfigError, load
from rewriter.config.collection import open_collection
from tests.config_files import BASE, fault

# -- backends, the reward, the collection ---------------------------------------------------------


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


@pytest.mark.parametrize(
    ("one", "other"), [("validation", "test"), ("train", "test"), ("train", "validation")]
)
def test_a_split_has_one_use(tmp_path: Path, one: str, other: str) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(BASE)
    with pytest.raises(ConfigError, match=rf"{one} and {other} are both 'same'"):
        load(path, [f"--collection.{one}", "same", f"--collection.{other}", "same"])


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
