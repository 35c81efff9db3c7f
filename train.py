"""Train a query rewriter against your search.

    accelerate launch train.py
    accelerate launch train.py --config configs/demo.yaml --trainer.learning_rate 1e-4
    accelerate launch train.py --config my.yaml --resume
    accelerate launch train.py --config my.yaml --print_config

Every setting of the file can be given as --section.key VALUE. Results go to the folder `output`.
"""

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter

from rewriter.config import load
from rewriter.console import configure_logging, fail_in_one_line


def main() -> None:
    """Parse the command line, read the configuration, train."""
    parser = ArgumentParser(
        description=__doc__, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--config", default="configs/demo.yaml", help="YAML file (%(default)s)")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--overwrite", metavar="DIR", help="replace the finished run in DIR")
    parser.add_argument("--print_config", action="store_true", help="show the resolved YAML, stop")
    options, overrides = parser.parse_known_args()
    configure_logging()
    with fail_in_one_line():
        config = load(options.config, overrides)
        if options.print_config:
            sys.stdout.write(config.to_yaml())
            return
        from rewriter.training import train

        train(config, resume=options.resume, overwrite=options.overwrite)


if __name__ == "__main__":
    main()
