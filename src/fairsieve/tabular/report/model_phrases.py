"""What kind of model a run kept, and how it was chosen, in plain words."""

from __future__ import annotations

from fairsieve.report.number_format import number, percent
from fairsieve.tabular.model_choice import TITLES
from fairsieve.tabular.reading.features import Feature
from fairsieve.tabular.table_run import TableRun, TradeOffPoint
from fairsieve.tabular.tree_models import TOLERANCE

__all__ = [
    "choice_sentences",
    "column_treatment",
    "kept_point",
    "loading_text",
    "model_limit",
    "model_sentences",
    "model_title",
    "trade_off_sentence",
]

LINEAR_LIMIT = "A linear model of the columns as they are: it finds no interplay between them."
TREES_LIMIT = (
    "Boosted trees: they find interplay between columns, and say nothing of values beyond those trained on. Why they "
    "predict what they do is not read from them easily."
)
SKOPS = """\
```python
import skops.io
model = skops.io.load("model.skops", trusted=[{trusted}])  # scikit-learn's own types; no pickle, no code
```"""
BOOSTER = """\
```python
import lightgbm
booster = lightgbm.Booster(model_file="model.txt")  # model.json names the columns, categories and labels
```"""


def kept_point(run: TableRun) -> TradeOffPoint:
    """Return the model that is kept."""
    return next(point for point in run.trade_off if point.kept)


def model_title(run: TableRun) -> str:
    """Name the kind of model and how it was trained."""
    if run.model_name == "logistic":
        return "logistic regression, trained by sample selection"
    return f"{TITLES[run.model_name]}, {run.asked.trees} trees, weighted in rounds by SieveClassifier"


def column_treatment(run: TableRun, feature: Feature) -> str:
    """Say what was made of a column."""
    return feature.treatment if run.model_name == "logistic" else feature.tree_treatment


def model_limit(run: TableRun) -> str:
    """Say what a kind of model cannot do."""
    return LINEAR_LIMIT if run.model_name == "logistic" else TREES_LIMIT


def loading_text(run: TableRun) -> str:
    """Show how to load the model without fairsieve."""
    if run.model_name == "lightgbm":
        return BOOSTER
    tree = '"sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"'
    return SKOPS.format(trusted='"numpy.dtype"' if run.model_name == "logistic" else f'"numpy.dtype", {tree}')


def model_sentences(run: TableRun) -> list[str]:
    """Say what is not as by default: the kind of model, the threshold, the point of the trade-off."""
    kind = "" if run.model_name == "logistic" else f"The model is {model_title(run)}."
    return list(filter(None, (kind, *choice_sentences(run))))


def choice_sentences(run: TableRun) -> list[str]:
    """Say what was chosen on the training part: the threshold, the point of the trade-off."""
    return list(filter(None, (_threshold_sentence(run), trade_off_sentence(run))))


def _threshold_sentence(run: TableRun) -> str:
    """Say from which probability on the positive label is predicted, and how that was chosen."""
    plain, kept, label = run.trade_off[0], kept_point(run), run.problem.labels.positive
    if kept.threshold is None or plain.threshold is None:
        return ""
    rule = run.asked.threshold
    if rule.kind == "fixed":
        return f"{label} is predicted from a probability of {number(kept.threshold)} on, by both models."
    where = "out of fold" if run.model_name != "logistic" else "by the model's own scores of them"
    return (
        f"--threshold {rule} was chosen on the training rows, {where}: {label} is predicted from a probability of "
        f"{number(plain.threshold)} on by the plain model, and of {number(kept.threshold)} by the one that is kept."
    )


def trade_off_sentence(run: TableRun) -> str:
    """Say which point of the trade-off is kept, and on what that was judged."""
    kept, plain = kept_point(run), run.trade_off[0]
    if kept.held_out is None or plain.held_out is None:
        return ""
    tolerance = TOLERANCE if run.asked.tolerance is None else run.asked.tolerance
    which = f"the {kept.title}" if kept.title in ("plain model", "fair model") else kept.title
    if run.model_name == "logistic":
        models = "the models from plain to fair"
        where = "on halves of the training rows, by models trained on the other half"
    else:
        models = f"the plain model and {len(run.trade_off) - 1} rounds"
        where = "out of fold, on the training rows"
    which = f"that {which}" if "of the way" in which else which
    return (
        f"Of {models}, {which} is kept: the fairest whose accuracy is within {percent(tolerance)} of the best, judged "
        f"{where} (accuracy {number(kept.held_out.accuracy)} and disparity {number(kept.held_out.disparity)}; plain "
        f"model {number(plain.held_out.accuracy)} and {number(plain.held_out.disparity)}). The test part was not "
        "looked at for this."
    )
