"""Bad input to the functions for tables: settings and tables of a wrong kind."""

from functools import cache

import numpy as np
import pandas as pd
import polars
from tests.bad_input.entry import Bad
from tests.support.people import people

from fairsieve import tabular

FRAME = pd.DataFrame(people(300))
ROLES = {"label": "income", "sensitive": "sex"}
A_NAME, A_FLAG = "must be the name of a column", "must be True or"
A_TABLE = "must be the path of a CSV, Parquet or"


@cache
def run():
    return tabular.train(FRAME, **ROLES, clean_ratio=0.9, max_iter=1)


@cache
def chosen():
    return tabular.review(FRAME, **ROLES, rows=5)


def train(parameter, value, rule, got, way_out):
    """Train with a setting that is wrong."""

    def call():
        return tabular.train(FRAME, **ROLES | {parameter: value() if callable(value) else value})

    return Bad(f"train: {parameter} {got}", call, parameter, rule, f"got {got}", way_out)


def table(function, kind, call):
    return Bad(f"{function}: {kind}", call, "the table", A_TABLE, f"got {kind}", "a data frame of pandas")


ENTRIES = [
    train("keep_sensitive", "no", A_FLAG, "'no'", "True or False"),
    train("show_columns", "no", A_FLAG, "'no'", "True or False"),
    train("label", None, A_NAME, "None", "name of a column"),
    train("label", FRAME["income"], A_NAME, "a Series", "name of a column"),
    train("sensitive", FRAME["sex"], A_NAME, "a Series", "or a list of such"),
    train("sensitive", [["sex"]], A_NAME, "a list", "or a list of such"),
    train("drop", {"age": 1}, A_NAME, "a dict", "or a list of such"),
    train("positive", ["high"], "must be one label", "a list", "one label"),
    train("missing", {"age": "?"}, "must be a text or a number", "a dict", "or a list of such"),
    train("separator", [";"], "must be one character", "a list", "tab or auto"),
    train("test", "a", "must be a share between 0 and 1", "'a'", "such as 0.2"),
    train("bins", {"age": [30]}, "must be a text such as age=25,45", "a dict", "or a list of such"),
    train("bins", ["age=2", "age=3"], "once for each column", "'age=3' too", "such as age=25,45,65"),
    train("verified", 5, A_TABLE, "5", "a data frame"),
    train("verified", chosen, A_TABLE, "a ReviewResult", "a data frame"),
    train("test_file", 3, A_TABLE, "3", "a data frame"),
    Bad("audit: prediction of an array", lambda: tabular.audit(FRAME, **ROLES, prediction=np.ones(300)),
        "prediction", A_NAME, "got a ndarray", "name of a column"),
    Bad("audit: score of an array", lambda: tabular.audit(FRAME, **ROLES, prediction="income", score=np.ones(300)),
        "score", A_NAME, "got a ndarray", "name of a column"),
    Bad("review: id_column of a series", lambda: tabular.review(FRAME, **ROLES, id_column=FRAME["age"]),
        "id_column", A_NAME, "got a Series", "name of a column"),
    Bad("review: a run that is a number", lambda: tabular.review(FRAME, run=3),
        "run", "must be the folder of a run", "got 3", "the folder"),
    Bad("train: report", lambda: tabular.train(FRAME, **ROLES, report="x"),
        "report", "must be a function that takes a sentence", "got 'x'", "a function"),
    Bad("predict: probabilities", lambda: tabular.predict(run(), FRAME, probabilities="no"),
        "probabilities", A_FLAG, "got 'no'", "True or False"),
    Bad("predict: missing", lambda: tabular.predict(run(), FRAME, missing={"a": 1}),
        "missing", "must be a text or a number", "got a dict", "or a list of such"),
    Bad("predict: no run", lambda: tabular.predict(None, FRAME),
        "RUN", "must be what train returned", "got None", "or the folder of a run"),
    Bad("predict: a table for the run", lambda: tabular.predict(FRAME, run()),
        "RUN", "must be what train returned", "got a DataFrame", "or the folder of a run"),
    Bad("train: saved to a number", lambda: run().save(3), "path", "must be a path", "got 3", "a path"),
    Bad("review: saved to a number", lambda: chosen().save(3), "path", "must be a path", "got 3", "a path"),
    Bad("predict: saved to Parquet", lambda: tabular.predict(run(), FRAME).save("new.parquet"),
        "path", "must be a CSV file", "got new.parquet", "name it new.csv"),
    table("train", "a Series", lambda: tabular.train(FRAME["age"], **ROLES)),
    table("train", "a dict", lambda: tabular.train(people(300), **ROLES)),
    table("audit", "a ndarray", lambda: tabular.audit(FRAME.to_numpy(), **ROLES)),
    table("review", "a list", lambda: tabular.review([1, 2], **ROLES)),
    table("predict", "a Series", lambda: tabular.predict(run(), polars.Series([1]))),
    table("predict", "None", lambda: tabular.predict(run(), None)),
]  # fmt: skip
