"""The reward that searches: what a completion earns, and what a failing backend must not do."""

import hashlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from inspect import iscoroutinefunction
from math import log2
from threading import Barrier, Thread, current_thread
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from retrievers.base import Hit, PermanentSearchError, Retriever, SearchError
from retrievers.lexical import LexicalRetriever
from rewards import RewardPanel, RewardSettings, SearchReward, StepScores
from rewards.search import (
    OtherRankFailed,
    RewardFunctionResultError,
    RewardInputError,
    TooManyFailures,
    ranks,
)

Values = list[float | None]


class Fake(Retriever):
    """Text "r2" finds the gold document at rank 2; other texts find it nowhere.

    bad: texts that raise, alone or in a batch. broken: number of coming searches that raise.
    """

    fingerprint = "fake"
    size = 1000

    def __init__(self, backend: str = "lexical", bad: Sequence[str] = (), broken: int = 0) -> None:
        super().__init__()
        self.backend = backend
        self.bad = set(bad)
        self.broken = broken
        self.error: Exception = SearchError("down")
        self.calls: list[list[str]] = []

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        self.calls.append(queries)
        self.broken -= 1
        if self.broken >= 0 or self.bad & set(queries):
            raise self.error
        return [self._ranking(query, k) for query in queries]

    def _ranking(self, query: str, k: int) -> list[Hit]:
        rank = int(query[1:]) if query[:1] == "r" and query[1:].isdigit() else k + 1
        ids = [f"other-{n}" for n in range(1, k + 1)]
        return [Hit("gold" if n == rank else ids[n - 1], -float(n)) for n in range(1, k + 1)]


def panel(
    *retrievers: Retriever, on_step: Any = None, drop_query_id: bool = False, **given: Any
) -> RewardPanel:
    named = {one.backend: one for one in retrievers}
    values = {"backends": list(named), "failure_penalty": 0.0, "backoff_s": 0.0} | given
    settings = RewardSettings.model_validate(values)
    return RewardPanel(named, settings, on_step=on_step, drop_query_id=drop_query_id)


def columns(count: int, **given: Any) -> dict[str, Any]:
    return {
        "query_id": ["q1"] * count,
        "query": ["raw"] * count,
        "relevant": [[{"id": "gold", "grade": 1.0}]] * count,
    } | given


def rewards(panel: RewardPanel, completions: Sequence[Any], **given: Any) -> dict[str, Values]:
    """All functions' values, called one after the other as TRL does."""
    kwargs = columns(len(completions)) | given
    return {
        function.__name__: function(completions=completions, **kwargs)
        for function in panel.functions
    }


def advantages(columns: Mapping[str, Values], weights: Sequence[float]) -> list[float]:
    """TRL 1.16's for one group: None is 0 in the sum, but a row of Nones only is left out."""
    rows = list(zip(*columns.values(), strict=True))
    sums = [
        None
        if all(value is None for value in row)
        else sum(w * (value or 0.0) for w, value in zip(weights, row, strict=True))
        for row in rows
    ]
    known = [one for one in sums if one is not None]
    mean = sum(known) / len(known)
    std = (sum((one - mean) ** 2 for one in known) / (len(known) - 1)) ** 0.5
    return [0.0 if one is None else (one - mean) / (std + 1e-4) for one in sums]


class Log(dict[str, float]):
    """Stands for TRL's log_metric."""

    def __call__(self, name: str, value: float) -> None:
        self[name] = value


# --- what a completion earns


@pytest.mark.parametrize(
    ("kind", "earned"),
    [
        ("hit", [1.0, 1.0, 1.0, 0.0, 0.0]),
        ("ndcg", [1.0, 0.63093, 0.5, 0.0, 0.0]),
        ("mrr", [1.0, 1 / 2, 1 / 3, 0.0, 0.0]),
        ("recall", [1.0, 1.0, 1.0, 0.0, 0.0]),
        ("rank", [1.0, 0.63093, 0.5, 1 / log2(5), 0.0]),  # rank 4 is within its 100
    ],
)
def test_the_kinds(kind: str, earned: list[float]) -> None:
    (values,) = rewards(panel(Fake(), kind=kind), ["r1", "r2", "r3", "r4", "no"]).values()
    assert values == pytest.approx(earned, abs=1e-5)


