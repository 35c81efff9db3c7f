"""What a worker has done in a process of its own: one training, or one evaluation.

    python -m rewriter.ablation.job train CONFIG [--resume]
    python -m rewriter.ablation.job evaluate CONFIG --output DIR --backends a,b [--system raw …]

`accelerate launch -m rewriter.ablation.job train CONFIG` trains on several devices.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from rewriter.commands.arguments import names
from rewriter.config import load
from rewriter.console import configure_logging, fail_in_one_line


def main(words: Sequence[str] | None = None) -> None:
    """Parse the command line and do it."""
    parser = ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("what", choices=("train", "evaluate"))
    parser.add_argument("config")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--output")
    parser.add_argument("--backends", type=names)
    parser.add_argument("--system", action="append", default=[])  # a path may hold commas
    parser.add_argument("--checkpoint", action="append", default=[])
    parser.add_argument("--split")
    options = parser.parse_args(words)
    configure_logging()
    with fail_in_one_line():
        if options.what == "train":
            _train(options)
        else:
            _evaluate(options)


def _train(options: Namespace) -> None:
    from rewriter.training import train

    train(load(options.config), resume=options.resume)


def _evaluate(options: Namespace) -> None:
    from rewriter.evaluation.run import run

    config = load(options.config)
    if config.threads is not None:
        import torch

        torch.set_num_threads(config.threads)
    run(
        config,
        options.output,
        systems=options.system,
        checkpoints=options.checkpoint,
        backends=options.backends,
        split=options.split,
    )


if __name__ == "__main__":
    main()
