"""The report's plots: figures, colours, curves, and the heat map of a grid."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rewriter.records import write_records
from rewriter.report import ReportError, summary, write
from rewriter.report.gather import gather
from rewriter.report.matrix import Matrix
from rewriter.report.palette import LIGHT
from rewriter.report.plots import Plot, draw, transfer
from rewriter.report.plots.changes import outline
from rewriter.report.plots.curves import smooth
from rewriter.report.plots.drawing import inline
from rewriter.report.queries import code
from tests import report_folder
from tests.report_folder import add_matrix, fill, record

folder, page = report_folder.folder, report_folder.page  # fixtures


# Plots


def test_every_plot_is_written_as_svg_and_png(folder: Path) -> None:
    names = {path.name for path in (folder / "plots").iterdir()}
    stems = {
        "means-lexical",
        "means-semantic",
        "changes-lexical-trained",
        "changes-semantic-trained",
        "curves-held-out",
        "curves-reward",
        "curves-length",
        "curves-no-signal",
        "transfer",
    }
    assert names == {f"{stem}.{kind}" for stem in stems for kind in ("svg", "png")}
    for name in names:
        head = (folder / "plots" / name).read_bytes()[:8]
        assert head == (b"\x89PNG\r\n\x1a\n" if name.endswith("png") else b"<?xml ve")


def test_plots_say_their_figures(folder: Path, tmp_path: Path) -> None:
    sections = draw(gather(folder), tmp_path)
    captions = {plot.name: plot.caption for section in sections for plot in section.plots}
    assert captions["means-lexical"] == "n = 4 queries"
    assert captions["changes-lexical-trained"] == "2 better, 1 equal, 1 worse; n = 4"
    assert captions["curves-held-out"] == "lexical 0.250 at step 0, best 0.500 at 4"
    assert "n = 80" in next(s.note for s in sections if s.name == "curves")
    svgs = {plot.name: plot.svg for section in sections for plot in section.plots}
    assert "[.700, .900]" in svgs["transfer"]
    assert ">trained rewriter<" in svgs["means-lexical"]


def test_inlined_plots_use_the_pages_colours_alone(page: str, folder: Path) -> None:
    plots = re.findall(r"<svg .*?</svg>", page, flags=re.DOTALL)
    assert len(plots) == 9
    for plot in plots:
        assert re.findall(r"(?:fill|stroke|color): ?#\w+", plot) == []
        assert "<style" not in plot
        assert 'role="img" aria-label="' in plot
    saved = (folder / "plots" / "means-lexical.svg").read_text()
    assert LIGHT["muted"] in saved
    assert "var(--" not in saved


def test_same_folder_gives_the_same_plot_files(folder: Path, tmp_path: Path) -> None:
    draw(gather(folder), tmp_path)
    for path in tmp_path.glob("*.svg"):
        assert path.read_bytes() == (folder / "plots" / path.name).read_bytes()


def test_inline_keeps_names_apart_and_escapes_what_is_said() -> None:
    svg = (
        '<?xml?>\n<svg width="9pt" height="5pt" viewBox="0 0 9 5"><defs><style>*{}</style></defs>'
        '<path id="p1" style="fill: #ffffff; stroke: #123456"/><use xlink:href="#p1"/>'
        '<g clip-path="url(#p1)" style="font: 9px \'DejaVu Sans\', sans-serif"/></svg>'
    )
    found = inline(svg, "x", 'a "b"')
    assert found == (
        '<svg role="img" aria-label="a &quot;b&quot;" viewBox="0 0 9 5"><defs></defs>'
        '<path id="x-p1" style="fill: var(--bg); stroke: #123456"/><use xlink:href="#x-p1"/>'
        '<g clip-path="url(#x-p1)" style="font: 9px var(--sans)"/></svg>'
    )


def test_outline_of_sorted_changes() -> None:
    assert outline([1, 1, 0.5, 0, 0, -1]) == ([0, 2, 3, 5, 6], [1, 0.5, 0, -1, -1])
    places, values = outline([n / 5000 for n in range(5000, 0, -1)])
    assert len(places) == len(values) == 418  # every 12th of 5,000, and the end
    assert (places[0], places[1], places[-1]) == (0, 12, 5000)


def test_smooth_is_a_centred_mean() -> None:
    assert smooth([0, 3, 6]) == [1.5, 3, 4.5]
    assert smooth([5] * 100) == [5] * 100
    assert (
        smooth([0.0] * 20 + [41.0] + [0.0] * 20)[18:23] == [41 / 5] * 5
    )  # 41 values: two on each side


# The heat map


def test_matrix_with_missing_cells(folder: Path) -> None:
    matrix = Matrix.read(folder / "matrix.json")
    assert matrix is not None
    assert matrix.means == [0.8, 0.4, 0.6]
    assert matrix.diagonal == {("lexical", "lexical"), ("semantic", "semantic")}
    assert Matrix.read(folder / "none.json") is None


def heat_map(folder: Path, **changed: Any) -> Plot:
    """The heat map of the folder's matrix with some keys changed; None leaves a key out."""
    path = folder / "matrix.json"
    found = json.loads(path.read_text()) | changed
    path.write_text(json.dumps({key: value for key, value in found.items() if value is not None}))
    (plot,) = transfer.draw(gather(folder), folder)
    return plot


def test_a_cell_says_which_runs_it_lacks(tmp_path: Path) -> None:
    add_matrix(fill(tmp_path))
    runs = [[[1, 2], [0, 2]], [[2, 2], [1, 1]]]
    plot = heat_map(tmp_path, runs=runs, row_axis="lora_rank")
    assert plot.svg.count("1 of 2 runs") == plot.svg.count(">missing<") == 1
    assert plot.title == "Lora rank (rows), evaluated on (columns)"
    with pytest.raises(ReportError, match="do not have one row of cells a name"):
        heat_map(tmp_path, runs=runs[:1])


def test_the_diagonal_is_framed(tmp_path: Path) -> None:
    add_matrix(fill(tmp_path))
    framed, plain = heat_map(tmp_path), heat_map(tmp_path, diagonal=None)
    assert framed.svg.count("<path") == plain.svg.count("<path") + 2


def test_a_grid_opens_with_no_run_of_its_many(tmp_path: Path) -> None:
    """Its results lie in `GRID/report`; the last run is only the one that queries are shown of."""
    place = tmp_path / "rewards" / "report"
    place.mkdir(parents=True)
    runs = {"raw": None, "hit-seed1": "budget", "rank-seed1": "budget 2021"}
    rows = [record(name, "q1", "which budget", text, 1) for name, text in runs.items()]
    write_records(rows, place / "records.jsonl")
    source = gather(place)
    assert summary.main_system(source) == "rank-seed1"
    add_matrix(place)
    source = gather(place)
    assert summary.main_system(source) is None
    assert list(summary.verdicts(source)) == []
    assert code(source).listed["main"] == "rank-seed1"
    write(place)
    shown = (place / "report.html").read_text(encoding="utf-8")
    assert "<h1>rewards</h1>" in shown
    assert shown.index("Two factors at a time") < shown.index("Change by query")
