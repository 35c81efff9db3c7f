"""What can be seen of a text without a model: repetition, scripts."""

import unicodedata
from collections import Counter
from collections.abc import Sequence

_JAPANESE = frozenset({"HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"})
NO_SCRIPT = "none"


def repetition(text: str) -> float:
    """Share of a text that stood in it before: of its words or of its runs of four characters.

    Runs are for scripts without spaces, and for a loop inside of one word.
    """
    words = text.casefold().split()
    joined = " ".join(words)
    runs = [joined[start : start + 4] for start in range(len(joined) - 3)]
    return max(_repeated(words), _repeated(runs))


def scripts(text: str) -> list[str]:
    """The script of every letter: the first word of its Unicode name; Japanese writes in three."""
    names = _letters(text)
    return ["CJK" if name in _JAPANESE else name for name in names]


def main_script(text: str) -> str:
    """The script of most letters, in small letters: "latin", "hangul", "cyrillic", …

    A stand-in for the language where nobody says which it is: it tells Korean from English, not
    English from French. Chinese is "han"; a text with a tenth or more of kana is "japanese". A text
    without letters is "none".
    """
    names = Counter(_letters(text))
    if not names:
        return NO_SCRIPT
    kana = sum(names[name] for name in _JAPANESE)
    east = kana + names["CJK"]
    if kana >= 0.1 * east > 0 and east >= max(names.values()):
        return "japanese"
    found = min(names, key=lambda name: (-names[name], name))
    return "han" if found == "CJK" else found.lower()


def _letters(text: str) -> list[str]:
    letters = (char for char in unicodedata.normalize("NFKC", text) if char.isalpha())
    return [unicodedata.name(char, "?").split()[0] for char in letters]


def _repeated(parts: Sequence[str]) -> float:
    return 1 - len(set(parts)) / len(parts) if parts else 0.0