def test_rank_ends_at_its_depth_and_takes_the_best_ranked_document() -> None:
    both = [[{"id": "gold", "grade": 1.0}, {"id": "other-4", "grade": 3.0}]] * 3
    found = rewards(panel(Fake(), kind="rank", depth_rank=6), ["r2", "r6", "r7"], relevant=both)
    # ranks 2, then 4 (the graded one comes first), then 4
    assert found["lexical_rank@6"] == pytest.approx([1 / log2(3), 1 / log2(5), 1 / log2(5)])
    one = rewards(panel(Fake(), kind="rank", depth_rank=6), ["r6", "r7"])
    assert one["lexical_rank@6"] == pytest.approx([1 / log2(7), 0.0])


def test_advantages_of_ranks_1_2_3_and_a_miss() -> None:
    found = rewards(panel(Fake(), kind="mrr"), ["r1", "r2", "r3", "no"])
    assert advantages(found, [1.0]) == pytest.approx([1.2997, 0.1, -0.2999, -1.0997], abs=1e-4)


def test_grades_count() -> None:
    # grades 1 at rank 2 and 2 nowhere: (1 / log2 3) / (2 + 1 / log2 3) = .23981
    relevant = [[{"id": "gold", "grade": 1.0}, {"id": "absent", "grade": 2.0}]]
    assert rewards(panel(Fake()), ["r2"], relevant=relevant)["lexical_ndcg@3"] == pytest.approx(
        [0.23981], abs=1e-5
    )


def test_a_string_and_a_message_list_earn_the_same() -> None:
    texts = ["r1", "r2", "no", "<think>r1"]
    lists = [[{"role": "assistant", "content": text}] for text in texts]
    assert rewards(panel(Fake()), texts) == rewards(panel(Fake()), lists)
    assert rewards(panel(Fake()), texts)["lexical_ndcg@3"][0] == 1.0


def test_what_is_scored_is_the_parsed_rewrite() -> None:
    fake = Fake()
    completions = ["let me see r3</think>\nr1", 'Query: "r2"', "```\nr3\n```"]
    (values,) = rewards(panel(fake), completions).values()
    assert values == pytest.approx([1.0, 0.63093, 0.5], abs=1e-5)
    assert fake.calls == [["r1", "r2", "r3"]]


def test_an_unparsed_completion_earns_0_is_counted_and_not_sent() -> None:
    fake, log = Fake(), Log()
    (values,) = rewards(panel(fake), ["r1", "<think>r1", ""], log_metric=log).values()
    assert values == [1.0, 0.0, 0.0]
    assert fake.calls == [["r1"]]
    assert (log["parse/unclosed_think"], log["parse/empty"], log["parse/no_answer_tag"]) == (
        1,
        1,
        0,
    )
    assert log["search/failures"] == 0


def test_constant_rewards_are_advantages_of_0_and_counted() -> None:
    log = Log()
    for text, all_hit in [("r2", 1.0), ("no", 0.0)]:
        found = rewards(panel(Fake()), [text] * 4, log_metric=log)
        assert advantages(found, [1.0]) == [0.0] * 4
        assert (log["lexical/all_hit"], log["lexical/all_miss"]) == (all_hit, 1 - all_hit)


def test_shares_are_of_groups() -> None:
    log = Log()
    ids = ["a", "a", "b", "b", "c", "c", "d", "d"]
    texts = ["r1", "r3", "r1", "no", "no", "no", "no", ""]
    rewards(panel(Fake()), texts, query_id=ids, log_metric=log)
    assert (log["lexical/all_hit"], log["lexical/all_miss"]) == (0.25, 0.5)


@pytest.mark.parametrize(
    ("given", "equal"),
    [
        ({}, 0.5),  # c and d: nothing found, an empty rewrite costs nothing
        ({"failure_penalty": 0.1}, 0.25),  # the empty one earns less
        ({"function": "tests.own_rewards:seven_words"}, 0.25),  # and has a word less
    ],
)
def test_groups_in_which_all_earn_the_same_are_counted(given: Any, equal: float) -> None:
    log = Log()
    ids = ["a", "a", "b", "b", "c", "c", "d", "d"]
    texts = ["r1", "r3", "r1", "no", "no", "no", "no", ""]
    rewards(panel(Fake(), **given), texts, query_id=ids, log_metric=log)
    assert log["groups/equal_reward"] == equal


