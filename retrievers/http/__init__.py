"""A search engine behind HTTP: any that answers in JSON.

A request is built from a template; ids and scores are taken from the answer by JMESPath. See
configs/backends/opensearch.yaml for a complete example.
"""

from retrievers.http.retriever import HttpRetriever
from retrievers.http.settings import HttpSettings

__all__ = ["HttpRetriever", "HttpSettings"]
