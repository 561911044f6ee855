"""Notice a model that came out worse than plain training, with no clean labels to check against.

Accuracy on noisy labels differs from accuracy on the true labels of the same samples by at most the
noise rate ν. So a model whose noisy accuracy plus ν lies below a plain model's less ν is certainly
worse. Where the flips could be told, so can the true accuracies, and a collapse is told far earlier;
the noisy labels must not speak against the model either. Where too many labels look wrong on purpose
to tell which, they must speak for it.

A second check compares both models in accuracy and in disparity. What a model does on its own training samples
flatters it where they are few; training is cheap there, so a fair and a plain model are compared on samples that
neither saw.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairsieve.errors import CollapseError, CollapseWarning
from fairsieve.label_noise.estimate import CleanRatioEstimate
from fairsieve.label_noise.true_classes import CheckedSums
from fairsieve.metrics import accuracy_from_table, disparity_from_table, grouped_part
from fairsieve.selection.cells import Cells
from fairsieve.selection.fairness import fairness_name

__all__ = ["Collapse", "OnCollapse", "collapse_of", "compare_chances", "handle"]

OnCollapse = Literal["warn", "fallback", "raise"]

PRICE = 0.02  # accuracy that fairness may cost
UNFAIR = 0.01  # more disparity than this on unseen samples, and more than chance, is a collapse too
ROUNDING = 1e-9
ESTIMATED_PRICE = 0.01  # since the estimate may be off by as much again


@dataclass(frozen=True)
class Collapse:
    """A model that is worse than a plain one by more than fairness may cost.

    Attributes
    ----------
    accuracy, plain_accuracy : float
        On the noisy training labels; where not certain, estimates for the true ones.
    noise : float
        The noise rate that is assumed.
    certain : bool
        Whether that follows from the noise rate alone.
    told : bool
        Whether wrong labels could be told from right ones; otherwise this is mere caution.
    disparity, plain_disparity : float
        Where they were compared.
    held_out : bool
        Whether the comparison was made on such samples.
    """

    accuracy: float
    plain_accuracy: float
    noise: float
    certain: bool
    told: bool
    disparity: float = np.nan
    plain_disparity: float = np.nan
    held_out: bool = False

    @property
    def loss(self) -> float:
        """Accuracy lost."""
        return self.plain_accuracy - self.accuracy

    def __str__(self) -> str:
        if np.isfinite(self.disparity):
            where = "samples that neither saw" if self.held_out else "the training samples"
            return (
                f"the fair and robust model came out worse than a plain one: on {where} its accuracy is "
                f"{self.accuracy:.3f} and its disparity {self.disparity:.3f}, a plain model's "
                f"{self.plain_accuracy:.3f} and {self.plain_disparity:.3f}, as far as the labels can be judged"
            )
        if not self.told:
            return (
                "the fair and robust model may have collapsed: on the labels as they are its accuracy is "
                f"{self.accuracy:.3f}, a plain model's {self.plain_accuracy:.3f}, and which labels are wrong is not "
                "sure"
            )
        labels = "the noisy training labels" if self.certain else "the training labels, corrected for noise"
        proof = f"; with {self.noise:.0%} of the labels wrong that is certainly worse" if self.certain else ""
        return (
            f"the fair and robust model collapsed: its accuracy is {self.accuracy:.3f} on {labels}, a plain "
            f"model's {self.plain_accuracy:.3f}{proof}"
        )


def collapse_of(
    predicted: NDArray[np.integer[Any]],
    plain: NDArray[np.integer[Any]],
    labels: NDArray[np.integer[Any]],
    noise: float,
    *,
    estimate: CleanRatioEstimate | None = None,
    weights: NDArray[np.float64] | None = None,
) -> Collapse | None:
    """Compare a model with a plain one, by their predictions; return None where it did not collapse.

    Everything is given as class codes.

    Examples
    --------
    >>> labels = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1, 1])
    >>> collapse_of(1 - labels, labels, labels, 0.1).certain
    True
    >>> collapse_of(1 - labels, labels, labels, 0.5) is None
    True
    """
    ours, theirs = (float(np.average(codes == labels, weights=weights)) for codes in (predicted, plain))
    if estimate is not None:
        noise = max(noise, 1 - estimate.interval[0])  # the most that may be wrong, to be certain
    seen = Collapse(ours, theirs, noise, certain=False, told=False)
    if seen.loss > max(2 * noise, PRICE):
        return replace(seen, certain=True, told=True)
    if estimate is None:
        return None
    if not estimate.credible:
        gained = ESTIMATED_PRICE if estimate.aimed else -ESTIMATED_PRICE  # a guess must pay for itself
        return seen if seen.loss > -gained else None
    tables = [_true_tables(codes, estimate.cells, estimate, weights) for codes in (predicted, plain)]
    measured = [
        tuple(float(accuracy_from_table(table)) for table in pair) for pair in zip(*tables, strict=True)
    ]
    corrected = replace(seen, accuracy=measured[0][0], plain_accuracy=measured[0][1], told=True)
    prices = ESTIMATED_PRICE, _price_by_checks(predicted, plain, estimate)
    if all(theirs - ours > price for (ours, theirs), price in zip(measured, prices, strict=False)):
        return corrected
    if estimate.verified is not None:  # checked labels decide alone
        return None
    return seen if seen.loss > ESTIMATED_PRICE else None


def compare_chances(
    predicted: NDArray[np.integer[Any]],
    plain: NDArray[np.integer[Any]],
    cells: Cells,
    estimate: CleanRatioEstimate,
    *,
    fairness: str,
    pos_label: Any | None = None,
    weights: NDArray[np.float64] | None = None,
    held_out: bool = True,
) -> Collapse | None:
    """Compare predictions by the chances of the true classes; return None where ours did not collapse.

    A collapse is a loss of accuracy beyond what fairness may cost, or more disparity without more accuracy. Each
    sample counts for every class as far as that is likely its true one.

    Parameters
    ----------
    cells : Cells
        Labels and groups of the samples.
    estimate : CleanRatioEstimate
        For the same samples.
    held_out : bool
        Whether neither model saw the samples.
    """
    name = fairness_name(fairness)
    positive = cells.class_index(pos_label) if name == "equal_opportunity" else -1

    def measure(table: NDArray[np.float64]) -> tuple[float, float]:
        grouped = grouped_part(table, cells.groups)
        return float(accuracy_from_table(table)), float(
            disparity_from_table(grouped, name, positive=positive)
        )

    smallest = cells.counts[:, : cells.named_groups].sum(axis=0).min(initial=len(cells))
    differ = float(np.mean(predicted != plain))
    chance, unfair_chance = np.sqrt(differ / len(cells)), np.sqrt(differ / max(int(smallest), 1))
    tables = [_true_tables(codes, cells, estimate, weights) for codes in (predicted, plain)]
    measured = [(measure(fair), measure(other)) for fair, other in zip(*tables, strict=True)]
    prices = max(ESTIMATED_PRICE + ROUNDING, chance), _price_by_checks(predicted, plain, estimate)
    for ((ours, unfair), (theirs, plain_unfair)), price in zip(measured, prices, strict=False):
        loss, worse = theirs - ours, unfair - plain_unfair
        less_fair = worse > max(UNFAIR, unfair_chance) and loss > -ESTIMATED_PRICE
        if not (loss > price or less_fair):
            return None
    (ours, unfair), (theirs, plain_unfair) = measured[0]
    return Collapse(
        ours,
        theirs,
        1 - estimate.clean_ratio,
        certain=False,
        told=bool(estimate.credible),
        disparity=unfair,
        plain_disparity=plain_unfair,
        held_out=held_out,
    )


def _price_by_checks(
    predicted: NDArray[np.integer[Any]], plain: NDArray[np.integer[Any]], estimate: CleanRatioEstimate
) -> float:
    """Return the loss of accuracy beyond which the checked labels speak against a model, and not chance."""
    differ, checks = float(np.mean(predicted != plain)), max(len(estimate.checked), 1)
    return max(ESTIMATED_PRICE, float(np.sqrt(differ / checks)))


def _true_tables(
    codes: NDArray[np.integer[Any]],
    cells: Cells,
    estimate: CleanRatioEstimate,
    weights: NDArray[np.float64] | None,
) -> list[NDArray[np.float64]]:
    """Count predictions by likely true class and group, in every way that the estimate allows.

    With verified labels that is by the chances, and by what the checks add to them: few checks leave the chances off
    in favour of the given labels, which the plain model was trained on, so both must speak against the fair model.
    """
    classes, groups = cells.shape
    own = np.ones(len(cells)) if weights is None else weights
    pairs = cells.group_codes * classes + codes
    sums = [
        np.bincount(pairs, estimate.true_class[:, label] * own, classes * groups) for label in range(classes)
    ]
    found: list[NDArray[np.float64]] = [np.stack(sums).astype(np.float64).reshape(classes, groups, classes)]
    if estimate.unseen is not None and estimate.verified_codes is not None:
        chances, inverse = estimate.unseen
        checked = estimate.verified_codes
        found.append(
            CheckedSums(chances, checked, cells.group_codes, codes, cells.shape, own, inverse).table()
        )
    return found


def handle(collapse: Collapse | None, on_collapse: OnCollapse) -> bool:
    """Apply ``on_collapse``; return True to use the plain model."""
    if collapse is None:
        return False
    if on_collapse == "raise":
        raise CollapseError(f"{collapse}. Lower clean_ratio, or pass on_collapse='fallback'")
    falls_back = on_collapse == "fallback"
    advice = (
        "The plain model is kept instead"
        if falls_back
        else "Lower clean_ratio, or pass on_collapse='fallback'"
    )
    warnings.warn(f"{collapse}. {advice}", CollapseWarning, stacklevel=3)
    return falls_back