def test_a_row_that_no_function_rewards_makes_no_group_unequal() -> None:
    log = Log()
    own = {"function": "tests.own_rewards:one_or_nothing"}
    ids, texts = ["a", "a", "a"], ["r1", "r1", ""]
    idle = [[]] * 3  # no backend applies
    rewards(panel(Fake(), **own), texts, query_id=ids, backends=idle, log_metric=log)
    assert log["groups/equal_reward"] == 1


def test_a_row_whose_search_failed_makes_no_group_unequal() -> None:
    log = Log()
    fake = Fake(bad=["r3"])
    rewards(panel(fake, retries=0), ["r1", "r1", "r3"], query_id=["a"] * 3, log_metric=log)
    assert log["groups/equal_reward"] == 1
    rewards(panel(fake, retries=0), ["r3"] * 3, query_id=["a"] * 3, log_metric=(none := Log()))
    assert "groups/equal_reward" not in none


def test_gain_is_over_the_raw_query_in_the_same_search() -> None:
    fake = Fake()
    found = rewards(panel(fake, gain=True), ["r1", "no", ""], query=["r2"] * 3)
    # .63093 is the raw query's; breaking the format may not earn more than a bad rewrite
    assert found == {"lexical_gain_ndcg@3": pytest.approx([0.36907, -0.63093, -0.63093], abs=1e-5)}
    assert fake.calls == [["r1", "r2", "no"]]


@pytest.mark.parametrize(("drop", "earned"), [(False, [0.63093, 0.0]), (True, [1.0, 0.5])])
def test_where_the_evaluation_drops_the_querys_own_document_so_does_the_reward(
    drop: bool, earned: list[float]
) -> None:
    """ "r2" finds other-1, gold; "r4" other-1, -2, -3, gold: one less before it, to rank 3."""
    found = rewards(panel(Fake(), drop_query_id=drop), ["r2", "r4"], query_id=["other-1"] * 2)
    assert found == {"lexical_ndcg@3": pytest.approx(earned, abs=1e-5)}


def test_render_makes_the_search_text() -> None:
    fake = Fake()
    reward = SearchReward(fake, render=lambda query, rewrite: f"{query} {rewrite}")
    reward(["a"], **columns(1))
    assert fake.calls == [["raw a"]]


def test_repetition_earns_nothing_more() -> None:
    lexical = LexicalRetriever(Corpus(["서울시 예산 공고", "부산시 축제 안내", "날씨 안내"]))
    relevant = [[{"id": "d0", "grade": 1.0}]] * 2
    found = rewards(panel(lexical), ["예산", "예산 예산 예산"], relevant=relevant)
    assert found["lexical_ndcg@3"] == [1.0, 1.0]


class Corpus:
    def __init__(self, texts: list[str]) -> None:
        self._texts = texts
        self.ids = [f"d{n}" for n in range(len(texts))]
        self.fingerprint = hashlib.sha256(repr(texts).encode()).hexdigest()

    def texts(self) -> Iterator[tuple[str, str]]:
        yield from (("", text) for text in self._texts)


# --- one scoring a step


def test_eight_equal_rewrites_are_searched_once() -> None:
    fake, log = Fake(), Log()
    (values,) = rewards(panel(fake), ["r2"] * 8, log_metric=log).values()
    assert values == pytest.approx([0.63093] * 8, abs=1e-5)
    assert fake.calls == [["r2"]]
    assert log["search/distinct_texts"] == 1


def test_two_backends_are_logged_apart_and_searched_once_each() -> None:
    steps: list[StepScores] = []
    good, poor = Fake("lexical"), Fake("semantic")
    poor.broken = 0
    both = panel(
        good,
        poor,
        backends={"lexical": 0.7, "semantic": {"kind": "hit", "k": 1, "weight": 0.3}},
        on_step=steps.append,
    )
    assert rewards(both, ["r2"]) == {
        "lexical_ndcg@3": pytest.approx([0.63093], abs=1e-5),
        "semantic_hit@1": [0.0],
    }
    assert both.weights == [0.7, 0.3]
    assert (good.calls, poor.calls, len(steps)) == ([["r2"]], [["r2"]], 1)


