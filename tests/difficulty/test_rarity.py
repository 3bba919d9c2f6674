"""Random tasks filtered by accuracy: counts by hand, exact intervals."""

from __future__ import annotations

import numpy as np
import pytest

from fsviz.difficulty.rarity import draws_needed, hardest, rarity
from fsviz.errors import BadInput

ACCURACY = np.array([80.0, 40.0, 60.0, 40.0, 90.0, 60.0, 70.0, 100.0, 90.0, 80.0])


def test_the_hardest_are_kept_in_the_order_of_the_tasks() -> None:
    assert hardest(ACCURACY, 3).tolist() == [1, 2, 3]  # of the two with 60, the first
    assert hardest(ACCURACY, 99).tolist() == list(range(10))


def test_draws_needed_by_hand() -> None:
    reached, draws = draws_needed(ACCURACY)
    assert reached.tolist() == [40, 60, 70, 80, 90, 100]
    assert draws == pytest.approx([10 / 2, 10 / 4, 10 / 5, 10 / 7, 10 / 9, 1])
    for at, once in zip(reached, draws, strict=True):
        assert rarity(ACCURACY, at).draws == pytest.approx(once)


def test_rarity_has_the_exact_binomial_interval() -> None:
    result = rarity(ACCURACY, 41.0)
    assert (result.n_found, result.n_drawn, result.draws) == (2, 10, 5.0)
    # Clopper and Pearson for 2 of 10: 0.02521 to 0.55610
    assert (result.low, result.high) == pytest.approx((1 / 0.55610, 1 / 0.02521), rel=1e-3)


def test_none_found_is_a_bound_and_no_number() -> None:
    result = rarity(ACCURACY, 39.0)
    assert result.n_found == 0 and np.isinf(result.draws) and np.isinf(result.high)
    assert result.low == pytest.approx(1 / (1 - 0.025 ** (1 / 10)))
    with pytest.raises(BadInput, match="at least one random task"):
        rarity(np.array([]), 50.0)
