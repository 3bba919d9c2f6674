"""The built-in digits: scikit-learn's 1,797 scans."""

from __future__ import annotations

import numpy as np
import pytest

from fsviz import datasets
from fsviz.datasets.digits import SIDE, open_digit
from fsviz.errors import UnknownName


def test_the_record_agrees_with_scikit_learn() -> None:
    from sklearn.datasets import load_digits

    dataset = datasets.load("digits")
    target = load_digits().target
    assert dataset.origin == "digits"
    assert dataset.n_classes == 10
    assert dataset.n_images == 1797 == len(dataset.images)
    assert np.array_equal(dataset.image_class_ids(), target)
    assert dataset.classes["n_images"].tolist() == np.bincount(target).tolist()
    assert dataset.split_class_ids("test").tolist() == list(range(10))
    assert dataset.has_pixels and dataset.taxonomy is None and dataset.contexts is None


def test_a_digit_is_dark_ink_on_white_paper() -> None:
    from sklearn.datasets import load_digits

    scan = load_digits().images[17]
    image = open_digit(17)
    assert image.mode == "RGB" and image.size == (SIDE, SIDE)
    cell = SIDE // 8
    levels = np.asarray(image)[cell // 2 :: cell, cell // 2 :: cell, 0].astype(float)
    assert np.corrcoef(levels.ravel(), scan.ravel())[0, 1] < -0.95
    assert np.array_equal(np.asarray(open_digit(17)), np.asarray(image))


@pytest.mark.parametrize("image_id", [-1, 1797])
def test_an_image_that_is_not_there_is_refused(image_id: int) -> None:
    with pytest.raises(UnknownName, match="0 to 1796"):
        open_digit(image_id)