def test_a_repeated_batch_is_a_step_of_its_own() -> None:
    # A collapsed policy writes the same again: a rank that took it for the same step would skip
    # the exchange that the others wait in.
    steps: list[StepScores] = []
    both = panel(Fake("a"), Fake("b"), on_step=steps.append)
    first = rewards(both, ["r1", "r2"])
    assert rewards(both, ["r1", "r2"]) == first
    assert len(steps) == 2


def test_other_content_never_gets_the_last_columns() -> None:
    both = panel(Fake("a"), Fake("b"))
    first, second = both.functions
    assert first(completions=["r1"], **columns(1)) == [1.0]
    assert second(completions=["no"], **columns(1)) == [0.0]
    completion = [{"role": "assistant", "content": "r1"}]
    assert first(completions=[completion], **columns(1)) == [1.0]
    completion[0]["content"] = "no"  # changed in place
    assert second(completions=[completion], **columns(1)) == [0.0]


def test_the_cache_hit_rate_is_of_the_step() -> None:
    log, one = Log(), panel(Fake())
    rewards(one, ["r1", "r2"], log_metric=log)
    assert log["lexical/cache_hit_rate"] == 0.0
    rewards(one, ["r1", "r2", "r3", "r4"], log_metric=log)
    assert log["lexical/cache_hit_rate"] == 0.5
    assert log["search/reward_seconds"] > 0


def test_a_step_shows_its_rows() -> None:
    steps: list[StepScores] = []
    rewards(
        panel(Fake("lexical"), Fake("semantic", bad=["r2"]), on_step=steps.append),
        ["Query: r1", "r2", "<think>"],
        trainer_state=SimpleNamespace(global_step=7),
    )
    (step,) = steps
    first, second, third = step.rows
    assert step.step == 7
    assert (first.query_id, first.query, first.completion) == ("q1", "raw", "Query: r1")
    assert (first.search_text, first.parsed.text, first.failed) == ("r1", "r1", False)
    assert [hit.id for hit in first.hits["semantic"]] == ["gold", "other-2", "other-3"]
    assert first.rewards == {"lexical_ndcg@3": 1.0, "semantic_ndcg@3": 1.0}
    assert second.failed
    assert set(second.hits) == {"lexical"}
    assert set(second.rewards.values()) == {None}
    assert (third.search_text, third.parsed.failure, third.hits) == (None, "unclosed_think", {})


# --- failures


def test_a_failing_search_is_no_bad_rewrite() -> None:
    # True rewards 1, 1, 1, 1; the 4th raises. With 0 for it: advantages .4999 x 3 and -1.4997.
    log, fake = Log(), Fake(bad=["R1"])
    found = rewards(panel(fake, kind="hit"), ["r1", "r1", "r1", "R1"], log_metric=log)
    assert found == {"lexical_hit@3": [1.0, 1.0, 1.0, None]}
    assert advantages(found, [1.0]) == [0.0, 0.0, 0.0, 0.0]
    assert log["search/failures"] == 1
    assert fake.calls == [["r1", "R1"]] * 4 + [["r1"], ["R1"]]  # 3 retries, then one by one


def test_where_one_of_two_backends_fails_no_function_has_a_number() -> None:
    both = panel(
        Fake("lexical"),
        Fake("semantic", bad=["r2"]),
        failure_penalty=0.5,
        function=f"{__name__}:own",
    )
    found = rewards(both, ["r1", "r2", ""], extra=[5.0, 6.0, 7.0])
    assert found == {
        "lexical_ndcg@3": [1.0, None, 0.0],
        "semantic_ndcg@3": [1.0, None, 0.0],
        "format": [0.0, None, -0.5],
        "own": [5.0, None, 7.0],
    }
    assert both.weights == [1.0, 1.0, 1.0, 1.0]


def test_a_failing_raw_query_fails_its_rows() -> None:
    found = rewards(panel(Fake(bad=["raw"]), gain=True), ["r1", ""])
    assert found == {"lexical_gain_ndcg@3": [None, None]}


def test_what_passes_on_a_retry_is_a_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    monkeypatch.setattr(time, "sleep", naps.append)
    fake = Fake(broken=3)
    assert rewards(panel(fake, backoff_s=0.5), ["r1"]) == {"lexical_ndcg@3": [1.0]}
    assert naps == [0.5, 1.0, 2.0]
    assert len(fake.calls) == 4


