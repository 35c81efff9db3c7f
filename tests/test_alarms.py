"""What precedes a ruined run is said, once a window."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rewards.parsing import parse
from rewards.search import RowScores, StepScores
from rewards.texts import repetition
from rewriter.alarms import Alarms, foreign_script
from rewriter.config import AlarmSettings
from rewriter.run_directory import RunDirectory

PAGE = "서울시 예산 공고: 2024 회계연도 세입 세출 예산안을 다음과 같이 공고합니다. "


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


def _row(rewrite: str, query: str = "서울 예산", reward: float = 0.0) -> RowScores:
    return RowScores(
        query_id="q",
        query=query,
        completion=rewrite,
        parsed=parse(rewrite),
        search_text=rewrite,
        hits={},
        rewards={"lexical_ndcg@3": reward},
        failed=False,
    )


def _watch(run: RunDirectory, *rows: RowScores, step: int = 0) -> list[str]:
    alarms = Alarms(AlarmSettings(), run)
    alarms.watch(StepScores(rows, {}, step))
    return [name for _, name, _ in alarms.raised]


def _log(alarms: Alarms, step: int, **logs: Any) -> None:
    state = SimpleNamespace(is_world_process_zero=True, global_step=step)
    alarms.on_log(None, state, None, logs=logs)


def test_ordinary_rewrites_raise_nothing(run: RunDirectory) -> None:
    assert _watch(run, _row("서울 예산 2024", reward=1.0), _row("API 서울 예산 공고")) == []


def test_a_paste_of_a_page_raises_an_alarm(run: RunDirectory) -> None:
    """400 tokens of it, one among fifteen short ones, because it is rewarded."""
    words = [f"{word}{n}" for n in range(40) for word in PAGE.split()][:400]
    paste = _row(" ".join(words), reward=1.0)
    assert _watch(run, paste, *[_row("서울 예산")] * 15) == ["length"]
    (line,) = [json.loads(text) for text in run.metrics.read_text().splitlines()]
    assert line["step"] == 1
    assert line["alarm"] == "length"


def test_one_long_text_that_earns_nothing_is_noise(run: RunDirectory) -> None:
    long = _row("".join(chr(0xAC00 + n) for n in range(1200)))
    assert _watch(run, long, *[_row("서울 예산")] * 15) == []
    assert _watch(run, long, long) == ["length"]


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("예산 예산 예산 예산", 0.75),  # 1 of 4 words is new
        ("서울 예산 공고", 0.0),
        # 4-character runs of a loop of two: 2 of 17 are new.
        ("예산" * 10, 1 - 2 / 17),
        ("Budget BUDGET budget", 2 / 3),
        ("", 0.0),
    ],
)
def test_repetition(text: str, share: float) -> None:
    assert repetition(text) == pytest.approx(share)


def test_ordinary_text_repeats_little() -> None:
    text = (
        "how do I list all weekdays of a month in Python without writing the loop over the days of "
        "the calendar myself, and how do I skip the holidays that are stored in a file"
    )
    assert repetition(text) < 0.3


def test_repetition_raises_an_alarm(run: RunDirectory) -> None:
    assert _watch(run, _row("예산 예산 예산 예산"), _row("예산" * 10)) == ["repetition"]


@pytest.mark.parametrize(
    ("query", "rewrite", "share"),
    [
        ("서울 예산", "首尔预算", 1.0),
        ("서울 예산", "서울 예산", 0.0),
        ("Seoul budget", "ab 예산", 0.5),
        ("予算を調べる", "カレンダー 予算", 0.0),  # Japanese writes in three scripts
        ("budget", "ＢＵＤＧＥＴ", 0.0),  # full width
        ("3.5%", "예산", 0.0),  # a query without letters has no script
        ("예산", "2024", 0.0),
    ],
)
def test_foreign_script(query: str, rewrite: str, share: float) -> None:
    assert foreign_script(_row(rewrite, query)) == share


def test_foreign_script_raises_an_alarm(run: RunDirectory) -> None:
    assert _watch(run, _row("首尔预算"), _row("서울 예산")) == ["foreign_script"]


def test_a_reward_that_drops_raises_an_alarm(run: RunDirectory) -> None:
    alarms = Alarms(AlarmSettings(window=2), run)
    for step, reward in enumerate([0.6, 0.6, 0.5, 0.3, 0.2, 0.2, 0.2], 1):
        _log(alarms, step, reward=reward)
    # Means of two: .6 .55 .4 .25 .2 .2; below half of .6 at step 5, said again after two steps.
    assert [(step, name) for step, name, _ in alarms.raised] == [(5, "reward"), (7, "reward")]


def test_a_rising_reward_raises_none(run: RunDirectory) -> None:
    alarms = Alarms(AlarmSettings(window=2), run)
    for step, reward in enumerate([-0.1, 0.0, 0.5, 0.6, 1.0], 1):
        _log(alarms, step, reward=reward)
    assert alarms.raised == []


def test_groups_without_a_signal_raise_an_alarm_that_says_which(run: RunDirectory) -> None:
    alarms = Alarms(AlarmSettings(window=2), run)
    logs = {"groups/equal_reward": 1.0, "lexical/all_hit": 0.25, "lexical/all_miss": 0.75}
    for step in (1, 2):
        _log(alarms, step, reward=0.1, **logs)
    ((step, name, message),) = alarms.raised
    assert (step, name) == (2, "no_signal")
    assert "lexical all hit 25%, lexical all miss 75%" in message


def test_a_step_without_a_reward_counts_for_nothing(run: RunDirectory) -> None:
    """Every search failed, or the numbers are an evaluation's."""
    alarms = Alarms(AlarmSettings(window=1), run)
    _log(alarms, 1, reward=1.0)
    _log(alarms, 2, reward=None)
    _log(alarms, 2, **{"eval_lexical_ndcg@3": 0.0})
    assert alarms.raised == []


def test_a_resumed_run_remembers(run: RunDirectory) -> None:
    before = [{"step": 1, "reward": 1.0}, {"step": 2, "reward": 1.0}]
    before.append({"step": 2, "alarm": "length", "message": "…"})
    run.metrics.write_text("".join(json.dumps(row) + "\n" for row in before))
    alarms = Alarms(AlarmSettings(window=2), run)
    long = _row("".join(chr(0xAC00 + n) for n in range(1200)), reward=1.0)
    alarms.watch(StepScores([long], {}, 2))  # step 3: within the window
    _log(alarms, 3, reward=0.0)  # a mean of .5: not yet below half
    assert alarms.raised == []
    _log(alarms, 4, reward=0.0)
    assert [(step, name) for step, name, _ in alarms.raised] == [(4, "reward")]
