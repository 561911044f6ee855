"""The functions of fairsieve.tabular: paths and data frames in, one kind of result out."""

import html
import json
import re

import numpy as np
import pandas
import polars
import pytest
from tests.support.people import QUICK
from tests.support.refusals import refused

from fairsieve import tabular
from fairsieve.errors import InvalidInputError


@pytest.fixture(scope="module")
def frame(people_csv):
    return pandas.read_csv(people_csv, na_values=["?"])


@pytest.fixture(scope="module")
def result(frame):
    return tabular.train(frame, **QUICK)


def test_frames_and_parquet_give_the_run_that_csv_gives(run, result, frame, tmp_path):
    frame.to_parquet(tmp_path / "people.parquet")
    parquet = tabular.train(tmp_path / "people.parquet", **QUICK)
    np.testing.assert_array_equal(parquet.model["model"].coef_, run.model["model"].coef_)
    np.testing.assert_array_equal(result.model["model"].coef_, run.model["model"].coef_)
    np.testing.assert_array_equal(result.run.suspects["row"], run.suspects["row"] - 2)
    again = tabular.train(polars.from_pandas(frame), **QUICK)
    np.testing.assert_array_equal(again.model["model"].coef_, run.model["model"].coef_)
    assert isinstance(again.suspects, polars.DataFrame)
    assert again.suspects.columns == [*frame.columns, *list(result.suspects.columns)[len(frame.columns) :]]
    assert again.suspects["row"].to_list() == result.suspects["row"].tolist()


def test_suspects_are_rows_with_their_original_columns(result, trained, frame):
    found = result.suspects
    assert len(found) == result.metrics["suspects"] > 10
    pandas.testing.assert_frame_equal(found[list(frame.columns)], frame.iloc[found["row"].to_numpy()])
    assert (found["suggested_label"] != found["income"]).all()
    assert (np.diff(found["loss"]) <= 0).all()
    assert found["group"].tolist() == found["sex"].tolist()
    assert not set(found["row"]) & set(result.run.problem.test.rows)
    # Those of a file have the number of the row as their index.
    assert trained.suspects.index.tolist() == (found["row"] + 2).tolist()
    for name in ("hours", "income", "suggested_label", "loss"):
        assert trained.suspects[name].tolist() == found[name].tolist()


def test_metrics_are_the_content_of_the_file(result, tmp_path):
    out = result.save(tmp_path / "run")
    assert json.loads((out / "metrics.json").read_text(encoding="utf-8")) == result.metrics
    assert result.metrics["decision"] == result.decision.outcome
    refused("holds a run", result.save, out)
    result.save(out, force=True)


def test_a_result_and_its_folder_predict_the_same(result, frame, tmp_path):
    folder = result.save(tmp_path / "run")
    frame = frame.assign(predicted="mine")
    first, second = tabular.predict(result, frame), tabular.predict(folder, polars.from_pandas(frame))
    assert first.predicted.tolist() == second.predicted.tolist()
    assert first.frame["predicted"].tolist() == ["mine"] * len(frame)
    assert first.frame["predicted_"].tolist() == second.frame["predicted_"].to_list()
    assert first.notes == ["The table has a column 'predicted' already; that of the model is 'predicted_'."]
    (note,) = tabular.predict(result, frame.drop(columns="predicted").assign(hours=None)).notes
    assert note == "Column 'hours' has no value at all, and training had one in every row."
    first.save(tmp_path / "out.csv")
    assert pandas.read_csv(tmp_path / "out.csv")["predicted_"].tolist() == first.predicted.tolist()


def test_results_show_themselves_in_notebooks(result, frame):
    shown = result._repr_html_()
    assert html.escape(result.decision.sentence) in shown
    assert shown.count('class="bar"') == 4  # two groups, two models
    assert "--" not in re.sub(r"<style>.*?</style>", "", shown, flags=re.DOTALL)  # advice is in Python
    assert str(frame["hours"].iloc[result.run.suspects["row"][0]]) not in shown
    hostile = frame.head(3).assign(job="<img src=x>", **{"<script>": "x"})
    guessed = tabular.predict(result, hostile)._repr_html_()
    assert "<img" not in guessed
    assert "<script>" not in guessed
    assert "&lt;img" in guessed


def test_an_audit_decides_on_the_labels(frame, tmp_path):
    found = tabular.audit(frame, label="income", sensitive=["sex"])
    assert found.model is None
    assert found.metrics["decision"] == found.decision.outcome
    assert list(found.suspects.columns)[: len(frame.columns)] == list(frame.columns)
    saved = pandas.read_csv(found.save(tmp_path / "suspects.csv"))
    assert len(saved) == len(found.suspects)
    assert html.escape(found.decision.sentence) in found._repr_html_()


def test_an_unknown_setting_is_refused(frame):
    told = r"'keep_sensitiv' is no setting of a table. Did you mean 'keep_s"
    refused(told, tabular.train, frame, label="income", sensitive="sex", keep_sensitiv=True)
    with pytest.raises(InvalidInputError, match=r"call \.collect"):
        tabular.train(polars.from_pandas(frame).lazy(), label="income", sensitive="sex")
    refused("the data frame must have rows", tabular.train, frame.head(0), label="income", sensitive="sex")
    with pytest.raises(InvalidInputError, match="label must be a column of the data frame; got 'incom'"):
        tabular.train(frame, label="incom", sensitive="sex")