@pytest.mark.parametrize("error", [ConnectionError("reset"), TimeoutError(), RuntimeError("busy")])
def test_an_engines_own_errors_are_failures_too(error: Exception) -> None:
    fake = Fake(bad=["r1"])
    fake.error = error
    assert rewards(panel(fake), ["r1", "r2"])["lexical_ndcg@3"] == [
        None,
        pytest.approx(0.63093, abs=1e-5),
    ]


@pytest.mark.parametrize("error", [PermanentSearchError("401"), TypeError("slip"), KeyError("id")])
def test_what_cannot_pass_stops_at_once(error: Exception) -> None:
    fake = Fake(bad=["r1"])
    fake.error = error
    with pytest.raises(type(error)) as caught:
        rewards(panel(fake), ["r1", "r2"])
    assert caught.value is error
    assert len(fake.calls) == 1


def test_too_many_failures_in_a_row_stop_the_run_with_the_cause() -> None:
    fake = Fake(bad=["x"])
    one = panel(fake, max_failures=4, retries=0)
    assert rewards(one, ["x", "x", "x", "r1"])["lexical_ndcg@3"] == [None, None, None, 1.0]
    rewards(one, ["x", "x", ""])  # the success before starts the count anew; "" needs no search
    rewards(one, ["x"])
    with pytest.raises(TooManyFailures, match="backend lexical: 4 searches") as caught:
        rewards(one, ["x"])
    assert caught.value.__cause__ is fake.error


def test_a_working_backend_does_not_hide_a_dead_one() -> None:
    both = panel(Fake("lexical"), Fake("semantic", broken=1000), max_failures=3, retries=0)
    rewards(both, ["r1"])
    rewards(both, ["r1"])
    with pytest.raises(TooManyFailures, match="semantic"):
        rewards(both, ["r1"])


def test_a_dead_engine_is_not_asked_for_every_text() -> None:
    fake = Fake(broken=1000)
    with pytest.raises(TooManyFailures):
        rewards(panel(fake, max_failures=5, retries=1), [f"text {n}" for n in range(300)])
    assert len(fake.calls) == 2 + 5


def test_one_by_one_a_success_starts_the_count_anew() -> None:
    fake = Fake(bad=["x1", "x2", "x3", "x4"])
    one = panel(fake, max_failures=3, retries=0)
    texts = ["x1", "x2", "r1", "x3", "x4"]
    assert rewards(one, texts)["lexical_ndcg@3"] == [None, None, 1.0, None, None]


# --- which backend applies


def test_a_backend_that_does_not_apply_is_none_and_no_failure() -> None:
    log = Log()
    lexical, semantic = Fake("lexical"), Fake("semantic", bad=["r2"])
    found = rewards(
        panel(lexical, semantic),
        ["r1", "r2", "r1", "r3"],
        query_id=["a", "a", "b", "b"],
        backends=[["lexical"], ["lexical"], None, ["semantic", "hybrid"]],
        log_metric=log,
    )
    assert found == {
        "lexical_ndcg@3": [1.0, pytest.approx(0.63093, abs=1e-5), 1.0, None],
        "semantic_ndcg@3": [None, None, 1.0, 0.5],
    }
    assert log["search/failures"] == 0
    assert semantic.calls == [["r1", "r3"]]


def test_one_query_with_a_prompt_for_each_backend_is_two_groups() -> None:
    # Over both together outcomes would differ, and length would be charged.
    found = rewards(
        panel(Fake("lexical"), Fake("semantic"), length_weight=0.1),
        ["long before</think>r1", "r1", "long before</think>no", "no"],
        backends=[["lexical"], ["lexical"], ["semantic"], ["semantic"]],
    )
    assert found["format"] == [0.0, 0.0, 0.0, 0.0]


def test_a_row_that_nothing_rewards_is_refused() -> None:
    with pytest.raises(RewardInputError, match=r"lexcal.*names none of lexical"):
        rewards(panel(Fake()), ["r1"], backends=[["lexcal"]])


# --- input and names


@pytest.mark.parametrize("column", ["query_id", "query", "relevant"])
def test_a_missing_column_is_named(column: str) -> None:
    given = columns(1)
    del given[column]
    with pytest.raises(RewardInputError, match=f'no column "{column}"'):
        panel(Fake()).functions[0](completions=["r1"], **given)


