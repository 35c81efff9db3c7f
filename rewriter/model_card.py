"""The model card that lies beside the best adapter."""

from collections.abc import Mapping

from rewriter.config import Config
from rewriter.evaluation import Result
from rewriter.policy import MANIFEST
from rewriter.tables import markdown
from rewriter.training_data import TrainingData


def card(
    config: Config,
    data: TrainingData,
    step: int,
    result: Result,
    labels: Mapping[str, str],
) -> str:
    """The card: base model, rewards, data, the step, and a table for each backend."""
    collection = data.collection
    tables = "\n\n".join(markdown(result, backend, labels=labels) for backend in result)
    backends = ", ".join(
        f"{name} ({config.reward.label(name)}, weight {reward.weight:g})"
        for name, reward in config.reward.backends.items()
    )
    return f"""---
library_name: peft
base_model: {config.model.name}
tags: [query-rewriting, information-retrieval, grpo, lora, rlqr]
---

# Query rewriter for `{collection.name}`

A LoRA adapter that rewrites search queries, trained with GRPO. Its reward was the search itself:
whether the rewritten query brings back the document that the query was written from.

- base model: `{config.model.name}`
- rewards: {backends}
- training queries: {len(data.rows)}; documents: {len(collection)}
- best step by held-out NDCG@3: {step}

## Held-out results

{tables}

Intervals are 95% percentile bootstrap over queries; the last columns are paired with the raw query.

## Use

```python
from rewriter import Rewriter

rewriter = Rewriter.from_pretrained("path/to/this/folder")
print(rewriter.rewrite(["…"]))
```

The prompt, the token limit, the resolved configuration, library versions and the fingerprints of
data and indexes are in `{MANIFEST}`.
"""
