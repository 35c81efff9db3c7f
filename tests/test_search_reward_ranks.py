"""The reward that searches: several ranks."""

import sys
from collections.abc import Sequence
from threading import Barrier, Thread, current_thread
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from retrievers.base import PermanentSearchError
from rewards import RewardPanel
from rewards.search import OtherRankFailed, ranks
from tests.search_panels import Fake, panel, rewards


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
