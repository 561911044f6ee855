"""Estimates and selections in notebooks."""

import numpy as np

from fairsieve import estimate_clean_ratio, select
from fairsieve.data import make_synthetic


def test_estimates_and_selections_show_a_bar_for_each_cell():
    samples = make_synthetic(400, seed=0)
    estimate = estimate_clean_ratio(samples.features, samples.labels, sensitive_features=samples.groups)
    losses = np.linspace(0, 1, 400)
    chosen = select(losses, samples.labels, samples.groups, None, 0.9)
    for shown in (estimate._repr_html_(), chosen._repr_html_()):
        assert shown.count("<tr>") == 5
    assert chosen._repr_html_().count('class="bar"') == 4
    assert "360 of 400 samples selected" in chosen._repr_html_()
