"""Search by meaning: texts and queries become vectors, the nearest ones are found.

- `settings`: of the backend;
- `retriever`: the backend;
- `encoder`: the sentence-transformers model;
- `vectors`: documents → vectors on disk, built in shards that survive a kill;
- `scoring`: similarity of vectors, and the bound of its rounding error;
- `exact`, with its `candidates`, and `hnsw`: which vectors are nearest;
- `overlap`: how many of them a graph misses.
"""

from retrievers.semantic.retriever import SemanticRetriever
from retrievers.semantic.settings import SemanticSettings

__all__ = ["SemanticRetriever", "SemanticSettings"]
