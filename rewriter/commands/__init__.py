"""The commands of `rlqr`, one module each; `rewriter.cli.COMMANDS` lists them."""
