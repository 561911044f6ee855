"""Data that tests of several folders share."""

import numpy as np
import pytest

from fairsieve import Samples
from fairsieve.data import flip_margin, make_synthetic
from fairsieve.estimators import classifier


@pytest.fixture(scope="session")
def noisy():
    """Two classes and two groups, with a tenth of the labels wrong."""
    clean = make_synthetic(200, seed=0)
    return clean.with_labels(flip_margin(clean, 0.1).labels)


@pytest.fixture(scope="session")
def many():
    """Three classes and three groups, some samples without one, and mostly zeros in ten columns."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(300, 10)) * (rng.random((300, 10)) < 0.3)
    labels = np.array(["a", "b", "c"])[np.digitize(features[:, 0] + rng.normal(size=300), [-0.5, 0.5])]
    return Samples(features, labels, rng.choice(["x", "y", "z", None], 300), missing="own")


@pytest.fixture(scope="module")
def rows_in_their_order():
    """Keep rows in memory in the order of the parts; small tables are put into one of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifier, "MOST_ARRANGED", 0)
        yield
