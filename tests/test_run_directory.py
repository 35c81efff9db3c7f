"""Who may write into a run's folder."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from rewriter.config import Config
from rewriter.resume import RunError
from rewriter.run_directory import RunDirectory, refuse_other_overwrite
from rewriter.run_lock import alone_in
from rewriter.yaml_source import ConfigError

FACTS = {"documents": "a" * 64, "training_queries": "b" * 64, "processes": 1}


def _config(output: Path, **sections: Any) -> Config:
    values = {"output": str(output), "model": {"name": "org/model"}, "reward": {}} | sections
    return Config.model_validate(values)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run that has begun."""
    run = RunDirectory(tmp_path / "run")
    assert run.prepare(_config(run.path), FACTS, resume=False) is None
    run.metrics.write_text("")
    return run


def _resume(run: RunDirectory, config: Config | None = None, **facts: Any) -> Path | None:
    return run.prepare(config or _config(run.path), FACTS | facts, resume=True)


def test_what_a_run_is_made_of_is_written_first(run: RunDirectory) -> None:
    written = yaml.safe_load((run.path / "config.yaml").read_text())
    assert written == _config(run.path).dump()
    facts = yaml.safe_load((run.path / "run.json").read_text())
    assert facts["documents"] == "a" * 64
    assert facts["versions"]["trl"]
    assert len(facts["git_commit"].removesuffix("+changes")) == 40


def test_a_second_run_into_the_same_folder_is_refused(run: RunDirectory) -> None:
    with pytest.raises(RunError, match=rf"holds a run already.*--overwrite {run.path}"):
        run.prepare(_config(run.path), FACTS, resume=False)


