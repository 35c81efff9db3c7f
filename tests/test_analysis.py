"""Text → tokens: what other tokenizers lose must be here."""

import sys
import unicodedata
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from retrievers import analysis
from retrievers.analysis import ENGLISH_STOP_WORDS, AnalysisError, AnalysisSettings, Analyzer
from retrievers.base import MissingExtra

analyze = Analyzer()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("강 옆 은행 물", ["강", "옆", "은행", "물"]),
        (
            "3.5% 1,200원 A-1 C++ C#",
            ["3.5", "1,200", "원", "a-1", "a", "1", "c++", "c#"],
        ),
        ("", []),
        (" .,;!? … ", []),
        ("a b", ["a", "b"]),
    ],
)
def test_nothing_is_lost(text: str, tokens: list[str]) -> None:
    assert analyze(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("예산", ["예산"]),
        ("서울시의 예산을", ["서울", "울시", "시의", "예산", "산을"]),
        ("我爱北京", ["我爱", "爱北", "北京"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("水", ["水"]),
        ("2024년 예산", ["2024", "년", "예산"]),
        ("3D프린터", ["3d", "프린", "린터"]),
        ("ㅋㅋ 예산", [*analyze("ㅋㅋ"), "예산"]),
    ],
)
def test_cjk_bigrams(text: str, tokens: list[str]) -> None:
    assert analyze(text) == tokens


def test_cjk_words() -> None:
    words = Analyzer(AnalysisSettings(cjk="words"))
    assert words("서울시의 예산을 2024년") == ["서울시의", "예산을", "2024", "년"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("3.14", ["3.14"]),
        ("It is 3.", ["it", "is", "3"]),
        ("1,234,567.89", ["1,234,567.89"]),
        ("1,2,3", ["1", "2", "3"]),
        ("12345,678 1,2345", ["12345", "678", "1", "2345"]),
        ("2024.11.30", ["2024.11.30", "2024", "11", "30"]),
        ("2024-11-30", ["2024-11-30", "2024", "11", "30"]),
        ("python-3.5", ["python-3.5", "python", "3.5"]),
        ("１２３", ["123"]),
    ],
)
def test_numbers(text: str, tokens: list[str]) -> None:
    assert analyze(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("collections.OrderedDict", ["collections.ordereddict", "collections", "ordereddict"]),
        ("os_path", ["os_path", "os", "path"]),
        ("os.path_join", ["os.path_join", "os.path", "os", "path", "join"]),
        ("__init__", ["init"]),
        ("AT&T", ["at&t", "at", "t"]),
        ("C++17 C++로 C#은", ["c++", "17", "c++", "로", "c#", "은"]),
        ("visual-c++", ["visual-c++", "visual", "c++"]),
        ("issue#5 i++j", ["issue", "5", "i", "j"]),
        ("end.Next, e.g. this", ["end.next", "end", "next", "e.g", "e", "g", "this"]),
    ],
)
def test_identifiers(text: str, tokens: list[str]) -> None:
    assert analyze(text) == tokens


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("TAX", "tax"),
        ("Straße", "STRASSE"),
        ("ＴＡＸ２", "tax2"),
        ("ﬁle", "file"),
        ("ｶﾞｲﾄﾞ", "ガイド"),
        (unicodedata.normalize("NFD", "서울 예산 café"), "서울 예산 CAFÉ"),
        ("co\u00adoperate", "cooperate"),
        ("\ufeffbudget", "budget"),
        ("葛\U000e0100城市", "葛城市"),
    ],
)
def test_forms_of_one_text(one: str, other: str) -> None:
    assert analyze(one) == analyze(other) != []


def test_combining_marks_do_not_break_words() -> None:
    assert analyze("हिन्दी भाषा") == ["हिन्दी", "भाषा"]
    assert analyze("தமிழ்") == ["தமிழ்"]


@given(st.text())
def test_every_letter_and_digit_is_in_some_token(text: str) -> None:
    letters = {char for char in analysis.normalise(text) if char.isalnum()}
    assert letters == {char for token in analyze(text) for char in token if char.isalnum()}


