"""The numbers that decide what a user is told, in one place, each with why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What counts as much, as little, or as too few. Changing one changes decisions, and nothing else.

    Attributes
    ----------
    folds : int
        Parts that the rows are dealt to. Five leave four fifths to learn from, as the stored model nearly does, at
        the price of five fits.
    measured : int
        Rows to measure on that are enough. On 100,000 the standard error of a change in accuracy is below a tenth
        of a point, so that of a larger table only as many folds are fitted as reach this number.
    fewest : int
        People to measure a rate on. The rate of nine moves by eleven points when one of them changes.
    accuracy_price : float
        Of accuracy that fairness may cost without a question: one person in a hundred.
    acceptable_gap : float
        A gap between two groups that few would act on; a larger one is named as a reason against predictions.
    small_change : float
        A change of the disparity that few would act on, or a fifth of the plain model's where that is more.
    harmless : float
        By which the disparity may grow at worst, where a fair model that may narrow it much more is used nevertheless:
        one person in a hundred of a group.
    ignored : float
        Of the weight that its number of rows would give it, below which a cell hardly counts in training.
    mostly_dropped : float
        Of a cell: more than half of its rows being left out decides what the model says about these people.
    near_chance : float
        Above a guess, in balanced accuracy or AUC: a model that is surely closer tells nobody apart.
    rare_label : float
        Share of the rows below which a label is called rare, and the threshold is what to look at.
    hardly_there : float
        Share of the rows below which wrong labels would not show among those of a label.
    wrong_labels : float
        Share of wrong labels from which on an audit advises against using labels as they are.
    all_clear : float
        Share of labels that may be wrong without showing, above which an audit gives no all-clear.
    better_model : float
        Of log loss, by which another kind of model must predict better before it is named or chosen.
    most_rows : int
        Rows that are said to tell; beyond, that is said to be unknown.
    most_times : int
        Rows for each that there is, which are advised to be collected.
    """

    folds: int = 5
    measured: int = 100_000
    fewest: int = 10
    accuracy_price: float = 0.01
    acceptable_gap: float = 0.05
    small_change: float = 0.02
    harmless: float = 0.01
    ignored: float = 0.25
    mostly_dropped: float = 0.5
    near_chance: float = 0.05
    rare_label: float = 0.05
    hardly_there: float = 0.02
    wrong_labels: float = 0.01
    all_clear: float = 0.05
    better_model: float = 0.02
    most_rows: int = 1_000_000
    most_times: int = 10


POLICY = Policy()
