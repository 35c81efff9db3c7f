"""Documents that are alike: leaks between splits, near-duplicates, and splits that divide none."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.identity import CollectionError, UnknownNameError
from retrievers.leaks import LeakError, check_leaks, near_duplicates, near_leaks
from retrievers.splitting import split_by_document
from tests.tiny_collections import toy

WORDS = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]


def test_leaks_warn_on_load_and_stop_training() -> None:
    leaky = toy({"a": "x", "b": "y"}, {"train": {"q": {"a": 1}}, "test": {"q": {"b": 0, "a": 2}}})
    assert len(leaky.warnings) == 2
    assert "1 query ids are in both 'test' and 'train', for example 'q'" in leaky.warnings[0]
    assert "1 relevant documents are in both 'test' and 'train'" in leaky.warnings[1]
    assert check_leaks(leaky, strict=False) == leaky.warnings
    with pytest.raises(LeakError, match=r"(?s)query ids.*relevant documents"):
        check_leaks(leaky)


def test_a_document_of_grade_0_does_not_leak() -> None:
    clean = toy({"a": "x", "b": "y"}, {"train": {"q": {"a": 1, "b": 0}}, "test": {"r": {"b": 1}}})
    assert clean.warnings == []
    assert check_leaks(clean) == []


def test_near_duplicates_by_hand() -> None:
    """12 words are 10 runs of three; without the last word 9 of the 10 remain."""
    texts = {
        "x": " ".join(WORDS[:11]).upper() + "!",
        "y": "nothing of the kind is said in this one",
        "w": " ".join(WORDS),
        "v": " ".join(WORDS[:6] + WORDS[7:]),  # 9 runs
        "blank": "",
        "empty": " \n",
    }
    collection = toy(texts)
    # v: the 4 runs within words 1-6, 2 over the gap, the 3 within 8-12; 7 shared of 9 + 10 - 7.
    assert near_duplicates(collection, collection.ids) == [("x", "w", 0.9)]
    assert near_duplicates(collection, ["w", "v", "w"], 0.58) == [("w", "v", 7 / 12)]
    assert near_duplicates(collection, ["w", "v"], 0.59) == []
    assert near_duplicates(collection, []) == near_duplicates(collection, ["blank", "empty"]) == []
    assert len(near_duplicates(toy(dict.fromkeys("abcd", "p q")), "abcd", most=3)) == 3
    with pytest.raises(CollectionError, match="threshold 0"):
        near_duplicates(collection, ["w"], 0)
    with pytest.raises(UnknownNameError, match="'z'"):
        near_duplicates(collection, ["z"])


def test_near_duplicates_without_spaces() -> None:
    one = "\u4eca\u5929\u5929\u6c14\u5f88\u597d\u6211\u4eec\u53bb\u516c\u56ed"  # 11 characters
    collection = toy({"a": one, "b": one + "\u5427", "c": one[::-1]})
    assert near_duplicates(collection, collection.ids) == [("a", "b", 0.9)]  # 9 runs of 10


def runs(text: str) -> set[str]:
    words = text.split()
    return {" ".join(words[i : i + 3]) for i in range(max(len(words) - 2, 1))} if words else set()


@given(
    st.lists(st.lists(st.sampled_from("abc"), max_size=9).map(" ".join), min_size=1, max_size=12),
    st.sampled_from([0.2, 0.5, 0.6, 0.8, 1.0]),
)
def test_near_duplicates_are_those_of_all_pairs(texts: Sequence[str], threshold: float) -> None:
    collection = toy({str(i): text for i, text in enumerate(texts)})
    sets = [runs(text) for text in texts]
    expected = []
    for b in range(len(texts)):
        for a in range(b):
            if sets[a] and sets[b]:
                score = len(sets[a] & sets[b]) / len(sets[a] | sets[b])
                expected += [(str(a), str(b), score)] if score >= threshold else []
    found = near_duplicates(collection, collection.ids, threshold)
    assert found == sorted(expected, key=lambda pair: (int(pair[0]), int(pair[1])))


def test_near_leaks_lie_in_different_splits() -> None:
    texts = {i: " ".join(WORDS[: 11 + i % 2]) for i in range(4)} | {4: "of another kind"}
    qrels = {
        "train": {"q0": {"0": 1.0}, "q2": {"2": 1.0}},
        "test": {"q1": {"1": 1.0}, "q4": {"4": 1.0, "3": 0.0, "ghost": 1.0}},
    }
    collection = toy({str(i): text for i, text in texts.items()}, qrels)
    assert near_leaks(collection) == [("0", "1", 0.9), ("1", "2", 0.9)]


SHARES = {"train": 0.5, "validation": 0.25, "test": 0.25}


@given(st.lists(st.integers(0, 19), min_size=60, max_size=90), st.integers(0, 5))
def test_splits_never_divide_a_document_or_its_near_duplicates(
    choices: list[int], seed: int
) -> None:
    # Documents 0 and 1 are near-duplicates, and so are 2 and 3; the others are alone.
    texts = {str(i): f"{i} {i} {i}" for i in range(20)}
    texts |= {"0": " ".join(WORDS), "1": " ".join(WORDS[:11]), "2": "p q r s", "3": "P Q R S"}
    sources = {f"q{i}": str(choice) for i, choice in enumerate([*range(20), *choices])}
    splits = split_by_document(toy(texts), sources, SHARES, seed)
    assert sorted(query for queries in splits.values() for query in queries) == sorted(sources)
    homes = {sources[query]: split for split, queries in splits.items() for query in queries}
    for split, queries in splits.items():
        assert {homes[sources[query]] for query in queries} == {split}
    assert homes["0"] == homes["1"]
    assert homes["2"] == homes["3"]
    again = split_by_document(toy(texts), dict(reversed(sources.items())), SHARES, seed)
    assert {split: set(queries) for split, queries in again.items()} == {
        split: set(queries) for split, queries in splits.items()
    }


def test_shares_are_met_and_the_seed_matters() -> None:
    collection = toy({str(i): f"{i} {i} {i}" for i in range(40)})
    sources = {f"q{i}": str(i) for i in range(40)}
    splits = split_by_document(collection, sources, SHARES, seed=0)
    assert [len(splits[split]) for split in SHARES] == [20, 10, 10]
    assert splits != split_by_document(collection, sources, SHARES, seed=1)


@pytest.mark.parametrize(
    ("fractions", "said"),
    [
        ({"train": 0.7, "test": 0.2}, "add up to 1"),
        ({"train": 1.1, "test": -0.1}, "above 0"),
        ({}, "add up to 1"),
        ({"a/b": 1.0}, "a/b"),
        (SHARES, "leave validation, test empty|leave test, validation empty"),
    ],
)
def test_unfit_fractions(fractions: Mapping[str, float], said: str) -> None:
    with pytest.raises(CollectionError, match=said):
        split_by_document(toy({"a": "x"}), {"q": "a"}, fractions, seed=0)
