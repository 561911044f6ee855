"""Data that the tests of samplers share."""

import numpy as np
import pytest


@pytest.fixture
def data(request):
    """As many features, labels and groups as the module says."""
    import torch  # without it this folder is left out, but for this file

    count, generator = request.module.N, torch.Generator().manual_seed(0)
    x = torch.randn(count, 3, generator=generator)
    return x, torch.randint(0, 2, (count,), generator=generator), np.where(x[:, 0].numpy() > 0, "a", "b")
