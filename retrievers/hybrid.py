"""Reciprocal rank fusion: several backends' rankings become one.

Where all of them cut the documents into the same pieces, pieces are fused, and a document stands
where its best piece does; else documents are fused.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from retrievers.base import Documents, Hit, Retriever
from retrievers.chunks import ChunkHit, SearchesChunks
from retrievers.index import fingerprint

Found: TypeAlias = Hit | ChunkHit
Key = TypeVar("Key", bound=Hashable)


class PartSettings(BaseModel):
    """One of the rankings that are fused.

    Attributes:
        weight: factor of what the ranking adds.
        depth: ranks of it that count; None takes `HybridSettings.depth`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    depth: int | None = Field(default=None, ge=1)


class HybridSettings(BaseModel):
    """What is fused, and how; see `fuse` for the formula.

    Attributes:
        backends: by name; they take their settings from their own sections. [lexical, semantic],
            {lexical: 0.5, semantic: 1} (weights) and {lexical: {depth: 50}, semantic: {}} are read.
        rrf_k: the constant of the formula: the larger, the less the first ranks stand out.
        depth: ranks of each ranking that count. It does not grow with the number of hits asked
            for, so that the first hits are the same ones however many follow.
        chunk_depth: fused pieces taken before they are grouped to documents; None: all of them.
            Needs backends that share their pieces: the same `chunk_words` and `chunk_overlap`.
        gate: the keyword gate. The lexical ranking is left out for a query where another backend
            has hits and none of the first `gate_hits` lexical ones holds at least `gate_share` of
            the query's terms. It shuts too often for Korean, whose words stand with particles:
            many of a question's pairs of syllables are in no document.
        gate_hits, gate_share: see `gate`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    backends: dict[str, PartSettings] = {"lexical": PartSettings(), "semantic": PartSettings()}
    rrf_k: float = Field(default=20, ge=0, allow_inf_nan=False)
    depth: int = Field(default=100, ge=1)
    chunk_depth: int | None = Field(default=None, ge=1)
    gate: bool = False
    gate_hits: int = Field(default=20, ge=1)
    gate_share: float = Field(default=0.5, gt=0, le=1)

    @field_validator("backends", mode="before")
    @classmethod
    def _spread(cls, given: Any) -> Any:
        if isinstance(given, list | tuple):
            if len(set(map(str, given))) < len(given):
                raise ValueError(f"{list(given)} names a backend twice; name each once")
            return {name: {} for name in given}
        if not isinstance(given, Mapping):
            raise ValueError("name two backends or more, such as [lexical, semantic]")
        return {name: _part(one) for name, one in given.items()}

    @field_validator("backends")
    @classmethod
    def _others(cls, backends: dict[str, PartSettings]) -> dict[str, PartSettings]:
        from retrievers import RETRIEVERS

        allowed = sorted(RETRIEVERS.keys() - {"hybrid"})
        for name in backends:
            if name not in allowed:
                raise ValueError(f"no backend {name!r} to fuse; there are: {', '.join(allowed)}")
        if len(backends) < 2:
            raise ValueError("one ranking alone is not fused; name two backends or more")
        return backends

    @model_validator(mode="after")
    def _has_keywords(self) -> "HybridSettings":
        if self.gate and "lexical" not in self.backends:
            raise ValueError("gate: true leaves out the lexical ranking, and `backends` has none")
        for name in ("gate_hits", "gate_share"):
            given, usual = getattr(self, name), type(self).model_fields[name].default
            if given != usual and not self.gate:
                raise ValueError(f"{name} is {given}, and the gate is off: give gate: true too")
        return self

    @property
    def part_names(self) -> tuple[str, ...]:
        """The backends that have to be built first."""
        return tuple(self.backends)

    def depth_of(self, name: str) -> int:
        """Ranks of a backend's ranking that count."""
        return self.backends[name].depth or self.depth


@runtime_checkable
class _Covers(Protocol):
    def coverage(
        self, queries: Sequence[str], hits: Sequence[Sequence[Found]]
    ) -> list[list[float]]: ...


