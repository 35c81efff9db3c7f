"""Generators: an HTTP service with faults, a model of our own, vLLM as far as its calls go."""

import sys
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from retrievers.base import MissingExtra
from retrievers.http.secrets import SecretError
from rewriter.synthesis.generators import Reply, Request, build_generator
from rewriter.synthesis.generators.openai import OpenAIGenerator, OpenAISettings
from rewriter.synthesis.generators.pace import Pace
from rewriter.synthesis.generators.vllm import VllmSettings
from tests.generation_server import GenerationServer, generating


def request(key: str = "k", text: str = "hello", seed: int = 5) -> Request:
    return Request(key, [{"role": "user", "content": text}], seed=seed)


@pytest.fixture
def server() -> Iterator[GenerationServer]:
    with generating(lambda body: f"re: {body['messages'][-1]['content']}") as found:
        yield found


def openai(server: GenerationServer, **options: Any) -> OpenAIGenerator:
    given = {"url": server.url, "model": "m", "backoff_s": 0.01, **options}
    return OpenAIGenerator(OpenAISettings.model_validate(given))


def one(server: GenerationServer, **options: Any) -> Reply:
    ((reply,),) = openai(server, **options).write([request()])
    return reply


# -- a service ------------------------------------------------------------------------------------


def test_a_request_and_its_answer(server: GenerationServer, monkeypatch: Any) -> None:
    monkeypatch.setenv("MY_KEY", "secret-1")
    reply = one(
        server, key_variable="MY_KEY", max_new_tokens=9, temperature=0.5, extra={"top_p": 0.9}
    )
    assert reply == Reply("k", "re: hello", False, 7, 3)
    assert server.bodies == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "hello"}],
            "max_tokens": 9,
            "temperature": 0.5,
            "seed": 5,
            "top_p": 0.9,
        }
    ]
    path, headers = server.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer secret-1"


def test_null_takes_a_key_out_of_the_request(server: GenerationServer) -> None:
    one(server, extra={"seed": None, "max_tokens": None, "max_completion_tokens": 4})
    assert set(server.bodies[0]) == {"model", "messages", "temperature", "max_completion_tokens"}


def test_the_key_comes_from_the_environment_only(
    server: GenerationServer, monkeypatch: Any
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(SecretError, match=r"synthesis\.generator.*MY_KEY is not set"):
        openai(server, key_variable="MY_KEY")
    with pytest.raises(ValueError, match="never the key"):
        openai(server, key_variable="sk-1234")


@pytest.mark.parametrize(
    "fault",
    [
        (500, {}, b"oops"),
        (429, {"Retry-After": "0"}, b"slow down"),
        (200, {}, b"{not json"),
        {"error": "no choices"},
        {"choices": []},
        {"choices": [{"message": {"content": 7}}]},
        [1, 2],
    ],
)
def test_what_may_pass_is_tried_again(server: GenerationServer, fault: Any) -> None:
    server.faults = [fault]
    assert one(server, retries=1).text == "re: hello"
    assert len(server.bodies) == 2


def test_retry_after_goes_before_the_backoff(server: GenerationServer) -> None:
    server.faults = [(429, {"Retry-After": "1"}, b"")]
    one(server, retries=1)
    assert server.times[1] - server.times[0] >= 1


def test_tries_end(server: GenerationServer) -> None:
    server.always = (503, {}, b"busy")
    reply = one(server, retries=2)
    assert (reply.text, reply.permanent) == (None, False)
    assert "503" in reply.failure
    assert len(server.bodies) == 3


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refusal_is_not_tried_again(server: GenerationServer, status: int) -> None:
    server.always = (status, {}, b"no such model")
    reply = one(server, retries=3)
    assert (reply.text, reply.permanent, len(server.bodies)) == (None, True, 1)
    assert "no such model" in reply.failure


def test_a_slow_answer_is_given_up(server: GenerationServer) -> None:
    server.always = 1.0
    reply = one(server, timeout_s=0.2, retries=0)
    assert "gave no answer within 0.2 s" in reply.failure


def test_an_answer_that_was_cut_off_says_so(server: GenerationServer) -> None:
    server.finish = "length"
    assert one(server).cut


def test_no_content_is_an_empty_answer(server: GenerationServer) -> None:
    server.always = {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]}
    assert one(server) == Reply("k", "", False, None, None)


def test_requests_run_at_once_and_no_more_are_taken_than_run(server: GenerationServer) -> None:
    server.always = 0.15
    taken: list[int] = []

    def requests() -> Iterator[Request]:
        for number in range(8):
            taken.append(number)
            yield request(str(number))

    replies = openai(server, concurrency=4).write(requests())
    first = next(replies)
    assert len(taken) == 4
    rest = [reply.key for batch in replies for reply in batch]
    assert sorted([reply.key for reply in first] + rest) == [str(n) for n in range(8)]
    assert 2 <= server.most_at_once <= 4


def test_calls_begin_at_the_set_pace(server: GenerationServer) -> None:
    generator = openai(server, requests_per_minute=600, concurrency=8)  # one in 0.1 s
    begun = time.monotonic()
    list(generator.write(request(str(number)) for number in range(4)))
    assert time.monotonic() - begun >= 0.3
    assert len(server.bodies) == 4