@given(st.text())
def test_tokens_are_the_same_whatever_the_form(text: str) -> None:
    tokens = analyze(text)
    assert all(tokens)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert analyze(unicodedata.normalize(form, text)) == tokens


@given(st.text(alphabet="ac1.-_&,#+ 가", max_size=30))
def test_signs_in_any_order(text: str) -> None:
    assert {char for token in analyze(text) for char in token} >= set(text) & set("ac1가")


def test_a_long_run_of_signs_takes_linear_time() -> None:
    assert len(analyze("a\u0323" * 20_000 + "-" * 20_000 + "1," * 20_000)) == 20_001


def test_stop_words() -> None:
    text = "The budget of THE city"
    assert analyze(text) == ["the", "budget", "of", "the", "city"]
    assert Analyzer(AnalysisSettings(stop_words="english"))(text) == ["budget", "city"]
    own = AnalysisSettings.model_validate({"stop_words": ["City", "ＯＦ"]})
    assert Analyzer(own)(text) == ["the", "budget", "the"]


def test_stop_words_are_words_and_no_more_than_common_ones() -> None:
    assert 30 <= len(ENGLISH_STOP_WORDS) <= 45
    assert {"the", "of", "and"} <= ENGLISH_STOP_WORDS
    assert "none" not in ENGLISH_STOP_WORDS


def test_stemming() -> None:
    pytest.importorskip("Stemmer")
    stem = Analyzer(AnalysisSettings(stemmer="english", stop_words="english"))
    assert stem("The budgets of cities: 예산") == ["budget", "citi", "예산"]


def test_an_unknown_stemmer() -> None:
    pytest.importorskip("Stemmer")
    with pytest.raises(AnalysisError, match=r"'klingon'.*english"):
        Analyzer(AnalysisSettings(stemmer="klingon"))


@pytest.mark.parametrize(
    "settings", [AnalysisSettings(stemmer="english"), AnalysisSettings(kiwi=True)]
)
def test_a_missing_package_names_the_extra(
    settings: AnalysisSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("Stemmer", "kiwipiepy"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r'pip install "rlqr\[text\]"'):
        Analyzer(settings)


class FakeKiwi:
    """Knows one sentence's morphemes, by their place in the text."""

    TAGS = (("세금", 0, "NNG"), ("을", 2, "JKO"), ("신고", 4, "NNG"), ("하", 6, "XSV"))

    def tokenize(self, text: str) -> list[SimpleNamespace]:
        tags = self.TAGS if text.startswith("세금을 신고하") else ()
        return [SimpleNamespace(form=form, start=start, tag=tag) for form, start, tag in tags]


def test_kiwi_keeps_what_has_meaning_and_loses_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = SimpleNamespace(Kiwi=FakeKiwi)
    monkeypatch.setattr(analysis, "import_extra", lambda module, extra: fake)
    kiwi = Analyzer(AnalysisSettings(kiwi=True))
    assert kiwi("세금을 신고하 2024 하는北京市 tax") == [
        *("세금", "신고", "2024", "하는", "北京", "京市", "tax")
    ]
    assert kiwi("예산을") == ["예산", "산을"]


def test_kiwi_itself() -> None:
    pytest.importorskip("kiwipiepy")
    kiwi = Analyzer(AnalysisSettings(kiwi=True))
    tokens = kiwi("세금을 신고하는 기한 2024 tax")
    assert tokens == ["세금", "신고", "기한", "2024", "tax"]


@pytest.mark.parametrize("wrong", [{"cjk": "trigrams"}, {"stop_words": "german"}, {"stem": "x"}])
def test_settings_are_checked(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        AnalysisSettings.model_validate(wrong)


def test_versions_name_what_is_used() -> None:
    assert AnalysisSettings().versions().keys() == {"analysis", "unicode"}
    pytest.importorskip("Stemmer")
    assert "PyStemmer" in AnalysisSettings(stemmer="english").versions()
