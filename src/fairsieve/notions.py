"""Notions of fairness: what should be equal between groups. Each is one entry of :data:`NOTIONS`.

A notion compares *rates*. A rate is a share, hits out of those who are counted, and both are chosen by the true and by
the predicted class: the true-positive rate counts the samples of the positive class, and hits are those that are
predicted positive. So a rate is read from one table, how many samples of each class and group are predicted as each
class (:mod:`fairsieve.metrics`), and everything else follows from the list of rates: the disparities of
:mod:`fairsieve.metrics`, the gaps that training narrows, and what reports show.

The paper's loop compares the *losses* of cells instead, which is possible for some notions only.

To add a notion, add an entry here; CONTRIBUTING.md lists what else to touch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from fairsieve.errors import spell
from fairsieve.validation import check_choice

# In place of a class: any class at all; as a prediction, the true class, or another than the true one.
ANY, RIGHT, WRONG = -1, -2, -3

OWN_LABEL = -1  # losses are measured against the sample's own label


class Rate(NamedTuple):
    """Of the samples of the class ``of_true`` that are predicted ``of_predicted``, the share that is a hit.

    Hits are the samples of the class ``true`` that are predicted ``predicted``. Classes are codes, ANY, RIGHT or WRONG.

    Examples
    --------
    >>> true_positive_rate, error_rate = Rate(1, 1, of_true=1), Rate(ANY, WRONG)
    """

    true: int
    predicted: int
    of_true: int = ANY
    of_predicted: int = ANY

    def complement(self, classes: int) -> Rate:
        """Return the share of the others, where it is a rate too; the rate itself where it is none."""
        hits_any_class = self.true in (ANY, self.of_true)  # hits are chosen by the prediction alone
        if self.predicted in (RIGHT, WRONG) and hits_any_class:
            return self._replace(predicted=RIGHT + WRONG - self.predicted)
        if classes == 2 and self.of_predicted == ANY and self.predicted >= 0 and hits_any_class:
            return self._replace(predicted=1 - self.predicted)
        hits_any_prediction = self.predicted in (ANY, self.of_predicted)
        if classes == 2 and self.of_true == ANY and self.true >= 0 and hits_any_prediction:
            return self._replace(true=1 - self.true)
        return self


class Comparisons(NamedTuple):
    """What the paper's loop compares between groups, and which group's ratio should rise.

    Attributes
    ----------
    targets : tuple of int
        The labels (as class codes) that losses are measured against; OWN_LABEL is the sample's own.
    rows : list of three numbers
        Of each comparison: position in ``targets``, class whose cells are compared, and +1 where
        the group with the higher value should rise, −1 where it should fall.
    by_group : bool
        Whether a cell's sum is divided by the size of its group rather than by its own.
    """

    targets: tuple[int, ...]
    rows: list[tuple[int, int, int]]
    by_group: bool


@dataclass(frozen=True)
class Notion:
    """A notion of fairness. Numbers of classes and the code of the positive class are given to its functions.

    Attributes
    ----------
    name : str
        As users write it.
    short : str
        The abbreviation in tables and figures.
    meaning : str
        What holds when it is fulfilled, as the end of a sentence.
    list_rates : callable
        The rates that are compared. A rate that follows from another (of two classes, the rest) is left out.
    needs_positive : bool
        Whether it is about the positive class alone, which must be named then where there are more than two.
    list_comparisons : callable, optional
        What the paper's loop compares. None where losses of cells cannot say what the notion compares: the sampler,
        ``fit`` and the paper's methods refuse it.
    """

    name: str
    short: str
    meaning: str
    list_rates: Callable[[int, int], list[Rate]]
    needs_positive: bool = False
    list_comparisons: Callable[[int, int], Comparisons] | None = None

    @property
    def title(self) -> str:
        """The name as words."""
        return self.name.replace("_", " ")

    @property
    def sentence(self) -> str:
        """Say what the notion asks for."""
        return f"{self.title[0].upper()}{self.title[1:]} ({self.short}): {self.meaning}."

    def compares(self, rate: Rate, classes: int, positive: int = -1) -> bool:
        """Return whether a rate, or what is left of it, is compared."""
        compared = self.list_rates(classes, positive % classes)
        return rate in compared or rate.complement(classes) in compared


def _rates_of_labels(classes: int, positive: int) -> list[Rate]:
    """List how often each class is recognised and, of more than two, what it is taken for."""
    recognised = [Rate(label, label, of_true=label) for label in range(classes)]
    pairs = [(label, other) for label in range(classes) for other in range(classes) if other != label]
    return recognised + [Rate(label, other, of_true=label) for label, other in pairs if classes > 2]


def _rates_of_predictions(classes: int, positive: int) -> list[Rate]:
    """List how often each class is predicted; of two, the positive one."""
    return [Rate(ANY, label) for label in (range(classes) if classes > 2 else [positive])]


def _compare_own_losses(labels: Iterable[int]) -> Comparisons:
    """Compare the cells of some classes by the losses against their own labels."""
    return Comparisons((OWN_LABEL,), [(0, label, 1) for label in labels], by_group=False)


def _compare_predictions(classes: int, positive: int) -> Comparisons:
    """Compare losses against each predicted class (Eq. 8); of two classes, against the positive one."""
    targets = tuple(range(classes)) if classes > 2 else (positive,)
    pairs = product(enumerate(targets), range(classes))
    rows = [(place, label, 1 if label == target else -1) for (place, target), label in pairs]
    return Comparisons(targets, rows, by_group=True)


# Equalized odds and demographic parity are those of the paper.
EO, DP, EOPP = "equalized_odds", "demographic_parity", "equal_opportunity"
EER, PP = "equal_error_rate", "predictive_parity"

NOTIONS: dict[str, Notion] = {
    notion.name: notion
    for notion in (
        Notion(
            EO,
            "EO",
            "people of one label get the same predictions, whatever their group",
            _rates_of_labels,
            # Eq. 5: for every class, the mean loss of its cells. The group with the highest is seen more.
            list_comparisons=lambda classes, positive: _compare_own_losses(range(classes)),
        ),
        Notion(
            DP,
            "DP",
            "every group is predicted the positive label equally often",
            _rates_of_predictions,
            # Eq. 8: losses against the positive label, whatever the sample's own, summed over a cell and divided by its
            # group's size. A high value means that the group is predicted positive too rarely, so its positive cell is
            # seen more and its negative cell less.
            list_comparisons=_compare_predictions,
        ),
        Notion(
            EOPP,
            "EOpp",
            "people of the positive label are recognised equally often in every group",
            lambda classes, positive: [Rate(positive, positive, of_true=positive)],
            needs_positive=True,
            list_comparisons=lambda classes, positive: _compare_own_losses([positive]),
        ),
        Notion(
            EER,
            "EER",
            "predictions are wrong equally often in every group",
            lambda classes, positive: [Rate(ANY, WRONG)],
        ),
        Notion(
            PP,
            "PP",
            "of those predicted the positive label, the same share has it in every group",
            lambda classes, positive: [Rate(positive, positive, of_predicted=positive)],
            needs_positive=True,
        ),
    )
}


BY_SHORT = {notion.short: name for name, notion in NOTIONS.items()}


def find_notion(fairness: Any) -> Notion:
    """Return the notion of a name, which may be spelled with underscores or dashes.

    >>> find_notion("equal-opportunity").short
    'EOpp'
    """
    option = spell("--fairness")
    # Commands write names with dashes, and say so of a wrong one.
    old, new = ("_", "-") if option.startswith("--") else ("-", "_")
    name = fairness.replace(old, new) if isinstance(fairness, str) else fairness
    chosen = check_choice(option, name, tuple(known.replace(old, new) for known in NOTIONS))
    return NOTIONS[chosen.replace("-", "_")]
