"""Search of page images: pages and queries become several vectors each, compared one by one.

- `settings`: of the backend;
- `retriever`: the backend;
- `families`, `loading`, `encoder`: the model of colpali-engine;
- `vectors`, `stored`: pages → vectors on disk, built in shards that survive a kill;
- `maxsim`: late interaction;
- `centroids`: a first stage, which looks up the pages worth scoring;
- `pooled`: one vector a page, alone or as a first stage.
"""

from retrievers.multimodal.retriever import MultimodalRetriever
from retrievers.multimodal.settings import MultimodalSettings

__all__ = ["MultimodalRetriever", "MultimodalSettings"]
