"""Documents → queries, with no annotation: what `rlqr synth` does.

- `settings`, `prompts`: what is asked of the generator, and how its answer is read;
- `generators`: who answers; `journal`: every answer, so that none is asked for twice;
- `filters`: which queries are kept;
- `pipeline`: all of it, top to bottom; `output`, `card`: what is left behind.
"""
