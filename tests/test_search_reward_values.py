"""The reward that searches: what a completion earns."""

from math import log2
from typing import Any

import pytest

from retrievers.lexical import LexicalRetriever
from rewards import SearchReward
from tests.search_panels import Fake, Log, advantages, columns, panel, rewards
from tests.tiny_corpus import Corpus


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