def test_a_folder_of_other_files_is_refused_and_not_cleared(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("…")
    run = RunDirectory(tmp_path)
    with pytest.raises(RunError, match="holds files that are no run's"):
        run.prepare(_config(tmp_path), FACTS, resume=False)
    with pytest.raises(RunError, match=r"no run.json: it is not a run's folder"):
        run.set_aside()
    assert (tmp_path / "thesis.tex").exists()


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("…")
    run = RunDirectory(tmp_path / "run")
    for act in (run.set_aside, lambda: run.prepare(_config(run.path), FACTS, resume=False)):
        with pytest.raises(RunError, match="is a file"):
            act()


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    assert RunDirectory(tmp_path).prepare(_config(tmp_path), FACTS, resume=False) is None


def test_overwrite_is_by_name(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    config = _config(run.path)
    with pytest.raises(ConfigError, match="name that one"):
        refuse_other_overwrite(config, str(run.path.parent), resume=False)
    with pytest.raises(ConfigError, match="contradict"):
        refuse_other_overwrite(config, str(run.path), resume=True)
    monkeypatch.chdir(run.path.parent)
    for name in (str(run.path), f"{run.path}/", "run", "./run"):
        refuse_other_overwrite(config, name, resume=False)
    run.set_aside()
    assert not run.path.exists()
    run.set_aside()  # what is not there needs none


def test_a_replaced_run_comes_back_where_the_new_one_never_begins(run: RunDirectory) -> None:
    (run.path / "result.json").write_text("{}")
    run.set_aside()
    run.prepare(_config(run.path), FACTS, resume=False)
    run.withdraw()
    assert (run.path / "result.json").read_text() == "{}"
    run.set_aside()
    run.prepare(_config(run.path), FACTS, resume=False)
    run.forget_replaced()
    assert not (run.path / "result.json").exists()
    assert [entry.name for entry in run.path.parent.glob(".*replaced*")] == []


def test_what_never_began_is_withdrawn(tmp_path: Path, run: RunDirectory) -> None:
    run.withdraw()
    assert run.path.exists()
    fresh = RunDirectory(tmp_path / "fresh")
    fresh.prepare(_config(fresh.path), FACTS, resume=False)
    fresh.withdraw()
    assert not fresh.path.exists()
    fresh.withdraw()


@pytest.mark.parametrize(("resume", "overwrite"), [(True, False), (False, True)])
def test_a_run_that_another_process_writes_is_left_alone(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, resume: bool, overwrite: bool
) -> None:
    monkeypatch.setattr("rewriter.run_directory.PATIENCE", 0.3)
    with alone_in(run.path), ExitStack() as held:
        with pytest.raises(RunError, match=rf"^{run.path}: process \d+ on .* is training into it"):
            run.enter(held, resume, overwrite)
        assert run.metrics.is_file()
    with ExitStack() as held:
        run.enter(held, resume, overwrite)
        with pytest.raises(RunError), alone_in(run.path):
            pass


def test_of_two_new_runs_into_one_folder_one_begins(tmp_path: Path) -> None:
    """Both found it empty; the second one must not take away what the first one wrote."""
    run = RunDirectory(tmp_path / "run")
    with ExitStack() as first, ExitStack() as second:
        run.enter(first, False, False)
        run.enter(second, False, False)
        run.begin(first, False)
        with pytest.raises(RunError, match="is training into it"):
            run.begin(second, False)
        run.prepare(_config(run.path), FACTS, resume=False)
        with pytest.raises(RunError, match="holds a run already"):
            run.begin(second, False)
        assert (run.path / "config.yaml").is_file()


def test_a_replaced_run_is_kept_by_its_new_process(run: RunDirectory) -> None:
    with ExitStack() as held:
        run.enter(held, False, True)
        run.begin(held, True)
        with pytest.raises(RunError), alone_in(run.path):
            pass


def test_a_folder_that_cannot_be_made_leaves_the_old_run_in_its_place(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "run")

    with ExitStack() as held, monkeypatch.context() as patched:
        patched.setattr(Path, "mkdir", full)
        with pytest.raises(RunError, match=r"cannot be written \(No space left on device"):
            run.begin(held, True)
    assert run.metrics.is_file()


def test_what_cannot_be_written_is_one_line(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(lines: Any, path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("rewriter.run_directory.write_lines", refused)
    with pytest.raises(RunError, match=r"cannot be written \(Permission denied: .*config.yaml\)"):
        _resume(run)


def test_a_kill_amid_the_first_files_leaves_what_can_be_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rewriter.records import write_lines

    def killed(lines: Any, path: Path) -> None:
        if path.name == "config.yaml":
            raise KeyboardInterrupt
        write_lines(lines, path)

    run = RunDirectory(tmp_path / "run")
    monkeypatch.setattr("rewriter.run_directory.write_lines", killed)
    with pytest.raises(KeyboardInterrupt):
        run.prepare(_config(run.path), FACTS, resume=False)
    run.set_aside()
    assert not run.path.exists()


def test_a_file_cannot_be_resumed(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("…")
    with pytest.raises(RunError, match="is a file"):
        _resume(RunDirectory(tmp_path / "run"))


@pytest.mark.parametrize(("file", "text"), [("config.yaml", "a: [1"), ("run.json", '{"docu')])
def test_a_damaged_file_is_one_line(run: RunDirectory, file: str, text: str) -> None:
    (run.path / file).write_text(text)
    with pytest.raises(
        RunError, match=r"cannot resume, .* is damaged \(.*\); start a new"
    ) as refused:
        _resume(run)
    assert "\n" not in str(refused.value)


def test_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"nothing to resume \(config.yaml is missing\)"):
        _resume(RunDirectory(tmp_path / "none"))


@pytest.mark.parametrize(
    ("sections", "named"),
    [
        ({"trainer": {"learning_rate": 1e-5}}, r"trainer.learning_rate \(was None, is 1e-05\)"),
        ({"prompt": {"system": "Shorter."}}, "prompt.system"),
        ({"reward": {"k": 10}}, "reward.k"),
        ({"model": {"name": "org/other"}}, r"model.name \(was 'org/model', is 'org/other'\)"),
        ({"retrievers": {"lexical": {"k1": 2.0}}}, "retrievers.lexical.k1"),
    ],
)
def test_another_configuration_is_refused_by_name(
    run: RunDirectory, sections: dict[str, Any], named: str
) -> None:
    with pytest.raises(RunError, match=f"cannot resume with another configuration: .*{named}"):
        _resume(run, _config(run.path, **sections))


def test_how_long_a_run_lasts_and_where_it_lies_may_change(run: RunDirectory) -> None:
    moved = RunDirectory(run.path.rename(run.path.parent / "moved"))
    sections = {
        "trainer": {"max_steps": 100, "report_to": "tensorboard"},
        "evaluation": {"patience": 3},
        "threads": 1,
    }
    assert _resume(moved, _config(moved.path, **sections)) is None
    assert yaml.safe_load((moved.path / "config.yaml").read_text())["threads"] == 1


@pytest.mark.parametrize("name", sorted(FACTS))
def test_other_data_are_refused_by_name(run: RunDirectory, name: str) -> None:
    with pytest.raises(RunError, match=rf"{name} changed since the run began \(.* → other\)"):
        _resume(run, **{name: "other"})


def test_other_versions_are_said(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _resume(run)
    assert "other versions" not in caplog.text
    monkeypatch.setattr("rewriter.run_directory.version", lambda package: "99")
    _resume(run)
    assert "→ 99" in caplog.text


def test_the_newest_complete_checkpoint_on_the_grid_counts(run: RunDirectory) -> None:
    for step, state in {
        10: '{"global_step": 10}',
        8: None,
        6: "{",
        5: '{"global_step": 5}',
        4: '{"global_step": 4}',
    }.items():
        folder = run.checkpoints / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        if state is not None:
            (folder / "trainer_state.json").write_text(state)
    (run.checkpoints / "checkpoint-4" / "rng_state.pth").touch()
    needed = ["rng_state.pth"]
    found = run.prepare(_config(run.path), FACTS, resume=True, every=2, needed=needed)
    assert found == run.checkpoints / "checkpoint-4"
    assert [path.name for path in run.checkpoints.iterdir()] == ["checkpoint-4"]


def test_logs_end_where_the_checkpoint_was_made(run: RunDirectory) -> None:
    folder = run.checkpoints / "checkpoint-4"
    folder.mkdir(parents=True)
    (folder / "trainer_state.json").write_text('{"global_step": 4}')
    lines = [f'{{"step": {step}, "text": "a\\u2028b\u2028c"}}\n' for step in (3, 4, 5)]
    logs = [run.metrics, run.evaluations, run.completions(0), run.completions(1)]
    for path in logs:
        path.write_text("".join(lines) + '{"step": 4, "cut sho', encoding="utf-8")
    _resume(run)
    for path in logs:
        assert path.read_text(encoding="utf-8") == "".join(lines[:2])
