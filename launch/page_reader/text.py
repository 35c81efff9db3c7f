"""Training text for the page reader: random words, so that it holds no sentence of anyone's.

Words are drawn from the demo's vocabulary, flattened towards the rare ones, and from invented
words made of syllables; punctuation, calls and dotted names are put around them by chance.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

WORD = re.compile(r"[A-Za-z0-9_]+")
FLATTENING = 0.6  # a word's weight is its count to this power
INVENTED = 0.2  # share of invented words
ONSETS = """
b bl br c ch cl cr d dr f fl fr g gl gr h j k l m n p pl pr qu r s sc sh sl sp st t tr v w wh x y z
"""
VOWELS = "a e i o u ai ea ee io ou oo y"
CODAS = "- - - ck ct d f l ll m n nd ng nt p r rd s ss st t x"  # -: none


class TextMaker:
    """Random words and paragraphs.

    Args:
        texts: where the vocabulary comes from; only the words are kept, not their order.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        counts = Counter(word for text in texts for word in WORD.findall(text))
        self.words = sorted(counts)
        total = 0.0
        self.weights = [total := total + counts[word] ** FLATTENING for word in self.words]

    def word(self, random: Random, words: Sequence[str] = ()) -> str:
        """words: given some, half of the time one of them."""
        if words and random.random() < 0.5:
            return random.choice(words)
        if random.random() < INVENTED:
            return invented(random)
        drawn: str = random.choices(self.words, cum_weights=self.weights)[0]
        return drawn

    def name(self, random: Random) -> str:
        """A dotted name, as a title has it."""
        return ".".join(self.word(random) for _ in range(random.randint(1, 3)))

    def text(self, random: Random, characters: int, words: Sequence[str] = ()) -> str:
        """Paragraphs of at least so many characters in all."""
        parts: list[str] = []
        while sum(map(len, parts)) < characters:
            count = random.choice((3, 5, 8, 12, 16, 24, 32, 40))
            parts.append(" ".join(self._decorated(random, words) for _ in range(count)))
        return "\n\n".join(parts)

    def _decorated(self, random: Random, words: Sequence[str]) -> str:
        word, chance = self.word(random, words), random.random()
        if chance < 0.65:
            return word
        if chance < 0.85:
            return word + random.choice(",.:;,.")
        if chance < 0.90:
            return random.choice(("'{}'", '"{}"', "({})", "`{}`", "[{}]", "*{}*")).format(word)
        other = self.word(random, words)
        shape = random.choice(("{}({})", "{}.{}", "{}={}", "{}-{}", "{}_{}", "{}.{}()", "{}/{}"))
        return shape.format(word, other)


def invented(random: Random) -> str:
    """A word of one to four syllables, at times a number or in another case."""
    if random.random() < 0.1:
        return str(random.randrange(10 ** random.randint(1, 4)))
    word = "".join(_syllable(random) for _ in range(random.choice((1, 2, 2, 3, 3, 4))))
    return random.choice((word, word, word, word.capitalize(), word.upper()))


def _syllable(random: Random) -> str:
    coda = random.choice(CODAS.split())
    return random.choice(ONSETS.split()) + random.choice(VOWELS.split()) + coda.strip("-")
