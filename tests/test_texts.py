"""What is seen of a text without a model."""

import pytest

from rewards.texts import main_script, repetition, scripts


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("how long is a day?", "latin"),
        ("서울시 예산 공고", "hangul"),
        ("PDF 예산 공고문", "hangul"),
        ("预算公告", "han"),
        ("予算を公告する", "japanese"),  # two of seven letters are no kana
        ("カタカナ", "japanese"),
        ("бюджет", "cyrillic"),
        ("ＡＢＣ", "latin"),  # full width
        ("3.5 % !", "none"),
        ("", "none"),
    ],
)
def test_main_script(text: str, script: str) -> None:
    assert main_script(text) == script


def test_scripts_of_letters() -> None:
    assert scripts("aé 가1カ漢") == ["LATIN", "LATIN", "HANGUL", "CJK", "CJK"]


def test_repetition() -> None:
    assert repetition("one two three") == 0
    assert repetition("budget budget budget budget") == pytest.approx(0.75)
    assert repetition("") == 0
