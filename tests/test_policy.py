"""Loading a saved rewriter, and what tells one model from another."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from retrievers.models import ModelError
from rewriter import Rewriter
from rewriter.checkpoint import MANIFEST, CheckpointError, Manifest, attach, fingerprint
from rewriter.generation import Completion, Decoding
from rewriter.policy import load_model, load_tokenizer
from rewriter.prompt import Example, PromptSettings
from rewriter.records import Rewrite
from tests.tiny import WORDS, save_policy

PROMPT = PromptSettings(
    system="zeta", examples=(Example(query="beta", rewrite="eta"),), template="kappa {query}"
)
QUERIES = [" ".join(WORDS[: n % 7 + 1]) for n in range(20)] + ["iota", "unheard of"]
ADAPTER = "adapter_model.safetensors"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="module")
def saved(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved rewriter, as a finished run leaves it in `best/`."""
    folder = tmp_path_factory.mktemp("run") / "best"
    adapted(base).save_pretrained(folder)
    load_tokenizer(str(base)).save_pretrained(folder)
    manifest = {
        "format": 1,
        "base": {"name": str(base), "revision": None, "fingerprint": fingerprint(model(base))},
        "step": 20,
        "prompt": PROMPT.model_dump(mode="json"),
        "decoding": {"max_new_tokens": 12, "batch_size": 16, "chat_template_kwargs": None},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def copy(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "best"))


def model(base: Path, dtype: Any = torch.float32) -> Any:
    return AutoModelForCausalLM.from_pretrained(base, dtype=dtype)


def adapted(base: Path, **options: Any) -> Any:
    """The model with an adapter that changes what it writes."""
    settings = {"r": 4, "target_modules": "all-linear", "task_type": "CAUSAL_LM"} | options
    torch.manual_seed(1)
    wrapped = get_peft_model(model(base), LoraConfig(**settings))
    for name, weight in wrapped.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(weight, std=0.3)
    return wrapped


