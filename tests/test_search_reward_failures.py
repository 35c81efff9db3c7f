"""The reward that searches: what a failing backend must not do."""

import time

import pytest

from retrievers.base import PermanentSearchError
from rewards.search import TooManyFailures
from tests.search_panels import Fake, Log, advantages, panel, rewards


def test_a_failing_search_is_no_bad_rewrite() -> None:
    # True rewards 1, 1, 1, 1; the 4th raises. With 0 for it: advantages .4999 x 3 and -1.4997.
    log, fake = Log(), Fake(bad=["R1"])
    found = rewards(panel(fake, kind="hit"), ["r1", "r1", "r1", "R1"], log_metric=log)
    assert found == {"lexical_hit@3": [1.0, 1.0, 1.0, None]}
    assert advantages(found, [1.0]) == [0.0, 0.0, 0.0, 0.0]
    assert log["search/failures"] == 1
    assert fake.calls == [["r1", "R1"]] * 4 + [["r1"], ["R1"]]  # 3 retries, then one by one


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
