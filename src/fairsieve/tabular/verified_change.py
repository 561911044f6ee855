"""What the answers of people who checked labels say: what they changed, and what models are worth on true labels."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairsieve.errors import FairsieveWarning
from fairsieve.intervals import wilson
from fairsieve.label_noise.estimate import ALL_WRONG_LABELS, CleanRatioEstimate, estimate_clean_ratio
from fairsieve.label_noise.true_measures import TrueMeasures, measure_true_labels
from fairsieve.report.text import load_sentences
from fairsieve.selection.fairness import ABBREVIATIONS
from fairsieve.tabular.evaluation import Score, Share, score_models
from fairsieve.tabular.model_files import decide, probabilities
from fairsieve.tabular.preparation import TableProblem
from fairsieve.tabular.reading.columns import as_objects
from fairsieve.tabular.reading.encoding import Preparation

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from fairsieve.tabular.table_run import TableRun

MORE = 10  # checks, by which intervals would narrow


def _say() -> Any:
    return load_sentences("fairsieve.tabular", "templates/review.j2")


@dataclass(frozen=True, eq=False)
class TrueLabelMeasures:
    """What models are worth on the true labels, as far as checked rows say.

    Attributes
    ----------
    models : dict of TrueMeasures
        By the name of the model.
    rows : int
        Rows that are measured on.
    checked : int
        How many of them somebody checked.
    fairness : str
    """

    models: dict[str, TrueMeasures]
    rows: int
    checked: int
    fairness: str

    @property
    def sentence(self) -> str:
        """The estimates in plain words."""
        return str(_say().true_labels(self, _disparity_title(self.fairness)))

    @property
    def record(self) -> dict[str, Any]:
        """The estimates as values that JSON can express."""
        models = {
            name: {
                part: {"value": one.value, "interval": [one.low, one.high]}
                for part, one in (("accuracy", found.accuracy), ("disparity", found.disparity))
            }
            for name, found in self.models.items()
        }
        return {"rows": self.rows, "checked": self.checked, **models}


@dataclass(frozen=True, kw_only=True)
class VerifiedChange:
    """What checked labels say, and what they changed.

    Attributes
    ----------
    wrong : Share
        Checked labels that are wrong, of all that were checked.
    by_group : dict of Share
        The same in each group.
    unsure, unanswered : int
    in_test : int
        Checked rows that were set aside: they are measured on by their verified labels.
    share_wrong : Score
        Estimated share of wrong labels in the whole table, from the checked rows and their chances to be chosen.
    estimates : pair of dict
        What the data say about the labels, without the answers and with them.
    scores : dict of pair of Score
        Accuracy and disparity of the fair model without the answers and with them, on the same rows.
    change : dict of Score
        With less without.
    fairness : str
    true_labels : TrueLabelMeasures or None
        What the plain and the fair model are worth on the true labels; None where no row of the test part was
        checked, or too few to learn from.
    rates : list of dict
        Flip rates by true label and group, with intervals; empty where too few rows were checked.
    """

    wrong: Share
    by_group: dict[str, Share]
    unsure: int
    unanswered: int
    in_test: int
    share_wrong: Score
    estimates: tuple[dict[str, Any], dict[str, Any]]
    scores: dict[str, tuple[Score, Score]]
    change: dict[str, Score]
    fairness: str
    true_labels: TrueLabelMeasures | None
    rates: list[dict[str, Any]]

    @property
    def sentences(self) -> list[str]:
        """What was found and what changed, in plain words."""
        say, titles = _say(), {"accuracy": "accuracy", "disparity": _disparity_title(self.fairness)}
        return [
            say.counted(self),
            say.estimated(*self.estimates, ALL_WRONG_LABELS),
            say.measured(self, titles),
            *([] if self.true_labels is None else [self.true_labels.sentence]),
            *([say.rates(self.rates, MORE)] if self.rates else []),
        ]


def _disparity_title(fairness: str) -> str:
    return f"{ABBREVIATIONS[fairness]} disparity"


def compare_with_answers(run: TableRun, without: TableRun) -> VerifiedChange:
    """Compare a run that used answers with the same run without them."""
    problem, answers, test = run.problem, run.problem.answers, run.problem.test
    assert answers is not None
    assert run.estimate is not None  # verified labels need clean_ratio="auto"
    assert without.estimate is not None
    wrong = answers.codes != answers.given
    models = (without.model, run.model, run.trade_off[0].model)
    before, after, plain = (_predicted_codes(one, test.values, problem.labels.classes) for one in models)
    positive = -1 if problem.positive_code is None else problem.positive_code
    scores, change = score_models(test.cells, [before, after], run.asked.fairness, positive, run.asked.seed)
    share = float(np.average(wrong, weights=answers.weights))
    worth = float(answers.weights.sum() ** 2 / (answers.weights**2).sum())  # as so many rows of one weight
    return VerifiedChange(
        wrong=Share(int(wrong.sum()), len(wrong)),
        by_group=_count_by_group(run, answers.rows, wrong),
        unsure=answers.unsure,
        unanswered=answers.unanswered,
        in_test=0 if test.verified is None else int((test.verified >= 0).sum()),
        share_wrong=Score(share, wilson(share * worth, worth)),
        estimates=(_told_estimate(without.estimate), _told_estimate(run.estimate)),
        scores={name: (scores[0][name], scores[1][name]) for name in scores[0]},
        change=change,
        fairness=run.asked.fairness,
        true_labels=_measure_problem(problem, {"plain model": plain, "fair model": after}),
        rates=rate_records(run.estimate),
    )


def _predicted_codes(model: Pipeline, values: pd.DataFrame, classes: tuple[str, ...]) -> NDArray[np.int64]:
    """Predict the rows of the test part by a model, as codes of the classes."""
    places = np.array([classes.index(str(label)) for label in model.classes_])
    return np.asarray(places[decide(model, probabilities([model], values)[0])], np.int64)


def _count_by_group(run: TableRun, rows: NDArray[np.int64], wrong: NDArray[np.bool_]) -> dict[str, Share]:
    """Count checked and wrong labels in each group."""
    parts = [run.problem.train] if run.asked.test_file is not None else [run.problem.train, run.problem.test]
    names: dict[int, str | None] = {}
    for part in parts:
        names |= dict(zip(part.rows.tolist(), part.group_names(part.groups.codes), strict=True))
    groups = [names.get(row) or "no group" for row in rows.tolist()]
    hits = Counter(name for name, is_wrong in zip(groups, wrong, strict=True) if is_wrong)
    return {name: Share(hits[name], total) for name, total in sorted(Counter(groups).items())}


def _told_estimate(estimate: CleanRatioEstimate) -> dict[str, Any]:
    """Collect what is told of an estimate."""
    return {
        "conclusive": bool(estimate.credible),
        "clean_ratio": estimate.clean_ratio,
        "interval": list(estimate.interval),
        "covers": estimate.covers,
    }


def measure_by_estimate(
    estimate: CleanRatioEstimate,
    rows: NDArray[np.int64],
    predicted: dict[str, Sequence[Any]],
    fairness: str,
    positive: Any,
    seed: int,
) -> TrueLabelMeasures | None:
    """Measure predictions of some rows of an estimate; None where too few were checked to learn from.

    Parameters
    ----------
    predicted : dict of labels
        Of those rows, by the name of the model; as the estimate calls them.
    positive : label or None
    """
    codes = estimate.verified_codes
    if estimate.unseen is None or codes is None or not (codes[rows] >= 0).any():
        return None
    models = {
        name: measure_true_labels(
            np.asarray(labels), estimate, rows=rows, fairness=fairness, pos_label=positive, seed=seed
        )
        for name, labels in predicted.items()
    }
    return TrueLabelMeasures(models, len(rows), int((codes[rows] >= 0).sum()), fairness)


def _measure_problem(
    problem: TableProblem, predicted: dict[str, NDArray[np.int64]]
) -> TrueLabelMeasures | None:
    """Measure predictions of the test part; None where nobody checked a row of it.

    The chances of the true labels are learnt from the checked rows of both parts, but a checked row is measured on by
    what was thought of it without its check.

    Parameters
    ----------
    predicted : dict of integer arrays
        Codes of the test part's labels, by the name of the model.
    """
    train, test, answers = problem.train, problem.test, problem.answers
    if test.verified is None or answers is None or not (test.verified >= 0).any():
        return None
    prepared, both = Preparation().fit(train.values), (train, test)
    checked = [answers.over(part.rows) for part in both]
    # The test part has its verified labels; here those given count, as they do in the training part.
    own = dict(zip(answers.rows.tolist(), answers.given.tolist(), strict=True))
    given = [own.get(row, code) for row, code in zip(test.rows.tolist(), test.label_codes, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairsieveWarning)  # training has given the same
        estimate = estimate_clean_ratio(
            np.concatenate([prepared.transform(part.values) for part in both]),
            np.concatenate([train.label_codes, given]),
            sensitive_features=np.concatenate([part.group_codes.astype(np.float64) for part in both]),
            verified_labels=as_objects(
                None if code < 0 else int(code) for codes, _ in checked for code in codes
            ),
            verified_weight=np.concatenate([weights for _, weights in checked]),
            random_state=problem.asked.seed,
        )
    rows = np.arange(len(train), len(train) + len(test))
    labels = {name: codes.tolist() for name, codes in predicted.items()}
    return measure_by_estimate(
        estimate, rows, labels, problem.asked.fairness, problem.positive_code, problem.asked.seed
    )


def rate_records(estimate: CleanRatioEstimate) -> list[dict[str, Any]]:
    """Collect the flip rates that checked labels show, with intervals; empty where there are none."""
    rates, cells = estimate.verified, estimate.cells
    if rates is None:
        return []
    narrowing, by_group = rates.narrowing(MORE), rates.checked.sum(axis=0)
    return [
        {
            "label": str(label),
            "group": None if group is None else str(group),
            "checked_in_group": int(by_group[column]),
            "flip_rate": {
                "value": float(rates.flip_rates[row, column]),
                "interval": [float(rates.low[row, column]), float(rates.high[row, column])],
            },
            "narrowed_by_ten_checks": float(narrowing[row, column]),
        }
        for row, label in enumerate(cells.classes)
        for column, group in enumerate(cells.groups)
        if cells.counts[:, column].any()
    ]


def tell_rates(estimate: CleanRatioEstimate) -> list[str]:
    """Say the flip rates that checked labels show, and what more checks would be worth; empty where there are none."""
    found = rate_records(estimate)
    return [_say().rates(found, MORE)] if found else []
