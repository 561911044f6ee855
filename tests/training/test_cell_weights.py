"""Weights that are looked up by cell are those that an array would hold."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairsieve.training.cell_weights import CellWeights


@given(seed=st.integers(0, 10**6), cells=st.integers(1, 6), samples=st.integers(1, 40), given=st.booleans())
def test_any_rows_have_the_weights_of_the_whole_array(seed, cells, samples, given):
    rng = np.random.default_rng(seed)
    table, places = np.append(rng.random(cells), 0.0), rng.integers(0, cells + 1, samples).astype(np.uint8)
    own = rng.random(samples) if given else None
    whole = np.array([table[place] for place in places]) * (1.0 if own is None else own)
    weights = CellWeights(table=table, places=places, given=own)
    rows = rng.integers(0, samples, 5)
    assert len(weights) == samples
    for part in (slice(None), slice(1, samples), rows):
        assert weights[part].tolist() == whole[part].tolist()
