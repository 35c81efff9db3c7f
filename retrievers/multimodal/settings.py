"""Settings of the multimodal backend."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from retrievers.multimodal.centroids import CentroidSettings
from retrievers.pages.page import PageSettings
from retrievers.semantic.stored import DType

MIN_CANDIDATES = 100  # ranks that the reward "rank" and an evaluation look at
# Arguments of `from_pretrained` that the loader gives itself, and what to do instead.
INSTEAD = {
    "pretrained_model_name_or_path": "give `model`",
    "revision": "give the setting `revision`",
    "dtype": "give `model_dtype`",
    "torch_dtype": "give `model_dtype`",
    "device_map": "give `device`",
    "output_loading_info": "every loading is checked; leave it out",
}


class MultimodalSettings(BaseModel):
    """The model, the pages it reads, and how their vectors are kept and searched.

    Attributes:
        model: of a family of colpali-engine, or a peft adapter of one: a hub id, a folder,
            `package:NAME`, or `bundled:page-reader`, which is small and reads rendered text.
        revision: of a hub id.
        model_kwargs: further arguments of the weights' `from_pretrained` (`quantization_config`);
            what has a setting of its own is refused.
        device: the model runs on; None: an accelerator if there is one, else the CPU.
        model_dtype: of the weights; "auto" is bfloat16 on a GPU that computes in it, else float32.
        batch_size: pages, or queries, encoded at once.
        max_image_tokens: vectors that the image of a page becomes at most; it is scaled down to
            that. None: as many as the model's own processor allows.
        pages: where page images come from, their resolution, how text is rendered. A document is
            found by its best page. To have pages found, search a collection whose documents are
            pages: of the loader `files` with `pdf: pages`, of `vidore` or `kopub`, or of your own.
        scoring: "maxsim" is late interaction: the sum, over the query's vectors, of the largest
            product with a vector of the page. "pooled" compares one mean vector of the query with
            one of the page.
        candidates: share of the pages, those with the best score of the first stage, to which late
            interaction is confined; None: all pages, exactly.
        min_candidates: documents that the candidates hold at least, whatever the share: as many as
            are ever asked for, such as the 100 that an evaluation looks at. The candidates do not
            depend on how many hits are wanted, so a search for more than they hold brings back
            fewer.
        first_stage: "centroids" looks up the pages that hold vectors like those of the query (see
            `retrievers.multimodal.centroids`); "pooled" compares the mean vectors.
        centroids: parameters of the former.
        dtype: of the vectors in the index; scores are float32 in any case.
        block_vectors: vectors of pages scored at once at most, whatever the number of pages.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model: str = "bundled:page-reader"
    revision: str | None = None
    model_kwargs: dict[str, Any] = {}
    device: str | None = None
    model_dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    batch_size: int = Field(default=8, ge=1)
    max_image_tokens: int | None = Field(default=None, ge=1)
    pages: PageSettings = PageSettings()
    scoring: Literal["maxsim", "pooled"] = "maxsim"
    candidates: float | None = Field(default=None, gt=0, lt=1)
    min_candidates: int = Field(default=MIN_CANDIDATES, ge=1)
    first_stage: Literal["centroids", "pooled"] = "centroids"
    centroids: CentroidSettings = CentroidSettings()
    dtype: DType = "float16"
    block_vectors: int = Field(default=4096, ge=64)

    @field_validator("model_kwargs")
    @classmethod
    def _further(cls, given: dict[str, Any]) -> dict[str, Any]:
        for name in given:
            if name in INSTEAD:
                raise ValueError(f"{name!r} is set here already: {INSTEAD[name]}")
        return given

    @model_validator(mode="after")
    def _fits(self) -> "MultimodalSettings":
        if self.scoring == "pooled" and self.candidates is not None:
            raise ValueError(
                "candidates confine late interaction, and scoring 'pooled' has none; leave it out"
            )
        if self.candidates is None and self.first_stage != "centroids":
            raise ValueError(
                "first_stage chooses the candidates of late interaction, and there are none: give "
                "candidates too, such as 0.02"
            )
        if self.candidates is None and self.min_candidates != MIN_CANDIDATES:
            raise ValueError(
                "min_candidates has an effect with candidates only; give those too, such as 0.02, "
                "or leave it out"
            )
        if self.centroids != CentroidSettings() and not self.by_centroids:
            raise ValueError(
                "centroids have an effect with candidates and first_stage 'centroids' only; give "
                "those too, or leave it out"
            )
        return self

    @property
    def by_centroids(self) -> bool:
        """Whether centroids lead to the candidates."""
        return self.candidates is not None and self.first_stage == "centroids"