@pytest.mark.parametrize(
    "relevant", [[], None, ["gold"], [{"id": "gold"}], [{"id": "gold", "grade": 0.0}]]
)
def test_a_row_without_a_relevant_document_is_refused(relevant: Any) -> None:
    with pytest.raises(RewardInputError, match="q1"):
        rewards(panel(Fake()), ["r1"], relevant=[relevant])


def test_a_backend_without_a_retriever_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'semantic', but the retrievers are lexical"):
        panel(Fake("lexical"), backends="semantic")


def test_format_stands_only_where_it_can_charge() -> None:
    assert [f.__name__ for f in panel(Fake()).functions] == ["lexical_ndcg@3"]
    for given in ({"failure_penalty": 0.1}, {"length_weight": 0.1}):
        assert [f.__name__ for f in panel(Fake(), **given).functions][1:] == ["format"]


def test_length_is_charged_where_outcomes_differ() -> None:
    found = rewards(panel(Fake(), length_weight=0.1), ["12</think>r1", "no"])
    assert found["format"] == pytest.approx([-0.1, 0.0])


def test_a_backend_without_weight_makes_no_difference_to_length() -> None:
    weights = {"lexical": {"kind": "hit"}, "semantic": {"weight": 0.0}}
    both = panel(Fake("lexical"), Fake("semantic"), backends=weights, length_weight=0.1)
    found = rewards(both, ["12</think>r1", "r2"])
    assert found["semantic_ndcg@3"] == pytest.approx([1.0, 0.63093], abs=1e-5)
    assert found["format"] == [0.0, 0.0]


def own(completions: Any, rewrites: Any, extra: Sequence[float], **_: Any) -> list[float]:
    assert len(completions) == len(rewrites)
    return list(extra)


def format(rewrites: Sequence[str | None], **_: Any) -> list[int]:
    return [len(text or "") for text in rewrites]


def test_two_functions_never_share_a_name() -> None:
    found = rewards(
        panel(Fake(), failure_penalty=0.5, function=f"{__name__}:format"), ["Query: r1", ""]
    )
    assert found["format"] == [0.0, -0.5]
    assert found["own_format"] == [2, 0]  # it gets the rewrite, not the completion


def test_an_own_function_of_the_wrong_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="own returned 1 values for 2 completions"):
        rewards(panel(Fake(), function=f"{__name__}:own"), ["r1", "r2"], extra=[1.0])


def given(values: Any, **_: Any) -> Any:
    """The first of the column is what it returns."""
    return values[0]


def test_values_of_an_own_function_are_plain_numbers() -> None:
    """numpy's and torch's would end the run where they are logged."""
    returned = np.array([0.5, np.nan], dtype=np.float32)
    found = rewards(
        panel(Fake(), function=f"{__name__}:given"), ["r1", "r2"], values=[returned] * 2
    )
    assert found["given"] == [0.5, None]
    assert type(found["given"][0]) is float


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (None, r"given returned None; return a list"),
        ([1.0, "good"], r"given returned 'good' for completion 1; return a finite number"),
        ([float("inf"), 0.0], r"given returned inf for completion 0; return a finite number"),
    ],
)
def test_what_an_own_function_may_not_return(returned: Any, says: str) -> None:
    with pytest.raises(RewardFunctionResultError, match=says):
        rewards(panel(Fake(), function=f"{__name__}:given"), ["r1", "r2"], values=[returned] * 2)


def test_search_reward_is_a_panel_of_one() -> None:
    reward = SearchReward(Fake("semantic", bad=["x"]), "hit", 1, retries=0)
    assert reward.__name__ == "semantic_hit@1"
    assert reward(["r1", "r2", "x", ""], **columns(4)) == [1.0, 0.0, None, 0.0]
    with pytest.raises(ValueError, match="RewardPanel"):
        SearchReward(Fake(), length_weight=0.1)


def test_trl_can_name_and_call_the_functions() -> None:
    both = panel(Fake("lexical"), Fake("semantic"), kind="rank")
    functions: list[Any] = [*both.functions, SearchReward(Fake())]
    # get_callable_name and is_async_callable of trl.trainer.utils look at these
    names = [one.__name__ for one in functions]
    assert names == ["lexical_rank@100", "semantic_rank@100", "lexical_ndcg@3"]
    assert not any(iscoroutinefunction(one.__call__) for one in functions)


