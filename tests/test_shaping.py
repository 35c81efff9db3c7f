"""Format and length terms: charged where the search outcome differs, never the whole advantage."""

import pytest

from rewards.shaping import Outcome, differs, format_terms


def row(
    search: float | None, outside: int = 0, *, unparsed: bool = False, group: str = "q"
) -> Outcome:
    return Outcome((group,), search, unparsed, outside)


def terms(*rows: Outcome, penalty: float = 0.5, length: float = 0.2) -> list[float | None]:
    return format_terms(rows, failure_penalty=penalty, length_weight=length)


def test_length_is_divided_by_the_groups_maximum() -> None:
    # .2 * 10/40, .2 * 40/40, .2 * 0/40
    assert terms(row(1.0, 10), row(0.0, 40), row(1.0, 0)) == pytest.approx([-0.05, -0.2, 0.0])


@pytest.mark.parametrize("outcome", [0.0, 1.0, 5.0])
def test_length_costs_nothing_where_every_search_came_out_alike(outcome: float) -> None:
    assert terms(row(outcome, 10), row(outcome, 40), row(outcome, 400)) == [0.0, 0.0, 0.0]


def test_sums_that_differ_by_rounding_are_alike() -> None:
    assert terms(row(0.1 + 0.2, 10), row(0.3, 40)) == [0.0, 0.0]


def test_a_failed_parse_is_charged_in_every_group() -> None:
    assert terms(row(0.0, 10), row(0.0, 90, unparsed=True)) == [0.0, -0.5]
    # The failure's whole output is outside: it must not make the others' surplus look small.
    assert terms(row(1.0, 10), row(0.0, 90, unparsed=True)) == pytest.approx([-0.2, -0.5])


def test_a_failed_search_has_no_term_and_is_no_outcome() -> None:
    assert terms(row(1.0, 10), row(None, 99), row(None, 9, unparsed=True)) == [0.0, None, None]


def test_nothing_outside_costs_nothing() -> None:
    assert terms(row(1.0), row(0.0)) == [0.0, 0.0]


def test_groups_are_apart() -> None:
    found = terms(
        row(1.0, 10, group="a"),
        row(0.5, 40, group="b"),
        row(0.0, 20, group="a"),
        row(0.5, 80, group="b"),
    )
    assert found == pytest.approx([-0.1, 0.0, -0.2, 0.0])


def test_weights_of_zero_switch_a_term_off() -> None:
    rows = row(1.0, 10), row(0.0, 40, unparsed=True)
    assert terms(*rows, penalty=0.0) == pytest.approx([-0.2, 0.0])
    assert terms(*rows, length=0.0) == pytest.approx([0.0, -0.5])


def test_one_outcome_does_not_differ() -> None:
    assert not differs([row(1.0), row(None)])
    assert differs([row(1.0), row(0.9)])
