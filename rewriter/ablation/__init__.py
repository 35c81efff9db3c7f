"""A grid of trainings, each evaluated on every backend: what `rlqr ablate` does.

grid.py      the YAML file → its runs: what each one changes
evaluate.py  its section `evaluate`
levels.py    an axis → its levels and their keys
checks.py    what would fail, or be lost, only after hours of training
items.py     runs → resolved configurations, fingerprints, steps
state.py     what is finished, on disk
claims.py    which worker does what, so that several can share one folder
cores.py     whether workers of one machine are in each other's way
worker.py    one worker: claim, train, evaluate, until nothing is left
process.py   a command that ends when its worker does
reuse.py     runs that were trained before, and how long their steps took
cells.py     evaluations → matrices with intervals over seeds and queries
matrix.py    any two axes as a table, transfer losses
curves.py    held-out curves, at equal completions
results.py   matrices, transfer losses, factors, curves → JSON, CSV, Markdown
progress.py  how far it is, what it costs, how long the rest takes
job.py       one training or one evaluation, in a process of its own
report_folder.py   all of it as a folder that a page is made of
"""
