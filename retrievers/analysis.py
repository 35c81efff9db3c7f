"""Text → tokens, by Unicode and for any language; documents and queries go the same way.

Text is brought to NFKC and case-folded, so that NFD, full-width and upper-case forms are one. Then

- words are runs of letters, digits and their combining marks, one letter included;
- numbers keep their inner marks: 3.5, 1,200; `c++`, `c#` and the like keep their signs;
- words joined by . - _ & give the whole and its parts: os.path → os.path, os, path;
- Chinese, Japanese and Korean, where spaces do not part words as others do, give overlapping
  bigrams: 예산을 → 예산, 산을. A run of one character stays as it is.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from retrievers.base import extra_version, import_extra

# Raised whenever the same text gives other tokens: indexes built before are then refused.
ANALYSIS_VERSION = 1

# Lucene's English set, which most published BM25 figures use, and the commonest forms it lacks.
ENGLISH_STOP_WORDS: frozenset[str] = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by for from has have if in into is it its no not of on or such "
        "that the their then there these they this to was were will with",
    )
)

_HANGUL = r"\u1100-\u11ff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
HAN_AND_KANA = (
    r"\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00016fe0-\U00016fe3\U0001b000-\U0001b16f"
    r"\U00020000-\U0003ffff"
)
_CJK = _HANGUL + HAN_AND_KANA
_DECIMAL = re.compile(r"\d[\d,]*\.\d+")
_JOINERS = re.compile(r"[-_&]")
_SAME_SCRIPT = re.compile(f"[{_HANGUL}]+|[^{_HANGUL}]+")
# Invisible inside words: soft hyphen, joiners, byte-order mark, variation selectors.
_INVISIBLE = dict.fromkeys(
    [0xAD, 0x200C, 0x200D, 0x2060, 0xFEFF, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]
)
# Kiwi's tags that carry meaning: nouns, verbs, modifiers, roots, interjections; not particles,
# endings, affixes, copulas, auxiliaries and signs.
_MEANING = ("NN", "NP", "NR", "VV", "VA", "MM", "MA", "XR", "IC", "UN")

Morpheme: TypeAlias = tuple[int, str]  # where it starts, what it is


class AnalysisError(ValueError):
    """A stemmer that does not exist."""


class AnalysisSettings(BaseModel):
    """How text becomes tokens.

    Attributes:
        cjk: overlapping bigrams of Chinese, Japanese and Korean runs, or whole runs.
        kiwi: Korean morphemes by Kiwi instead; other CJK runs stay as `cjk` says (extra `text`).
        stop_words: tokens to leave out: none, a short English list, or your own.
        stemmer: a Snowball language such as "english" (extra `text`); None for no stemming.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    cjk: Literal["bigrams", "words"] = "bigrams"
    kiwi: bool = False
    stop_words: Literal["none", "english"] | tuple[str, ...] = "none"
    stemmer: str | None = None

    def versions(self) -> dict[str, str]:
        """Versions of everything that decides what the tokens are, for an index's manifest."""
        packages = ["kiwipiepy", "kiwipiepy-model"] if self.kiwi else []
        packages += ["PyStemmer"] if self.stemmer else []
        known = {
            "analysis": str(ANALYSIS_VERSION),
            "unicode": unicodedata.unidata_version,
        }
        return known | {name: extra_version(name, "text") for name in packages}


class Analyzer:
    """Callable: text → tokens in order, with repetitions.

    Raises:
        AnalysisError: the stemmer's language is unknown.
        MissingExtra: a package of the extra `text` is needed and missing.
    """

    def __init__(self, settings: AnalysisSettings | None = None) -> None:
        settings = settings or AnalysisSettings()
        self._cjk = settings.cjk
        self._pattern = _pattern()
        self._stop = _stop_words(settings.stop_words)
        self._stem = _stemmer(settings.stemmer)
        self._kiwi = import_extra("kiwipiepy", "text").Kiwi() if settings.kiwi else None

    def __call__(self, text: str) -> list[str]:
        text = normalise(text)
        morphemes = self._morphemes(text)
        tokens = list(chain.from_iterable(self._scan(text, morphemes)))
        if self._stop:
            tokens = [token for token in tokens if token not in self._stop]
        return self._stem(tokens) if self._stem else tokens

    def _scan(self, text: str, morphemes: list[Morpheme]) -> Iterator[Sequence[str]]:
        for match in self._pattern.finditer(text):
            token = match.group()
            if match.lastgroup != "cjk":
                yield (token,) if token.isalnum() else _with_parts(token)
            elif morphemes:
                yield from self._meanings(match.start(), token, morphemes)
            else:
                yield self._run(token)

    def _run(self, run: str) -> Sequence[str]:
        if self._cjk == "words" or len(run) == 1:
            return (run,)
        return [first + second for first, second in pairwise(run)]

    def _morphemes(self, text: str) -> list[Morpheme]:
        if self._kiwi is None:
            return []
        found = self._kiwi.tokenize(text)
        return [(token.start, token.form) for token in found if token.tag.startswith(_MEANING)]

    def _meanings(self, start: int, run: str, morphemes: list[Morpheme]) -> Iterator[Sequence[str]]:
        for piece in _SAME_SCRIPT.finditer(run):
            first = bisect_left(morphemes, (start + piece.start(), ""))
            last = bisect_left(morphemes, (start + piece.end(), ""))
            # A piece in which Kiwi sees no meaning is kept all the same: nothing may get lost.
            yield [form for _, form in morphemes[first:last]] or self._run(piece.group())


def normalise(text: str) -> str:
    """NFKC, case-folded, without invisible characters: the form in which tokens are compared."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).translate(_INVISIBLE).casefold()
    return unicodedata.normalize("NFKC", folded)


def _with_parts(token: str) -> list[str]:
    parts = _JOINERS.split(token)
    if len(parts) == 1:
        parts = [token] if _DECIMAL.fullmatch(token) else token.split(".")
    if len(parts) == 1:
        return parts
    return [token, *chain.from_iterable(map(_with_parts, parts))]


@cache
def _pattern() -> re.Pattern[str]:
    letter = rf"[^\W_{_CJK}]"
    # `\w` leaves combining marks out, and without them Hindi or Tamil words fall to pieces.
    word = f"{letter}+(?:[{_marks()}]+{letter}*)*"
    # c++, g++, c#, f#, also before a Korean particle and in c++17; but not issue#5 or i++j.
    sign = rf"[a-z]{{1,2}}(?:\+\+(?!(?!\d){letter})|#(?!{letter}))"
    thousands = r"\d{1,3}(?:,\d{3})+(?!\d)"
    atom = f"(?:{sign}|{thousands}|{word})"
    return re.compile(f"(?P<cjk>[{_CJK}]+)|{atom}(?:[-._&]{atom})*")


def _marks() -> str:
    found = map(chr, range(0x300, 0x20000))
    return "".join(mark for mark in found if unicodedata.category(mark).startswith("M"))


def _stop_words(chosen: Literal["none", "english"] | tuple[str, ...]) -> frozenset[str]:
    if chosen == "none":
        return frozenset()
    return ENGLISH_STOP_WORDS if chosen == "english" else frozenset(map(normalise, chosen))


def _stemmer(language: str | None) -> Callable[[list[str]], list[str]] | None:
    if language is None:
        return None
    snowball: Any = import_extra("Stemmer", "text")
    if language not in snowball.algorithms():
        allowed = ", ".join(snowball.algorithms())
        raise AnalysisError(f"stemmer is {language!r}; it must be null or one of {allowed}")
    stem: Callable[[list[str]], list[str]] = snowball.Stemmer(language).stemWords
    return stem
