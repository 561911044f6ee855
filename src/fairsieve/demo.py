"""The demo: four models that learn from what people said of themselves, judged by what was measured."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

from fairsieve.data.splits import split
from fairsieve.data.tables import load_nhanes
from fairsieve.estimators.classifier import FairRobustClassifier
from fairsieve.metrics import accuracy, disparity
from fairsieve.notions import EO
from fairsieve.progress import Report
from fairsieve.report.page import colour, looks_of, pyplot
from fairsieve.samples import Samples

TEST = 0.3  # of the people; the rest is learnt from
METHODS: dict[str, Callable[[int], Any]] = {
    "plain": lambda seed: LogisticRegression(max_iter=1000),
    "cleaning alone": lambda seed: FairRobustClassifier(fairness=None, random_state=seed),
    "fairness alone": lambda seed: FairRobustClassifier(clean_ratio=1.0, random_state=seed),
    "fairsieve (both)": lambda seed: FairRobustClassifier(random_state=seed),
}
PLAIN, OURS = "plain", "fairsieve (both)"


class Interval(NamedTuple):
    """A mean over splits, and half of its 95 % interval."""

    mean: float
    half: float

    def text(self, factor: float = 1, digits: int = 3) -> str:
        """Write it as "mean ± half"; without the half where one split gives none."""
        half = "" if np.isnan(self.half) else f" ± {factor * self.half:.{digits}f}"
        return f"{factor * self.mean:.{digits}f}{half}"


def interval(values: Any) -> Interval:
    """Compute the mean over repeated splits; their training parts overlap (Nadeau and Bengio 2003).

    >>> [round(value, 3) for value in interval([0.1, 0.2, 0.3])]
    [0.2, 0.376]
    """
    values = np.asarray(values, dtype=float)
    if len(values) < 2:
        return Interval(float(values.mean()), float("nan"))
    error = values.std(ddof=1) * np.sqrt(1 / len(values) + TEST / (1 - TEST))
    return Interval(float(values.mean()), float(student.ppf(0.975, len(values) - 1) * error))


def run_demo(splits: int, report: Report) -> tuple[Samples, pd.DataFrame]:
    """Train the four models on every split; ``report`` is told what begins.

    Return the people, and a row for each model and split: ``accuracy``, ``disparity`` (equalized odds), and for each
    group the share of those who are obese that the model finds, all by what was measured.
    """
    people, rows = load_nhanes(), []
    for seed in range(splits):
        parts = split(people, test=TEST, validation=0.0, seed=seed)
        train, test = parts.train, parts.test
        assert test.truth is not None
        for name, make in METHODS.items():
            report(f"{name}, split {seed + 1} of {splits}")
            model = make(seed)
            options = {} if name == PLAIN else {"sensitive_features": train.groups}
            with warnings.catch_warnings(action="ignore"):  # what the models warn of is seen in the numbers
                model.fit(train.features, train.labels, **options)
            predicted = model.predict(test.features)
            row = {
                "method": name,
                "accuracy": accuracy(test.truth, predicted),
                "disparity": disparity(EO, test.truth, predicted, sensitive_features=test.groups),
            }
            for group in people.cells.groups:
                row[group] = float(predicted[(test.groups == group) & (test.truth == 1)].mean())
            rows.append(row)
    return people, pd.DataFrame(rows)


def missed(people: Samples) -> pd.Series:
    """Compute, for each group, the share of those with the condition who say otherwise; the largest last."""
    have = people.truth == 1
    return pd.Series(people.labels[have] == 0).groupby(people.groups[have]).mean().sort_values()


def tell_demo(people: Samples, scores: pd.DataFrame) -> tuple[str, str]:
    """Return the table of the models, and what it means in a sentence or two."""
    groups = list(missed(people).index[::-1])
    measured = ["accuracy", "disparity", *groups]
    titles = ["right, of 100", "EO disparity", *(f"{group} found" for group in groups)]
    digits = {"disparity": (1, 3)}  # others are written of 100
    by_method = {name: scores[scores["method"] == name] for name in METHODS}
    texts = {
        name: [interval(rows[each]).text(*digits.get(each, (100, 1))) for each in measured]
        for name, rows in by_method.items()
    }
    table = pd.DataFrame(texts, index=titles)
    means = {name: rows[groups].mean() for name, rows in by_method.items()}
    worst, best = means[PLAIN].idxmin(), means[PLAIN].idxmax()
    obese_found = {
        name: [round(100 * means[name][group]) for group in (worst, best)] for name in (PLAIN, OURS)
    }
    right = {name: round(100 * by_method[name]["accuracy"].mean()) for name in (PLAIN, OURS)}
    change = interval(by_method[OURS]["accuracy"].to_numpy() - by_method[PLAIN]["accuracy"].to_numpy())
    sentence = (
        f"Of 100 {worst} people who are obese, the plain model finds {obese_found[PLAIN][0]}; of 100 {best} people, "
        f"{obese_found[PLAIN][1]}. fairsieve finds {obese_found[OURS][0]} and {obese_found[OURS][1]}.\n"
        f"It is right about {right[OURS]} of 100 people, the plain model about {right[PLAIN]} (a change of "
        f"{change.text(100, 1)})."
    )
    return table.to_string(), sentence


def draw_demo(people: Samples, scores: pd.DataFrame, path: Path) -> None:
    """Draw whom the labels miss, whom each model finds, and how often each is right."""
    plt = pyplot()
    figure, (said_axes, found_axes, right_axes) = plt.subplots(
        1, 3, figsize=(12, 4.6), layout="constrained", width_ratios=[3, 5, 2.2]
    )
    shares = missed(people)
    looks = {group: colour(look) for group, look in looks_of(shares.index).items()}
    bars = said_axes.barh(shares.index, 100 * shares, color=looks.values(), height=0.6)
    said_axes.bar_label(bars, fmt="%.0f", padding=4)
    said_axes.set_title("The labels: of 100 people who are obese,\nhow many say they are not", loc="left")
    said_axes.grid(visible=False)
    said_axes.set_xlim(0, 118 * shares.max())
    names = list(METHODS)[::-1]
    above: Any = {"textcoords": "offset points", "ha": "center"}
    for place, name in enumerate(names):
        rows = scores[scores["method"] == name]
        for lift, group in zip(np.linspace(-0.25, 0.25, len(shares)), shares.index, strict=True):
            value = interval(100 * rows[group])
            at, label = (value.mean, place + lift), group if place == 0 else None
            found_axes.errorbar(*at, xerr=value.half, color=looks[group], alpha=0.35, lw=1)
            found_axes.plot(*at, "o", color=looks[group], label=label)
            if group == shares.index[-1]:  # whom the labels miss most
                found_axes.annotate(f"{group} {value.mean:.0f}", at, (0, 5), **above)
        value = interval(100 * rows["accuracy"])
        right_axes.errorbar(value.mean, place, xerr=value.half, fmt="o", color="#1F2328", capsize=3)
        right_axes.annotate(f"{value.mean:.1f}", (value.mean, place), (0, 6), **above)
    found_axes.set_title("The models: of 100 people who are obese, how many are found", loc="left")
    found_axes.set_yticks(range(len(names)), names)
    found_axes.set_xlim(left=0)
    found_axes.set_ylim(-0.4, len(names) - 0.5)
    found_axes.legend(loc="upper left", bbox_to_anchor=(0, -0.06), ncols=3)
    right_axes.set_title("Of 100 people, how many\nare judged correctly", loc="left")
    right_axes.set_yticks(range(len(names)), [])
    right_axes.set_ylim(found_axes.get_ylim())
    low, high = right_axes.get_xlim()
    right_axes.set_xlim(min(low, high - 6), high + 0.5)  # differences of a tenth do not look large
    figure.suptitle(
        f"{len(people):,} Americans said how tall and how heavy they are. Models learn from that, and are judged by "
        "what was measured.",
        x=0.01,
        ha="left",
        fontsize="large",
    )
    figure.savefig(path)
    plt.close(figure)