class HybridRetriever(Retriever):
    """Reciprocal rank fusion of other backends over the same documents.

    Hits with equal scores stand in corpus order; ids that are in no document of the collection
    come after those that are, in the order of the backends that found them.

    Args:
        collection: what the backends search.
        settings: the defaults if None.
        index_dir: not used; the parts have the indexes.
        parts: name → backend, for all in `settings.backends`.
        cache_size: answers to keep.

    Attributes:
        by_chunks: whether pieces are fused.

    Raises:
        ValueError: a part is missing, the gate is on and the lexical part has no `coverage`, or
            there is a `chunk_depth` and the parts share no pieces.

    A search raises what the search of a part raises.
    """

    backend = "hybrid"
    keeps_index = False

    def __init__(
        self,
        collection: Documents,
        settings: HybridSettings | None = None,
        index_dir: Path | None = None,
        *,
        parts: Mapping[str, Retriever],
        cache_size: int = 4096,
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.settings = settings or HybridSettings()
        missing = [name for name in self.settings.part_names if name not in parts]
        if missing:
            raise ValueError(f"`parts` lacks {', '.join(missing)}, which the settings name")
        self.parts = {name: parts[name] for name in self.settings.part_names}
        self._weights = [one.weight for one in self.settings.backends.values()]
        self._positions = {identity: row for row, identity in enumerate(collection.ids)}
        self._keywords = self._gated()
        self.by_chunks = self._share_chunks()
        self.fingerprint = fingerprint(
            {
                "documents": collection.fingerprint,
                "settings": self.settings.model_dump(mode="json"),
                "parts": {name: part.fingerprint for name, part in self.parts.items()},
            }
        )

    @property
    def facts(self) -> dict[str, Any]:
        """What is fused, and the facts of each backend whose rankings are."""
        return super().facts | {
            "fused": "pieces" if self.by_chunks else "documents",
            "parts": {name: part.facts for name, part in self.parts.items()},
        }

    def _search(self, queries: list[str], k: int) -> list[list[Hit]]:
        rankings = self._rankings(queries)
        if self._keywords is not None:
            self._close_gate(queries, rankings, self._keywords)
        per_query = zip(*rankings.values(), strict=True)
        return [self._fused(lists)[:k] for lists in per_query]

    def _rankings(self, queries: list[str]) -> dict[str, list[list[Found]]]:
        """Part → one ranking a query, of pieces or of documents."""
        found: dict[str, Any] = {}
        for name, part in self.parts.items():
            depth = self.settings.depth_of(name)
            if self.by_chunks:
                found[name] = cast(SearchesChunks, part).search_chunks(queries, depth)
            else:
                found[name] = part.search(queries, depth)
        return found

    def _fused(self, rankings: Iterable[Sequence[Found]]) -> list[Hit]:
        keys = [[_key(hit) for hit in hits] for hits in rankings]
        scores = fuse(keys, self._weights, self.settings.rrf_k)
        last = len(self._positions)

        def place(key: tuple[str, int]) -> tuple[float, int, int]:
            return -scores[key], self._positions.get(key[0], last), key[1]

        best: dict[str, float] = {}
        for key in sorted(scores, key=place)[: self.settings.chunk_depth]:
            best.setdefault(key[0], scores[key])
        return [Hit(identity, score) for identity, score in best.items()]

    def _share_chunks(self) -> bool:
        cuts = {getattr(part, "chunks", None) for part in self.parts.values()}
        shared = len(cuts) == 1 and None not in cuts
        if self.settings.chunk_depth is not None and not shared:
            raise ValueError(
                f"chunk_depth is {self.settings.chunk_depth}, but {', '.join(self.parts)} do not "
                "cut documents into the same pieces; give all of them the same chunk_words and "
                "chunk_overlap, or leave chunk_depth out"
            )
        return shared

    def _gated(self) -> _Covers | None:
        part = self.parts["lexical"] if self.settings.gate else None
        if part is None or isinstance(part, _Covers):
            return part
        raise ValueError(
            f"gate: true needs a lexical backend with `coverage`, and {type(part).__name__} has "
            "none; leave the gate off"
        )

    def _close_gate(
        self, queries: list[str], rankings: dict[str, list[list[Found]]], keywords: _Covers
    ) -> None:
        first = [hits[: self.settings.gate_hits] for hits in rankings["lexical"]]
        shares = keywords.coverage(queries, first)
        others = [found for name, found in rankings.items() if name != "lexical"]
        for row, covered in enumerate(shares):
            weak = max(covered, default=0.0) < self.settings.gate_share
            if weak and any(found[row] for found in others):
                rankings["lexical"][row] = []


def fuse(
    rankings: Sequence[Sequence[Key]], weights: Sequence[float], rrf_k: float
) -> dict[Key, float]:
    """Reciprocal rank fusion of Cormack, Clarke and Büttcher (SIGIR 2009), with weights.

        score(d) = Σ over the rankings that hold d of  weight / (rrf_k + rank of d),  first rank 1

    The paper takes 60 for `rrf_k`.

    Args:
        rankings: (L,) ids of documents or pieces, best first.
        weights: (L,) of the rankings.
        rrf_k: the constant.

    Returns:
        id → score, in the order in which the ids appear.
    """
    terms: dict[Key, list[float]] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, identity in enumerate(dict.fromkeys(ranking), start=1):
            terms.setdefault(identity, []).append(weight / (rrf_k + rank))
    # Summed exactly: equal terms in another order must tie.
    return {identity: fsum(some) for identity, some in terms.items()}


def _key(hit: Found) -> tuple[str, int]:
    """What makes two hits one: the document, and the piece if it was cut."""
    return hit.id, hit.number if isinstance(hit, ChunkHit) else 0


def _part(given: Any) -> Any:
    if isinstance(given, bool) or not isinstance(given, int | float):
        return {} if given is None else given
    return {"weight": given}
