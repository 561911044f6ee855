"""Bad input to training, the estimators and the metrics."""

import numpy as np
import pandas as pd
import torch
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from tests.bad_input.api_core import NOTIONS, WHOLE, holes
from tests.bad_input.entry import GROUPS, LABELS, Bad, X, samples

from fairsieve import (
    FairRobustClassifier,
    FairRobustResampler,
    Samples,
    SelectionDisplay,
    SieveClassifier,
    TradeoffDisplay,
    equal_error_rate_disparity,
    equal_opportunity_disparity,
    equalized_odds_disparity,
    estimate_clean_ratio,
    fairness_scorer,
    fit,
)
from fairsieve.errors import NotReadyError
from fairsieve.metrics import accuracy

SHARE = "must be a number in (0, 1]"
DOUBLED = pd.DataFrame(X, columns=["age", "hours", "age"])
TEXTS = pd.DataFrame({"age": X[:, 0], "job": ["baker"] * 40})


def trained(model=None, data=None, **options):
    return fit(model, samples() if data is None else data, **({"epochs": 2, "warmup_epochs": 1} | options))


def classifier(X=X, y=LABELS, z=GROUPS, weights=None, **options):
    options = {"clean_ratio": 0.9, "max_iter": 2, "random_state": 0} | options
    return FairRobustClassifier(**options).fit(X, y, sensitive_features=z, sample_weight=weights)


def sieve(estimator=None, y=LABELS, **options):
    options = {"clean_ratio": 0.9, "max_iter": 1, "cv": 2, "random_state": 0} | options
    return SieveClassifier(estimator or DecisionTreeClassifier(max_depth=2), **options).fit(X, y, GROUPS)


def scorer(**options):
    with config_context(enable_metadata_routing=True):
        return fairness_scorer(**options)


def tradeoff(estimators=None, **options):
    known = {"plain": DecisionTreeClassifier().fit(X, LABELS)} if estimators is None else estimators
    return TradeoffDisplay.from_estimators(known, X, LABELS, sensitive_features=GROUPS, **options)


