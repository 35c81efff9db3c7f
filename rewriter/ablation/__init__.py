"""A grid of trainings, each evaluated on every backend: what `rlqr ablate` does.

grid.py      the YAML file → its runs: what each one changes
items.py     runs → resolved configurations, fingerprints, steps
state.py     what is finished, on disk
claims.py    which worker does what, so that several can share one folder
worker.py    one worker: claim, train, evaluate, until nothing is left
process.py   a command that ends when its worker does
reuse.py     runs that were trained before, and how long their steps took
cells.py     evaluations → matrices with intervals over seeds and queries
results.py   matrices, transfer losses, factors → JSON, CSV, Markdown, a page
"""
