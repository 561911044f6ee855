"""The paper's model as a torch module."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils import skip_init

from fairsieve.training.linear_model import LinearModel
from fairsieve.validation import check_at_least

__all__ = ["LogisticRegression"]


class LogisticRegression(nn.Module):
    """Logistic regression as in the paper's experiments.

    Weights start at N(0, 0.2²), biases at 0. With two classes there is one output, the logit 2·f(x),
    so that the probability is σ(2·f(x)) = (tanh f(x) + 1) / 2; with more there is one per class.

    Parameters
    ----------
    n_features, n_classes : int
    generator : torch.Generator, optional
        Where the first weights come from.

    Examples
    --------
    >>> model = LogisticRegression(3, generator=torch.Generator().manual_seed(0))
    >>> model(torch.zeros(5, 3)).shape
    torch.Size([5])
    """

    def __init__(
        self, n_features: int, n_classes: int = 2, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        check_at_least("n_features", n_features, 1)
        outputs = 1 if check_at_least("n_classes", n_classes, 1) <= 2 else n_classes
        # Not initialised twice: nn.Linear would draw from torch's global generator.
        self.linear = skip_init(nn.Linear, n_features, outputs)
        with torch.no_grad():
            self.linear.weight.normal_(0, 0.2, generator=generator)
            self.linear.bias.zero_()

    @classmethod
    def from_linear(cls, linear: LinearModel) -> LogisticRegression:
        """Make the module of a trained linear model."""
        outputs, features = linear.coef.shape
        module = cls(features, outputs if outputs > 1 else 2, generator=torch.Generator())
        scale = 0.5 if outputs == 1 else 1.0  # one logit is 2·f
        with torch.no_grad():
            module.linear.weight.copy_(torch.from_numpy(scale * linear.coef))
            module.linear.bias.copy_(torch.from_numpy(scale * linear.intercept))
        return module.eval()

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.linear(features)
        return 2 * scores.squeeze(-1) if scores.shape[-1] == 1 else scores
