"""Which language a text may be in, as far as its letters tell."""

import re
from itertools import islice

LOOKED_AT = 400  # letters of a text

# Kana is Japanese whatever stands beside it; ideographs alone are taken for Chinese.
SCRIPTS = {
    "Korean": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "Japanese": "\u3040-\u30ff",
    "Chinese": "\u3400-\u9fff\uf900-\ufaff",
    "Cyrillic script": "\u0400-\u052f",
    "Greek": "\u0370-\u03ff",
    "Arabic script": "\u0600-\u06ff\u0750-\u077f",
    "Hebrew": "\u0590-\u05ff",
    "Devanagari script": "\u0900-\u097f",
    "Thai": "\u0e00-\u0e7f",
    "Latin script": "A-Za-z\u00c0-\u024f\u1e00-\u1eff",
}
_LETTERS = {name: re.compile(f"[{ranges}]") for name, ranges in SCRIPTS.items()}
_ASCII = re.compile("[A-Za-z]")
_JAPANESE = 0.1  # share of kana from which a text with ideographs is Japanese
NONE, OTHER = "no letters", "another script"


def language(text: str) -> str:
    """A key of `SCRIPTS`, `OTHER` or `NONE`: that of most letters among the first ones.

    Languages that share a script are not told apart: for English and French it is "Latin script".
    """
    if text.isascii():
        return "Latin script" if _ASCII.search(text) else NONE
    letters = "".join(islice((c for c in text if c.isalpha()), LOOKED_AT))
    if not letters:
        return NONE
    counts = {name: len(pattern.findall(letters)) for name, pattern in _LETTERS.items()}
    if counts["Japanese"] >= _JAPANESE * (counts["Japanese"] + counts["Chinese"]):
        counts["Japanese"] += counts.pop("Chinese") if counts["Japanese"] else 0
    found = max(counts, key=lambda name: counts[name])
    return found if counts[found] else OTHER