def save_other(base: Path, folder: Path) -> Path:
    """The same kind of model with other weights, the least different that has to be told apart."""
    shutil.copytree(base, folder)
    torch.manual_seed(2)
    nudged = model(base)
    with torch.no_grad():
        for weight in nudged.parameters():
            weight += 0.01 * weight.std() * torch.randn_like(weight)
    nudged.save_pretrained(folder)
    return folder


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    manifest = json.loads((folder / MANIFEST).read_text())
    change(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder


def test_it_asks_as_the_training_did(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rewriter = Rewriter.from_pretrained(saved, dtype="float32")
    asked: list[Any] = []

    def record(_m: Any, _t: Any, conversations: Sequence[Any], decoding: Decoding) -> Any:
        asked.append((list(conversations), decoding))
        return [Completion("Query: alpha", False) for _ in conversations]

    monkeypatch.setattr("rewriter.policy.generate", record)
    assert rewriter.rewrite(["beta gamma"]) == ["alpha"]  # the label went: the same parser
    assert asked == [([PROMPT.messages("beta gamma")], Decoding(12, 16, None, None))]


def test_it_writes_what_the_adapted_model_wrote(saved: Path, base: Path) -> None:
    """Through adapter files and manifest, and with the adapter on."""
    loaded = Rewriter.from_pretrained(saved, dtype="float32")
    decoding = Decoding(max_new_tokens=12)
    tokenizer = load_tokenizer(str(base))
    trained = Rewriter(adapted(base), tokenizer, PROMPT, decoding)
    untrained = Rewriter(model(base), tokenizer, PROMPT, decoding)
    texts = loaded.rewrite(QUERIES)
    assert texts == trained.rewrite(QUERIES)
    assert texts != untrained.rewrite(QUERIES)


def test_a_batch_of_1_writes_what_a_batch_of_16_writes_and_keeps_the_order(copy: Path) -> None:
    many = Rewriter.from_pretrained(copy, dtype="float32").rewrite(QUERIES)
    edit(copy, lambda manifest: manifest["decoding"].update(batch_size=1))
    rewriter = Rewriter.from_pretrained(copy, dtype="float32")
    assert rewriter.decoding.batch_size == 1
    assert rewriter.rewrite(QUERIES) == many
    assert [rewriter.rewrite([query])[0] for query in QUERIES] == many
    assert rewriter.rewrite(QUERIES[::-1]) == many[::-1]
    assert len(set(many)) > 5


def test_a_failure_falls_back_to_the_raw_query(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewriter = Rewriter.from_pretrained(saved)
    rewriter.prompt = PromptSettings(mode="append")
    monkeypatch.setattr(
        "rewriter.policy.generate",
        lambda *_: [Completion("<think>budget", True), Completion("office", False)],
    )
    queries = ["seoul budget", "busan"]
    assert [made.failure for made in rewriter.rewrites(queries)] == ["unclosed_think", None]
    assert rewriter.rewrite(queries) == ["seoul budget", "office"]
    assert rewriter.search_texts(queries) == ["seoul budget", "busan office"]
    rewriter.prompt = PromptSettings(
        mode="append", append_template="{rewrite} {query} {rewrite}, {query}"
    )
    assert rewriter.search_texts(queries) == ["seoul budget", "office busan office, busan"]


def test_a_blank_query_is_not_put_to_the_model(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewriter = Rewriter.from_pretrained(saved)
    asked: list[Any] = []

    def record(_m: Any, _t: Any, conversations: Sequence[Any], _d: Decoding) -> Any:
        asked.extend(conversations)
        return [Completion("alpha", False) for _ in conversations]

    monkeypatch.setattr("rewriter.policy.generate", record)
    queries = ["", "beta", " \n"]
    assert rewriter.rewrites(queries) == [
        Rewrite(None, "blank"),
        Rewrite("alpha"),
        Rewrite(None, "blank"),
    ]
    assert asked == [PROMPT.messages("beta")]
    assert rewriter.rewrite(queries) == rewriter.search_texts(queries) == ["", "alpha", " \n"]


def test_a_query_longer_than_the_context_stays_as_it_is(
    saved: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rewriter = Rewriter.from_pretrained(saved)  # 256 tokens
    queries = ["beta " * 300, "beta"]
    made = rewriter.rewrites(queries)
    assert made[0] == Rewrite(None, "too_long")
    assert made[1].failure != "too_long"
    assert rewriter.rewrite(queries)[0] == queries[0]
    assert "1 of 2 prompts are longer than 244 tokens" in caplog.text


def test_one_string_is_refused_and_an_empty_list_is_not(saved: Path) -> None:
    rewriter = Rewriter.from_pretrained(saved)
    for ask in (rewriter.rewrite, rewriter.rewrites, rewriter.search_texts):
        with pytest.raises(TypeError, match="a list of queries"):
            ask("seoul budget")
        assert ask([]) == []


def test_another_base_model_is_refused(saved: Path, tmp_path: Path, base: Path) -> None:
    other = save_other(base, tmp_path / "other")
    with pytest.raises(CheckpointError, match=r"trained on .* is another model .* base="):
        Rewriter.from_pretrained(saved, base=str(other))
    moved = shutil.copytree(base, tmp_path / "moved")
    assert Rewriter.from_pretrained(saved, base=str(moved), dtype="float32").rewrite(["iota"])


def test_a_moved_base_model_is_named(copy: Path) -> None:
    edit(copy, lambda manifest: manifest["base"].update(name="/nowhere/model"))
    with pytest.raises(ModelError, match=r"'/nowhere/model': no such folder"):
        Rewriter.from_pretrained(copy)


def test_missing_and_unknown_adapter_keys_are_refused(copy: Path) -> None:
    weights = load_file(copy / ADAPTER)
    first = min(weights)
    save_file({key: value for key, value in weights.items() if key != first}, copy / ADAPTER)
    with pytest.raises(CheckpointError, match=f"1 adapter keys missing .*{first}"):
        Rewriter.from_pretrained(copy)
    renamed = first.replace("layers.0", "layers.7")
    save_file({**weights, renamed: weights[first].clone()}, copy / ADAPTER)
    with pytest.raises(CheckpointError, match=f"1 unknown .*{renamed}"):
        Rewriter.from_pretrained(copy)


def test_an_adapter_of_another_shape_is_refused(copy: Path) -> None:
    weights = load_file(copy / ADAPTER)
    first = min(weights)
    save_file({**weights, first: torch.zeros(2, 2)}, copy / ADAPTER)
    with pytest.raises(CheckpointError, match="does not fit"):
        Rewriter.from_pretrained(copy)


def test_a_cut_adapter_file_is_refused(copy: Path) -> None:
    (copy / ADAPTER).write_bytes((copy / ADAPTER).read_bytes()[:100])
    with pytest.raises(CheckpointError, match="damaged"):
        Rewriter.from_pretrained(copy)


@pytest.mark.parametrize("file", [ADAPTER, "adapter_config.json", MANIFEST])
def test_a_missing_file_is_named(copy: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(copy.parent)  # "best" could be a hub id; it must not be asked for
    (copy / file).unlink()
    with pytest.raises(CheckpointError, match=f"no {file}; give"):
        Rewriter.from_pretrained("best")


def test_a_file_instead_of_a_folder(saved: Path) -> None:
    with pytest.raises(CheckpointError, match="no manifest"):
        Rewriter.from_pretrained(saved / MANIFEST)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not JSON"),
        ('{"format": 1, "base', "not JSON"),
        ("[]", "valid dictionary"),
        ("{}", "`base`: Field required"),
        ('{"format": 2}', "`format`: Input should be 1"),
        ('{"format": 1, "base": "a/b"}', "`base`: "),
        ('{"format": 1, "base": {"name": "a/b"}}', "`base.fingerprint`: Field required"),
    ],
)
def test_a_damaged_manifest(copy: Path, text: str, told: str) -> None:
    (copy / MANIFEST).write_text(text)
    with pytest.raises(CheckpointError, match=told) as caught:
        Rewriter.from_pretrained(copy)
    assert str(copy / MANIFEST) in str(caught.value)


def test_damaged_sections_of_a_manifest(copy: Path) -> None:
    edit(copy, lambda manifest: manifest["prompt"].update(template="no place"))
    with pytest.raises(CheckpointError, match=r"`prompt.template`.*\{query\}"):
        Rewriter.from_pretrained(copy)
    edit(copy, lambda manifest: manifest.update(prompt={}, decoding={"batch_size": 4}))
    with pytest.raises(CheckpointError, match=r"`decoding.max_new_tokens`"):
        Rewriter.from_pretrained(copy)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"peft_type": "NONE"}', '{"peft_type": []}'])
def test_a_damaged_adapter_config_is_named(copy: Path, text: str) -> None:
    (copy / "adapter_config.json").write_text(text)
    with pytest.raises(CheckpointError, match="the file is damaged") as caught:
        Rewriter.from_pretrained(copy)
    assert str(caught.value).startswith(f"{copy / 'adapter_config.json'}: ")


@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_damaged_tokenizer_is_named(copy: Path, file: str, text: str) -> None:
    (copy / file).write_text(text)
    with pytest.raises(CheckpointError, match="the file is damaged") as caught:
        Rewriter.from_pretrained(copy)
    assert str(caught.value).startswith(f"{copy / file}: ")


@pytest.mark.parametrize("text", ["{}", '{"added_tokens": [], "model": {}}'])
def test_a_tokenizer_without_its_model_is_damaged(copy: Path, text: str) -> None:
    (copy / "tokenizer.json").write_text(text)
    with pytest.raises(CheckpointError, match="the file is damaged"):
        Rewriter.from_pretrained(copy)
    with pytest.raises(ModelError, match="no tokenizer that can be read"):
        load_tokenizer(str(copy))


def test_further_keys_of_a_manifest_are_kept(saved: Path) -> None:
    manifest = Manifest.model_validate_json((saved / MANIFEST).read_text())
    assert manifest.model_dump()["step"] == 20


def test_a_fingerprint_does_not_depend_on_the_dtype(base: Path) -> None:
    found = {fingerprint(model(base, dtype)) for dtype in (torch.float32, torch.bfloat16)}
    found.add(fingerprint(model(base, torch.float16)))
    assert len(found) == 1


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dora": True},
        {"target_modules": ["q_proj", "embed_tokens"]},
        {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
        {"target_modules": ["q_proj"], "trainable_token_indices": [3, 4]},
    ],
    ids=["all-linear", "dora", "embedding", "modules-to-save", "tokens"],
)
def test_a_fingerprint_does_not_depend_on_an_adapter(base: Path, options: dict[str, Any]) -> None:
    assert fingerprint(adapted(base, **options)) == fingerprint(model(base))


def test_a_fingerprint_tells_models_apart(base: Path, tmp_path: Path) -> None:
    other = save_other(base, tmp_path / "other")
    assert fingerprint(model(other)) != fingerprint(model(base))


def test_packed_weights_have_a_fingerprint_by_their_values() -> None:
    def packed(last: int) -> Any:
        layer = torch.nn.Module()
        values = torch.tensor([[1, 2, last]], dtype=torch.uint8)
        layer.weight = torch.nn.Parameter(values, requires_grad=False)
        return layer

    assert fingerprint(packed(3)) == fingerprint(packed(3)) != fingerprint(packed(4))


@pytest.mark.parametrize(
    "options",
    [{}, {"use_dora": True}, {"target_modules": ["q_proj", "embed_tokens"]}],
    ids=["all-linear", "dora", "embedding"],
)
@pytest.mark.filterwarnings("ignore:Setting `save_embedding_layers`")
def test_adapters_of_other_kinds_come_back(
    base: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    before = adapted(base, **options)
    before.save_pretrained(tmp_path)
    after = attach(model(base), tmp_path, trainable=True)
    tokens = torch.arange(6)[None]
    torch.testing.assert_close(after(tokens).logits, before(tokens).logits)
    assert any(weight.requires_grad for weight in after.parameters())


def test_a_base_model_with_missing_weights_is_refused(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path, dirs_exist_ok=True)
    weights = load_file(tmp_path / "model.safetensors")
    weights.pop("model.norm.weight")
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"1 weights are missing .*model\.norm\.weight"):
        load_model(str(tmp_path), None, "float32")


def test_a_pickle_is_not_read(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path, dirs_exist_ok=True)
    torch.save(load_file(tmp_path / "model.safetensors"), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="safetensors"):
        load_model(str(tmp_path), None, "float32")


def test_a_model_without_a_chat_template_is_refused(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path, dirs_exist_ok=True)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match="no chat template"):
        load_model(str(tmp_path), None, "float32")


def test_a_tokenizer_without_an_end_is_refused(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "tokenizer_config.json"
    options = json.loads(file.read_text())
    file.write_text(json.dumps({**options, "eos_token": None, "pad_token": None}))
    with pytest.raises(ModelError, match="neither eos_token nor pad_token"):
        load_tokenizer(str(tmp_path))


def test_a_folder_without_a_tokenizer_is_one_whole_line(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path, dirs_exist_ok=True)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ModelError) as caught:
        load_tokenizer(str(tmp_path))
    said = str(caught.value)
    assert said.startswith(f"model {str(tmp_path)!r}: no tokenizer that can be read; save one in")
    assert "\n" not in said
    assert said.endswith("to convert a slow tokenizer to a fast one.)")  # nothing cut off


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "model '' is no name; give a hub id, a folder, or package:NAME"),
        ("package:", "model 'package:' names no package; write package:NAME"),
    ],
)
def test_names_that_are_none(saved: Path, name: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        load_tokenizer(name)
    with pytest.raises(ModelError, match=said):
        Rewriter.from_pretrained(saved, base=name)


def test_a_folder_that_holds_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_model(str(tmp_path), None, "auto")
    with pytest.raises(ModelError, match="no tokenizer"):
        load_tokenizer(str(tmp_path))