# --- several ranks


class Ranks:
    """Two ranks as threads: `gather` waits for both, and fails where one does not come."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.barrier = Barrier(2, timeout=5)
        self.items: dict[str, Any] = {}
        self.gathers = 0
        self.results: dict[str, Any] = {}
        monkeypatch.setattr(ranks, "gather", self.gather)

    def gather(self, item: Any) -> tuple[list[Any], int]:
        self.gathers += 1
        self.items[current_thread().name] = item
        self.barrier.wait()
        everyone = [self.items["0"], self.items["1"]]
        self.barrier.wait()  # nobody overwrites what the other still reads
        return everyone, int(current_thread().name)

    def run(
        self, *panels: RewardPanel, completions: Sequence[Sequence[str]], steps: int = 1
    ) -> None:
        def work(rank: int) -> None:
            try:
                for _ in range(steps):
                    found = rewards(panels[rank], completions[rank])
                self.results[str(rank)] = found
            except Exception as error:
                self.results[str(rank)] = error

        threads = [Thread(target=work, args=(rank,), name=str(rank)) for rank in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def test_a_group_over_two_ranks_is_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each rank's outcomes are alike, the group's are not; the longest surplus is on the other rank.
    both = Ranks(monkeypatch)
    pair = panel(Fake(), length_weight=0.1), panel(Fake(), length_weight=0.1)
    near, far = "12</think>r1", "1234567890</think>no"  # 10 and 18 characters outside
    both.run(*pair, completions=[[near, "r1"], [far, "no", near[:-2] + "no"]], steps=3)
    assert both.results["0"]["format"] == pytest.approx([-0.1 * 10 / 18, 0.0])
    assert both.results["1"]["format"] == pytest.approx([-0.1, 0.0, -0.1 * 10 / 18])
    assert both.gathers == 6  # one a step and rank, whatever the number of functions


def test_a_rank_whose_search_fails_still_comes_to_the_exchange(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = Ranks(monkeypatch)
    both.run(panel(Fake()), panel(Fake(bad=["r2"])), completions=[["r1"], ["r2", "r1"]])
    assert both.results["0"] == {"lexical_ndcg@3": [1.0]}
    assert both.results["1"] == {"lexical_ndcg@3": [None, 1.0]}


def test_an_error_on_one_rank_ends_both(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Ranks(monkeypatch)
    fake = Fake(bad=["r1"])
    fake.error = PermanentSearchError("401")
    both.run(panel(Fake()), panel(fake), completions=[["r1"], ["r1"]])
    assert both.results["1"] is fake.error
    assert isinstance(both.results["0"], OtherRankFailed)
    assert "rank 1 stopped while searching: PermanentSearchError: 401" in str(both.results["0"])


def test_what_the_first_rank_finds_all_have(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Ranks(monkeypatch)
    monkeypatch.setattr(ranks, "_rank", lambda: int(current_thread().name))
    done: list[str] = []

    def search() -> float:
        done.append(current_thread().name)
        if len(done) > 1:
            raise ConnectionError("down")
        return 0.5

    def work(rank: int) -> None:
        for step in range(2):
            try:
                both.results[f"{rank}.{step}"] = ranks.on_first_rank(search)
            except (ConnectionError, OtherRankFailed) as error:
                both.results[f"{rank}.{step}"] = error

    threads = [Thread(target=work, args=(rank,), name=str(rank)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == ["0", "0"]
    assert both.results["0.0"] == both.results["1.0"] == 0.5
    assert isinstance(both.results["0.1"], ConnectionError)
    assert isinstance(both.results["1.1"], OtherRankFailed)


def test_gather_uses_the_process_group(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = ModuleType("torch")
    torch.distributed = SimpleNamespace(  # type: ignore[attr-defined]
        is_available=lambda: True,
        is_initialized=lambda: True,
        get_world_size=lambda: 3,
        get_rank=lambda: 1,
        all_gather_object=lambda places, item: places.__setitem__(slice(None), ["x", item, "y"]),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert ranks.gather("mine") == (["x", "mine", "y"], 1)
    torch.distributed.is_initialized = lambda: False
    assert ranks.gather("mine") == (["mine"], 0)