ENTRIES = [
    Bad("fit: features for samples", lambda: fit(None, X),
        "data", "must be Samples", "got ndarray", "Samples(features, labels, groups)"),
    Bad("fit: a misspelt method", lambda: trained(method="fairsive"),
        "method", "must be one of", "got 'fairsive'", "lr, itlm, fairbatch, sample-selection"),
    Bad("fit: a misspelt setting", lambda: trained(epoch=3),
        "settings", "must be among", "got 'epoch'", "Did you mean 'epochs'?"),
    Bad("fit: no epoch", lambda: trained(epochs=0), "epochs", f"{WHOLE} 1", "got 0", "at least 1"),
    Bad("fit: a learning rate of NaN", lambda: trained(learning_rate=float("nan")),
        "learning_rate", "must be a finite number above 0", "got nan", "above 0"),
    Bad("fit: a model that is none", lambda: trained("lr"),
        "model", "must be None, an nn.Module, or a callable", "got 'lr'", "None"),
    Bad("fit: a frozen model", lambda: trained(torch.nn.Linear(3, 2).requires_grad_(False)),
        "model", "must have parameters to train", "got Linear(", "requires_grad_(True)"),
    Bad("fit: a model with too many outputs", lambda: trained(torch.nn.Linear(3, 5)),
        "outputs", "one per class (2)", "got the shape (40, 5)", "for two classes, one per sample"),
    Bad("fit: a class", lambda: trained(torch.nn.Linear),
        "model", "must be None, an nn.Module, or a callable", "Linear'>", "pass a module that is made"),
    Bad("fit: a model of other features", lambda: trained(torch.nn.Linear(4, 2)),
        "model", "must take batches of the features", "shape (40, 3) (mat1 and mat2",
        "pass a model that is made for them"),
    Bad("fit: a device that is not there", lambda: trained(device="gpu"),
        "device", "must be one that torch can use here", "got 'gpu'", "leave device out"),
    Bad("fit: a negative weight", lambda: trained(sample_weight=[-1.0, *[1.0] * 39]),
        "sample_weight", "must be finite and not negative", "got -1.0 in row 0", "a weight of 0 leaves a sample out"),
    Bad("fit: weights whose sums are infinite", lambda: trained(sample_weight=[1e300] * 40),
        "sample_weight", "must be at most 1e+100", "got 1e+300", "divide the weights by their mean"),
    Bad("fit: one class", lambda: trained(data=Samples(X, [0] * 40, GROUPS)),
        "data", "must have two or more classes", "got [0]", "two or more classes"),
    Bad("fit: an evaluation set with other groups", lambda: trained(evaluation=Samples(X, LABELS, ["c"] * 40)),
        "evaluation", "must have the classes and groups of data", "['c']", "Pass classes= and group_values="),
    Bad("fit: an optimiser by its name", lambda: trained(optimizer="adam"),
        "optimizer", "must be None or a function", "got 'adam'", "a function"),
    Bad("fit: a path for a seed", lambda: fit(None, samples(), seed="../x", checkpoint_dir="k"),
        "seed", "must be a whole number", "got '../x'", "at least 0 and below 2**63"),
    Bad("Fitted.predict: too few features", lambda: trained().predict(X[:, :2]),
        "features", "must have the 3 columns that the model was trained on", "shape (40, 2)", "the 3 columns"),
    Bad("Fitted.predict: gaps", lambda: trained().predict(X * np.nan),
        "features", "must be finite", "120 are not", "impute them first"),
    Bad("FairRobustClassifier: a clean ratio in per cent", lambda: classifier(clean_ratio=90),
        "clean_ratio", SHARE, "got 90", "for 90 % pass 0.9"),
    Bad("FairRobustClassifier: Auto", lambda: classifier(clean_ratio="Auto"),
        "clean_ratio", 'or "auto"', "got 'Auto'", 'write "auto" in small letters'),
    Bad("FairRobustClassifier: None among labels that are texts", lambda: classifier(y=holes([3, 7])),
        "y", "must not have missing values", "got 2, in rows 3, 7", "drop those samples"),
    Bad("FairRobustClassifier: NaN among labels that are texts",
        lambda: classifier(y=pd.Series(holes([5])).fillna(np.nan)),
        "y", "must not have missing values", "got 1, in row 5", "drop those samples"),
    Bad("FairRobustClassifier: one class", lambda: classifier(y=np.zeros(40, int)),
        "y", "must have two or more classes", "got one class, 0:", "look for the column"),
    Bad("FairRobustClassifier: two columns of one name", lambda: classifier(DOUBLED),
        "X", "must have columns of different names", "'age' is there 2 times", "rename one"),
    Bad("FairRobustClassifier: a column of texts", lambda: classifier(TEXTS),
        "X", "must hold numbers", "column 'job' holds texts such as 'baker'", "OneHotEncoder"),
    Bad("FairRobustClassifier: gaps (told by scikit-learn)", lambda: classifier(X * np.nan),
        "Input X", "does not accept missing values", "NaN", "imputer", ValueError),
    Bad("FairRobustClassifier: fewer groups than samples", lambda: classifier(z=GROUPS[:3]),
        "sensitive_features", "must have one value per sample, 40", "got 3", "one value per sample"),
    Bad("FairRobustClassifier: a column's name for its values", lambda: classifier(z="sex"),
        "sensitive_features", "must have one value per sample", "'sex'", "pass a list or an array"),
    Bad("FairRobustClassifier: an unknown notion", lambda: classifier(fairness="fair"),
        "fairness", "must be one of", "got 'fair'", NOTIONS),
    Bad("FairRobustClassifier: weights of zero", lambda: classifier(weights=np.zeros(40)),
        "sample_weight", "must be above zero for some sample", "all weights are zero", "leave it out"),
    Bad("FairRobustClassifier: weights of one class", lambda: classifier(weights=LABELS),
        "sample_weight", "must be above zero for samples of two or more classes", "got only samples of the class 1",
        "a weight of 0 leaves a sample out"),
    Bad("FairRobustClassifier: predicting first", lambda: FairRobustClassifier().predict(X),
        "FairRobustClassifier", "is not fitted yet", "instance", "Call 'fit'", NotFittedError),
    Bad("SieveClassifier: a classifier without weights", lambda: sieve(KNeighborsClassifier()),
        "estimator", "must take sample_weight in fit", "got KNeighborsClassifier", "FairRobustResampler"),
    Bad("SieveClassifier: a classifier without probabilities", lambda: sieve(LinearSVC()),
        "estimator", "must have predict_proba", "got LinearSVC", "CalibratedClassifierCV"),
    Bad("SieveClassifier: a class", lambda: sieve(DecisionTreeClassifier),
        "estimator", "not its class", "got DecisionTreeClassifier", "pass DecisionTreeClassifier()"),
    Bad("SieveClassifier: no features", lambda: SieveClassifier(DecisionTreeClassifier()).fit(None, LABELS),
        "X", "must be a table of features", "got None", "pass an array or a data frame"),
    Bad("SieveClassifier: missing labels", lambda: sieve(y=holes([3])),
        "y", "must not have missing values", "got 1, in row 3", "drop those samples"),
    Bad("SieveClassifier: one fold", lambda: sieve(cv=1), "cv", f"{WHOLE} 2", "got 1", "at least 2"),
    Bad("FairRobustResampler: an estimator without groups",
        lambda: FairRobustResampler(DecisionTreeClassifier()).fit_resample(X, LABELS, GROUPS),
        "estimator", "must take sensitive_features in fit", "got DecisionTreeClassifier()", "pass None"),
    Bad("fairness_scorer: no metadata routing", lambda: fairness_scorer(),
        "fairness_scorer", "metadata routing", "is off", "sklearn.set_config(enable_metadata_routing=True)",
        NotReadyError),
    Bad("fairness_scorer: no", lambda: scorer(with_accuracy="no"),
        "with_accuracy", "must be True or False", "got 'no'", "True or False"),
    Bad("TradeoffDisplay: a list", lambda: tradeoff([DecisionTreeClassifier().fit(X, LABELS)]),
        "estimators", "must be a mapping from the names of models", "got list", "pass a dict such as {'fair': …}"),
    Bad("TradeoffDisplay: no estimator", lambda: tradeoff({}),
        "estimators", "one or more", "got none", "pass a dict such as {'fair': …}"),
    Bad("TradeoffDisplay: a positive label that is none", lambda: tradeoff(pos_label="yes"),
        "pos_label", "must be one of", "got 'yes'", "[0, 1]"),
    Bad("SelectionDisplay: another estimator",
        lambda: SelectionDisplay.from_estimator(LogisticRegression().fit(X, LABELS)),
        "estimator", "must be a fitted FairRobustClassifier or SieveClassifier", "got LogisticRegression",
        "of a pipeline, pass the last step"),
    Bad("estimate_clean_ratio: a column of texts", lambda: estimate_clean_ratio(TEXTS, LABELS),
        "X", "must hold numbers", "column 'job'", "encode it first"),
    Bad("estimate_clean_ratio: a text for a seed", lambda: estimate_clean_ratio(X, LABELS, random_state="a"),
        "random_state", "must be None, a whole number or a RandomState", "got 'a'", "None"),
    Bad("accuracy: of two lengths", lambda: accuracy([0, 1], [0]),
        "y_true and y_pred", "must be of one dimension and equally long", "got (2,) and (1,)", "equally long"),
    Bad("accuracy: numbers and texts", lambda: accuracy([0, 1], ["0", "1"]),
        "y_true and y_pred", "must be of one kind", "got int64 and <U1", "convert one"),
    Bad("accuracy: probabilities", lambda: accuracy([0, 1], [0.2, 0.9]),
        "y_pred", "must be labels", "got 0.2", "pass predict(…), not predict_proba(…)"),
    Bad("equal_error_rate_disparity: no prediction is a label, and everybody would be wrong alike",
        lambda: equal_error_rate_disparity(["no", "yes"], ["No", "Yes"], sensitive_features=[0, 1]),
        "y_pred", "must be labels as those in y_true", "it has 'No'", "write both in one way"),
    Bad("equalized_odds_disparity: no group at all",
        lambda: equalized_odds_disparity([0, 1], [0, 1], sensitive_features=[None, None]),
        "sensitive_features", "must have a group for some sample", "all are missing", "pass another column"),
    Bad("equalized_odds_disparity: an unknown method",
        lambda: equalized_odds_disparity([0, 1], [0, 1], sensitive_features=[0, 1], method="max"),
        "method", "must be one of", "got 'max'", "to_overall, between_groups"),
    Bad("equal_opportunity_disparity: which of three labels",
        lambda: equal_opportunity_disparity([0, 1, 2], [0, 1, 2], sensitive_features=[0, 1, 1]),
        "pos_label", "must be given when there are more than two classes", "[0, 1, 2]", "must be given"),
]  # fmt: skip
