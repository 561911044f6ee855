"""From a table to models: what is kept, measured and suspected."""

import warnings

import numpy as np
import pytest
from tests.support.people import QUICK, people, write_csv

from fairsieve import FairRobustClassifier, tabular
from fairsieve.errors import FairnessWarning, InvalidInputError

FEW = {"max_iter": 8, "clean_ratio": 0.9}


@pytest.mark.filterwarnings("ignore:the widest gap")
def test_what_is_kept_predicts_as_the_classifier_does(run):
    fair, train = run.trained.fair.model, run.problem.train
    X = fair["prepare"].transform(train.values)
    model = FairRobustClassifier(clean_ratio=0.9, tolerance=0.02, max_iter=8, random_state=0, pos_label=0)
    with warnings.catch_warnings(action="ignore", category=FairnessWarning):
        model.fit(X, train.label_codes, sensitive_features=train.group_codes)
    # To single precision.
    np.testing.assert_allclose(fair.predict_proba(train.values), model.predict_proba(X), atol=1e-6)


def test_the_sensitive_column_is_learnt_from_only_if_asked(run, people_csv):
    assert set(run.model["prepare"].kinds) == {"age", "hours", "job"}
    kept = tabular.train(people_csv, label="income", sensitive="sex", keep_sensitive=True, **FEW).run
    assert set(kept.model["prepare"].kinds) == {"age", "hours", "job", "sex"}


def test_the_same_seed_gives_the_same_run(trained, people_csv, tmp_path):
    stages = []
    again = tabular.train(people_csv, report=stages.append, **QUICK)
    folds = [f"fold {fold} of 5: training both models without it" for fold in range(1, 6)]
    more = [stage for stage in stages if stage == "training with the sensitive columns too"]
    assert stages == ["reading the table", "training both models", *folds, "measuring", *more]
    one, two = trained.save(tmp_path / "one"), again.save(tmp_path / "two")
    for name in ("model.skops", "suspects.csv", "rows.csv", "card.md"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    assert again.metrics["change"] == trained.metrics["change"]


def test_three_labels_two_columns_and_gaps_in_groups(tmp_path):
    table = people(900)
    table["income"] = ["middle" if place % 3 == 0 else value for place, value in enumerate(table["income"])]
    table["old"] = ["?" if place % 50 == 0 else "yes" if place % 2 else "no" for place in range(900)]
    path = write_csv(tmp_path / "three.csv", table)
    asked = {"sensitive": ["sex", "old"], "fairness": "demographic-parity", "test": 0.3}
    found = tabular.train(path, label="income", **asked, **FEW).run
    assert found.problem.labels.classes == ("high", "low", "middle")
    assert found.problem.groups.names == ("man / no", "man / yes", "woman / no", "woman / yes")
    assert found.evaluation.groups[-1] is None
    assert any("Rows of three.csv without a value in sex and old" in note for note in found.notes)
    notion = "positive must be given for equal opportunity with 3 labels"
    threshold = "threshold must be 0.5 for more than two labels.*with 3 labels"
    cases = ({"fairness": "equal-opportunity"}, notion), ({"threshold": "balanced"}, threshold)
    for settings, message in cases:
        with pytest.raises(InvalidInputError, match=message):
            tabular.train(path, label="income", sensitive="sex", **settings, **FEW)


def test_a_test_file_with_new_categories_and_without_some_labels(tmp_path, people_csv):
    table = people(200, seed=1)
    table["job"][:20] = ["pilot"] * 20
    table["income"][:5] = [""] * 5
    table["sex"][7] = "unknown"
    path = write_csv(tmp_path / "test.csv", table)
    found = tabular.train(people_csv, label="income", sensitive="sex", test_file=path, **FEW).run
    assert len(found.problem.train) == 600
    assert len(found.problem.test) == 195
    notes = " ".join(found.notes)
    assert "Rows of test.csv without a label, left out: 5 (spreadsheet rows 2, 3, 4, 5, 6)." in notes
    assert "Column 'job' has values that training did not have, 1 of them; they are ignored." in notes
    assert "of a group that is not compared, which count for accuracy only: 1 (spreadsheet row 9)." in notes


def test_an_interrupted_training_is_not_reported_as_a_result(people_csv, monkeypatch):
    fit = FairRobustClassifier.fit

    def interrupted(self, *arguments, **options):
        fit(self, *arguments, **options)
        self.stopped_ = "interrupted"
        return self

    monkeypatch.setattr(FairRobustClassifier, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tabular.train(people_csv, label="income", sensitive="sex", **FEW)


@pytest.mark.parametrize(("options", "message"), [
    ({"clean_ratio": "half"}, 'clean_ratio must be .*, or "auto" to have it estimated; got'),
    ({"clean_ratio": "Auto"}, 'clean_ratio must be .*, or "auto" to have it estimated; got'),
    ({"test": 0.0}, "test must be a share between 0 and 1"),
    ({"threshold": "often"}, "threshold must be a probability .*got 'often'"),
    ({"tolerance": 3}, "tolerance must be"),
    ({"max_accuracy_loss": 3}, "max_accuracy_loss must be"),
    ({"trees": 0}, "trees must be"),
    ({"model": "lightgmb"}, "model must be one of logistic, .*got 'lightgmb'. Did you mean 'lightgbm'"),
    ({"sensitive": ["sex", "sex"]}, "sensitive must name each column once"),
    ({"sensitive": []}, "sensitive must name one column or more"),
    ({"sensitive": ["gender"]}, "sensitive must be a column of people.csv; got 'gender'"),
    ({"small_groups": "x"}, "small_groups must be one of stop, merge, ignore"),
])  # fmt: skip
def test_what_is_asked_is_checked(people_csv, options, message):
    """More cases are in the catalogue of bad input."""
    with pytest.raises(InvalidInputError, match=message):
        tabular.train(**{"data": people_csv, "label": "income", "sensitive": ["sex"], **FEW} | options)


@pytest.mark.filterwarnings("ignore:the widest gap")
def test_the_threshold_that_predicts_is_the_one_that_is_made_fair(people_csv):
    """Another threshold is another comparison of rates, so another model; and the fair model predicts by it."""
    asked = {
        "label": "income", "sensitive": "sex", "keep_sensitive": True, "test": 0.3, "tolerance": 0.02,
        "max_iter": 8,
    }  # fmt: skip
    weights = []
    for threshold in (0.5, 0.2):
        run = tabular.train(people_csv, threshold=threshold, clean_ratio=1.0, **asked).run
        fair = run.trained.fair.model
        model = fair["model"]
        weights.append(np.ravel(getattr(model, "estimator_", model).coef_))
        assert run.trained.fair.threshold == (None if threshold == 0.5 else pytest.approx(threshold))
    assert not np.allclose(*weights)
