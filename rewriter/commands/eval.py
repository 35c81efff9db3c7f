"""`rlqr eval`: systems × backends on one split, with intervals, into a result folder."""

import logging
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewriter.commands.arguments import names, path

if TYPE_CHECKING:
    from rewriter.evaluation import Result

logger = logging.getLogger(__name__)

EXAMPLES = """\
rlqr eval --config configs/demo.yaml
rlqr eval --config configs/demo.yaml --checkpoint runs/demo runs/demo-2
rlqr eval --config configs/demo.yaml --systems raw,hyde,query2doc,keywords,file:mine.jsonl
rlqr eval --config configs/demo.yaml --checkpoint runs/demo --backends lexical,semantic,hybrid
rlqr eval --config configs/demo.yaml --evaluation.samples 4 --evaluation.temperature 0.7

Any key of the configuration can be overridden. An evaluation that was stopped goes on where it was
when it is given the same output again.
"""


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("--config", type=path, metavar="FILE", required=True, help="YAML file")
    parser.add_argument(
        "--checkpoint",
        type=path,
        metavar="DIR",
        nargs="+",
        action="extend",
        default=[],
        help="trained rewriters: folders of runs, or their `best` folders",
    )
    parser.add_argument(
        "--systems",
        type=names,
        metavar="A,B,…",
        help="rules (raw, last_sentence, question, top_idf, reference), untrained, prompts (hyde, "
        "query2doc, keywords, your own), file:PATH; default: `evaluation.systems`",
    )
    parser.add_argument(
        "--backends", type=names, metavar="A,B,…", help="default: those that the reward names"
    )
    parser.add_argument("--split", metavar="NAME", help="default: the configuration's test split")
    parser.add_argument(
        "--qrels", type=path, metavar="FILE", help="judgements instead of the split's own"
    )
    parser.add_argument(
        "--baseline", metavar="SYSTEM", help="compare with this system too, beside raw"
    )
    parser.add_argument(
        "--output", type=path, metavar="DIR", help="default: the run's folder with -eval after it"
    )
    parser.add_argument(
        "--allow_missing",
        action="store_true",
        help="a query that a file of rewrites lacks is sent raw and counted, not refused",
    )
    parser.add_argument(
        "--mteb", action="store_true", help="write the means in mteb's form too, into mteb/"
    )
    parser.set_defaults(run=run, overrides=[])


def run(options: Namespace) -> None:
    """Evaluate, write the folder, show the tables."""
    from rewriter.config import load
    from rewriter.evaluation.mteb_form import write_mteb
    from rewriter.evaluation.run import run as evaluate

    config = load(options.config, options.overrides)
    output = Path(options.output or f"{config.output.rstrip('/')}-eval")
    _set_threads(config.threads)
    result, facts = evaluate(
        config,
        output,
        systems=options.systems,
        checkpoints=options.checkpoint,
        backends=options.backends,
        split=options.split,
        qrels=None if options.qrels is None else Path(options.qrels),
        baseline=options.baseline,
        missing_ok=options.allow_missing,
    )
    if options.mteb:
        write_mteb(result, facts, output)
    sys.stdout.write("\n".join(_lines(result, facts)) + "\n")
    logger.info("result       %s", output)
    logger.info("as a page    rlqr report %s", output)


def _set_threads(threads: int | None) -> None:
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def _lines(result: "Result", facts: Mapping[str, Any]) -> Iterator[str]:
    from rewriter.evaluation.run import labels
    from rewriter.tables import COLUMNS, table

    primary = facts["primary"]
    columns = (*([primary] if primary else []), *(c for c in COLUMNS if c != primary))
    for backend, systems in result.items():
        shown = tuple(c for c in columns if all(c in one for one in systems.values()))
        options = {"labels": labels(facts), "split": facts["split"], "columns": shown}
        for baseline in facts["baselines"]:
            yield table(result, backend, baseline=baseline, **options)
            yield from _corrected(systems, baseline, labels(facts))
        yield from _kinds(systems, labels(facts))
        yield from _macro(systems, facts)
        yield ""


def _corrected(
    systems: Mapping[str, Any], baseline: str, names: Mapping[str, str]
) -> Iterator[str]:
    """Which differences stay beyond chance when there are so many."""
    found = {name: one.get(f"p_holm_vs_{baseline}") for name, one in systems.items()}
    known = [f"{names.get(name, name)} {p:.2g}" for name, p in found.items() if p is not None]
    if known:
        yield f"p against {baseline}, Holm-corrected for {len(known)}: {', '.join(known)}"


def _kinds(systems: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[str]:
    """NDCG@3 by the split's further judgements."""
    from rewriter.evaluation import HEADLINE
    from rewriter.tables import heading

    ends = f"_{HEADLINE}"
    for key in dict.fromkeys(key for one in systems.values() for key in one if key.endswith(ends)):
        found = {name: one[key] for name, one in systems.items() if key in one}
        said = [f"{names.get(name, name)} {mean['mean']:.3f}" for name, mean in found.items()]
        counts = sorted({mean["n"] for mean in found.values()})
        yield f"{heading(key)} ({'–'.join(map(str, counts))} queries): {', '.join(said)}"


def _macro(systems: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[str]:
    """The macro mean over the subsets that the collection declares."""
    measure, subset = facts["primary"] or "ndcg@3", facts["subset"]
    for name, one in systems.items():
        found = one["by"].get(subset)
        if found and measure in found["macro"]:
            macro, micro = found["macro"][measure], found["micro"][measure]
            yield f"{name}: {measure} macro over {subset} {macro:.3f}, micro {micro:.3f}"