def test_further_tries_keep_the_pace_too(server: GenerationServer) -> None:
    server.faults = [(503, {}, b"busy")] * 2
    assert one(server, requests_per_minute=300, retries=2, backoff_s=0).text == "re: hello"
    assert server.times[2] - server.times[0] >= 0.35  # two intervals of 0.2 s


def test_tokens_that_are_no_number_are_not_counted(server: GenerationServer) -> None:
    message = {"message": {"content": "x"}, "finish_reason": "stop"}
    server.always = {"choices": [message], "usage": {"prompt_tokens": "7"}}
    assert one(server) == Reply("k", "x", False, None, None)


def test_no_limit_waits_for_nothing() -> None:
    begun = time.monotonic()
    pace = Pace(None)
    for _ in range(1000):
        pace.wait()
    assert time.monotonic() - begun < 5


def test_the_address_is_no_part_of_what_is_written() -> None:
    here = OpenAISettings(url="http://a/v1", model="m", concurrency=2)
    there = OpenAISettings(url="http://b/v1", model="m", key_variable="KEY")
    other = OpenAISettings(url="http://a/v1", model="m", temperature=0)
    assert here.identity() == there.identity() != other.identity()


# -- transformers ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    from tests.tiny import save_policy

    folder = save_policy(tmp_path_factory.mktemp("policy"))

    def build(**options: Any) -> Any:
        from rewriter.synthesis.generators.transformers import TransformersSettings

        given = {"model": str(folder), "dtype": "float32", "max_new_tokens": 8, **options}
        return build_generator("transformers", TransformersSettings.model_validate(given))

    return build


@pytest.mark.slow
def test_a_local_model_answers_in_batches(local: Callable[..., Any]) -> None:
    generator = local(batch_size=2)
    asked = [request(str(n), "alpha beta"[: 5 + n]) for n in range(3)]
    batches = list(generator.write(asked))
    assert [[reply.key for reply in batch] for batch in batches] == [["0", "1"], ["2"]]
    assert all(reply.text for batch in batches for reply in batch)
    assert all(0 < (reply.completion_tokens or 0) <= 8 for batch in batches for reply in batch)
    assert batches == list(local(batch_size=2).write(asked))


@pytest.mark.slow
def test_draws_follow_from_what_is_asked(local: Callable[..., Any]) -> None:
    import torch

    generator = local(temperature=1.5, batch_size=4)
    asked = [request(str(n), "alpha") for n in range(4)]
    torch.manual_seed(1)
    first = list(generator.write(asked))
    torch.manual_seed(2)
    assert list(generator.write(asked)) == first
    assert len({reply.text for reply in first[0]}) > 1


@pytest.mark.slow
def test_a_text_that_is_too_long_is_shortened_and_the_template_stays(
    local: Callable[..., Any],
) -> None:
    # Context 256, 8 for the answer: 248 for the prompt.
    generator = local()

    def build(text: str) -> list[dict[str, Any]]:
        return [{"role": "user", "content": f"alpha {text} omega </document>"}]

    long = "beta gamma " * 1500
    (message,) = generator.conversation(build, long)
    assert message["content"].startswith("alpha beta gamma beta")
    assert message["content"].endswith(" omega </document>")
    assert 240 <= generator._count([message]) <= 248
    assert generator.conversation(build, "beta") == build("beta")


# -- vLLM -----------------------------------------------------------------------------------------


def test_vllm_is_asked_for_when_it_is_missing(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises((MissingExtra, ModuleNotFoundError)):
        build_generator("vllm", VllmSettings(model="m"))


def test_what_vllm_is_handed(monkeypatch: Any) -> None:
    calls: list[Any] = []

    class LLM:
        def __init__(self, **options: Any) -> None:
            calls.append(options)

        def get_tokenizer(self) -> Any:
            def template(messages: Any, add_generation_prompt: bool) -> list[str]:
                return messages[0]["content"].split()  # type: ignore[no-any-return]

            return SimpleNamespace(apply_chat_template=template)

        def chat(self, conversations: Any, sampling: Any, **options: Any) -> list[Any]:
            calls.append((conversations, sampling, options))
            answer = SimpleNamespace(text="re", finish_reason="length", token_ids=[1, 2])
            return [
                SimpleNamespace(outputs=[answer], prompt_token_ids=[1, 2, 3]) for _ in conversations
            ]

    fake = SimpleNamespace(LLM=LLM, SamplingParams=lambda **options: options)
    monkeypatch.setitem(sys.modules, "vllm", fake)
    generator = build_generator(
        "vllm",
        VllmSettings(model="m", context=50, max_new_tokens=10, engine={"tensor_parallel_size": 2}),
    )
    assert calls.pop() == {"model": "m", "max_model_len": 50, "tensor_parallel_size": 2}
    assert list(generator.write([request()])) == [[Reply("k", "re", True, 3, 2)]]
    assert calls.pop() == (
        [[{"role": "user", "content": "hello"}]],
        [{"temperature": 0.7, "max_tokens": 10, "seed": 5}],
        {"chat_template_kwargs": None, "use_tqdm": False},
    )
    (message,) = generator.conversation(
        lambda text: [{"role": "user", "content": f"< {text} >"}], "word " * 100
    )
    assert message["content"].startswith("< word")
    assert message["content"].endswith("word >")
    assert len(message["content"].split()) <= 40
