"""Classifiers with modules that are fitted in threads give the models of those fitted one after another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from fairsieve import FairRobustClassifier
from fairsieve.data import make_synthetic


def network(n_features, n_classes):
    return torch.nn.Sequential(
        torch.nn.Linear(n_features, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, n_classes)
    )


@pytest.mark.filterwarnings("ignore::fairsieve.CollapseWarning")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_modules_with_dropout_in_threads_repeat(dtype):
    data = make_synthetic(200, seed=0)

    def weights(seed):
        model = FairRobustClassifier(
            module=lambda *shape: network(*shape).to(dtype),
            clean_ratio=0.9,
            epochs=6,
            warmup_epochs=2,
            random_state=seed,
        )
        model.fit(data.features, data.labels, sensitive_features=data.groups)
        assert set(model.predict(data.features)) <= {0, 1}
        return [parameter.tolist() for parameter in model.module_.parameters()]

    in_a_row = [weights(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(weights, range(4))) == in_a_row
