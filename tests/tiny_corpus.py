"""Documents in memory, for tests of search engines."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass
class Corpus:
    """Documents d0, d1, ... with these texts."""

    all_texts: Sequence[str]
    titles: Sequence[str] = ()

    @property
    def ids(self) -> list[str]:
        return [f"d{n}" for n in range(len(self.all_texts))]

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(repr(list(self.texts())).encode()).hexdigest()

    def texts(self) -> Iterator[tuple[str, str]]:
        titles = self.titles or [""] * len(self.all_texts)
        yield from zip(titles, self.all_texts, strict=True)
