"""A table in parts: the model of the same table whole, with what cannot be known of a part alone merged."""

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.refusals import refused

from fairsieve import tabular
from fairsieve.errors import FairsieveError, InvalidInputError
from fairsieve.tabular.partitions.source import find_source, parse_memory
from fairsieve.tabular.reading.encoding import OneHot

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.usefixtures("rows_in_their_order")
ROWS, MEMORY = 16_000, "3MB"  # more than is solved in one process; less than the rows need
ROLES = {"label": "income", "sensitive": "sex"}


def people(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    woman = rng.random(rows) < 0.4
    frame = pd.DataFrame({"age": rng.integers(18, 90, rows).astype(float), "hours": rng.normal(40, 9, rows)})
    frame["job"] = np.array(["cook", "nurse", "clerk", "smith"])[rng.integers(0, 4, rows)]
    score = 0.05 * frame["age"] + 0.08 * frame["hours"] + (frame["job"] == "smith") - 0.5 * woman - 5.7
    frame["sex"] = np.where(woman, "woman", "man")
    high = score + rng.logistic(size=rows) * 0.5 > 0
    frame["income"] = np.where(high ^ (rng.random(rows) < 0.1), "high", "low")
    frame.loc[rng.random(rows) < 0.05, "age"] = np.nan
    frame.loc[rows - 30 :, "job"] = "pilot"  # in the last part alone
    return frame


def write_parts(frame, folder, parts=4, kind="parquet"):
    folder.mkdir()
    for place, rows in enumerate(np.array_split(np.arange(len(frame)), parts)):
        part = frame.iloc[rows].reset_index(drop=True)
        if kind == "parquet":
            part.to_parquet(folder / f"part-{place}.parquet")
        else:
            part.to_csv(folder / f"part-{place}.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def frame():
    return people()


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    found = write_parts(frame, tmp_path_factory.mktemp("data") / "parts")
    frame.iloc[:0].to_parquet(found / "part-1-empty.parquet")
    return found


@pytest.fixture(scope="module")
def whole(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "people.parquet"
    frame.to_parquet(path)
    return tabular.train(path, clean_ratio=0.9, **ROLES)


@pytest.fixture(scope="module")
def in_parts(folder):
    return tabular.train(folder, clean_ratio=0.9, memory=MEMORY, **ROLES)


def coefficients(point):
    """Return the coefficients by what they stand for, in the units of the table."""
    prepared, model = point.model["prepare"], point.model["model"]
    names = [*prepared.numbers_, *(f"{name}: gap" for name in prepared.gaps_)]
    for name, known in prepared.categories_.items():
        names += [f"{name}: {text}" for text in known]
    return dict(zip([*names, ""], [*model.coef_[0], model.intercept_[0]], strict=True))


@pytest.mark.parametrize("which", ["plain", "fair"])
def test_the_model_is_that_of_one_file(whole, in_parts, which):
    assert in_parts.run.problem.parts is not None
    expected, found = (coefficients(getattr(run.run.trained, which)) for run in (whole, in_parts))
    assert "job: pilot" in found
    assert "age: gap" in found
    assert found == pytest.approx(expected, abs=1e-6)
    prepared = [run.run.trained.plain.model["prepare"] for run in (whole, in_parts)]
    fills = [dict(zip(each.numbers_, each.fill_, strict=True)) for each in prepared]
    assert fills[0] == fills[1]


def test_the_decision_is_that_of_one_file_by_default(frame, tmp_path):
    """Fewer rows are measured on in parts; where groups do not differ, they suffice to say so."""
    frame = frame.assign(sex=np.random.default_rng(9).permutation(frame["sex"]))
    folder = write_parts(frame, tmp_path / "parts")
    runs = [tabular.train(frame, **ROLES), tabular.train(folder, memory=MEMORY, **ROLES)]
    assert [run.decision.outcome for run in runs] == ["keep-plain"] * 2
    ratios = [run.run.estimate.clean_ratio for run in runs]
    assert ratios[0] == pytest.approx(ratios[1], abs=0.02)
    # Labels are corrected in parts too.
    assert runs[1].run.estimate.acts
    assert any(len(run.suspects[["age", "hours"]].drop_duplicates()) > 50 for run in runs)
    both = [set(run.suspects["hours"]) for run in runs]
    assert len(both[0] & both[1]) > 0.9 * len(both[0] | both[1])


def test_the_folder_says_which_file_a_row_is_of_and_how_many_were_looked_at(in_parts, folder, tmp_path):
    out = in_parts.save(tmp_path / "run")
    suspects = pd.read_csv(out / "suspects.csv")
    for one in suspects.iloc[:20].itertuples():
        row = pd.read_parquet(folder / one.file).iloc[one.row - 2]
        assert (row["income"], row["sex"]) == (one.label, one.sex)
        assert row["hours"] == pytest.approx(one.hours)
    assert in_parts.metrics["data"]["train_rows"] == ROWS
    assert any("16,000 rows in all" in note for note in in_parts.metrics["data"]["notes"])
    assert in_parts.metrics["data"]["measured_rows"] == pytest.approx(ROWS / 5, rel=0.01)


@pytest.mark.parametrize("kind", ["parquet", "csv", "one"])
def test_predictions_are_written_with_the_names_of_the_input(in_parts, frame, folder, tmp_path, kind):
    few = frame.drop(columns="income").iloc[:3000]
    if kind == "one":
        data, out = tmp_path / "people.csv", tmp_path / "predicted.csv"
        few.to_csv(data, index=False)
    else:
        data, out = write_parts(few, tmp_path / "parts", 3, kind), tmp_path / "out"
    found = tabular.predict(in_parts, data, memory="1MB")
    assert found.save(out) == out
    if kind == "parquet":
        parts = [pd.read_parquet(out / path.name) for path in sorted(data.iterdir())]
    else:
        parts = [pd.read_csv(path) for path in (sorted(out.iterdir()) if kind == "csv" else [out])]
    predicted = pd.concat(parts, ignore_index=True)
    expected = tabular.predict(in_parts, few)
    assert predicted["predicted"].tolist() == expected.predicted.tolist()
    assert predicted["probability"].to_numpy() == pytest.approx(expected.probability, abs=1e-4)
    assert predicted["job"].tolist() == few["job"].tolist()
    assert not list(tmp_path.glob(".*"))


def test_quotes_and_line_ends_in_texts_are_not_cut(tmp_path):
    frame = people(4000)
    frame["job"] = np.where(np.arange(4000) % 3 == 0, 'a "b"\nc, d', frame["job"])
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    pieces = find_source(path, parse_memory("1MB")).pieces
    assert len(pieces) > 3
    from fairsieve.tabular.reading.columns import Reading

    tables = [piece.read(Reading()) for piece in pieces]
    assert sum(map(len, tables)) == 4000
    found = [text for table in tables for text in table.cells("job")]
    assert found == [text.strip() for text in frame["job"]]
    assert [table.rows[0] for table in tables[1:]] == [table.rows[-1] + 1 for table in tables[:-1]]


@pytest.mark.parametrize("name", ["age", "job"])
def test_a_part_of_another_type_is_named_with_its_column(frame, tmp_path, name):
    folder = write_parts(frame, tmp_path / "parts")
    part = pd.read_parquet(folder / "part-2.parquet")
    part[name] = part[name].astype(str) + " x" if name == "age" else 7
    part.to_parquet(folder / "part-2.parquet")
    with pytest.raises(InvalidInputError, match=rf"column '{name}' must hold the same .*part-2\.parquet has"):
        tabular.train(folder, memory=MEMORY, **ROLES)


@pytest.mark.parametrize("memory", [MEMORY, "4GB"])
@pytest.mark.parametrize("place", [0, 3])
def test_other_columns_are_named(frame, tmp_path, memory, place):
    """Also where the parts are read whole, and where it is the first that lacks a column of the others."""
    folder = write_parts(frame, tmp_path / "parts")
    path = folder / f"part-{place}.parquet"
    pd.read_parquet(path).drop(columns="hours").to_parquet(path)
    told = r"part-3\.parquet lacks 'hours'" if place else r"part-1\.parquet also has 'hours'"
    refused(told, tabular.audit, folder, memory=memory, **ROLES)


@pytest.mark.parametrize(("option", "way"), [
    ({"model": "hist-gradient-boosting"}, "--model|model needs all rows"),
    ({"test": 0.2}, "rows are measured on"),
    ({"memory": "lots"}, "must be a size of at least 1MB"),
    ({"backend": "ray"}, "must be local or the address of a dask scheduler"),
    ({"backend": "dask://127.0.0.1:9"}, "does not answer"),
])  # fmt: skip
def test_what_parts_cannot_do_is_refused_by_name(folder, option, way, monkeypatch):
    from fairsieve.tabular.partitions import partitions

    monkeypatch.setattr(partitions, "CONNECT", 2)
    refused(way, tabular.train, folder, **{"memory": MEMORY, **ROLES, **option})


def test_a_threshold_is_chosen_by_a_rule(folder, whole, frame):
    settings = {**ROLES, "clean_ratio": 0.9, "threshold": "rate:0.3", "max_iter": 8}
    found = tabular.train(folder, memory=MEMORY, **settings)
    predicted = tabular.predict(found, frame).predicted
    assert np.mean(predicted == "low") == pytest.approx(0.3, abs=0.01)
    expected = tabular.train(frame, **settings).run.trained.fair.threshold
    assert found.run.trained.fair.threshold == pytest.approx(expected, abs=0.01)


def test_a_test_file_is_measured_on_and_told_of_rows_that_were_learnt_from(folder, frame, tmp_path):
    new = people(1200, seed=1)
    pd.concat([new, frame.iloc[:7]]).to_csv(tmp_path / "new.csv", index=False)
    settings = {**ROLES, "clean_ratio": 0.9, "test_file": tmp_path / "new.csv", "max_iter": 8}
    found = tabular.train(folder, memory=MEMORY, **settings)
    assert found.metrics["data"]["measured_rows"] == 1207
    assert any("7 of the 1,207 rows measured on equal a row" in note for note in found.run.notes)
    expected = tabular.train(frame, **settings)
    for model, measure in product(("plain", "fair"), ("accuracy", "disparity")):
        one, other = (run.metrics[model][measure]["value"] for run in (found, expected))
        assert one == pytest.approx(other, abs=0.01)


def test_checked_labels_are_learnt_from(folder, frame, tmp_path):
    """Answers to a review of the parts: the estimate knows them, and no suspect is a row that somebody checked."""
    chosen = tabular.review(folder, memory=MEMORY, rows=150, **ROLES)
    assert chosen.review.parts is not None
    sheet = chosen.save(tmp_path / "review.html")
    lines = pd.read_csv(sheet, dtype=str, keep_default_na=False)
    lines["verified_label"] = lines["given_label"]
    lines.to_csv(sheet, index=False)
    found = tabular.train(folder, memory=MEMORY, verified=[sheet], **ROLES)
    assert found.run.verified["wrong"].total == 150
    assert found.run.estimate.clean_ratio > 0.95  # they say that nothing is wrong
    audited = tabular.audit(folder, memory=MEMORY, verified=[sheet], **ROLES)
    assert audited.audit.estimate.clean_ratio == pytest.approx(found.run.estimate.clean_ratio, abs=0.02)
    checked = set(chosen.rows["row"])
    for suspects in (found.run.suspects, audited.audit.suspects):
        assert not checked & set(suspects["row"])


def test_a_folder_without_tables_is_refused(tmp_path):
    refused(re.escape("must have files that end in .parquet"), tabular.audit, tmp_path, **ROLES)


def test_a_folder_that_fits_is_read_whole(frame, tmp_path):
    folder = write_parts(frame.iloc[:2000], tmp_path / "parts", 2, "csv")
    found = tabular.audit(folder, **ROLES)
    assert found.audit.parts is None
    assert len(found.audit.table) == 2000
    first = found.suspects.iloc[0] if len(found.suspects) else None
    if first is not None:
        row = pd.read_csv(folder / first["file"]).iloc[first["row_in_file"] - 2]
        assert row["income"] == first["income"]


def test_nothing_stays_where_predicting_fails(in_parts, frame, tmp_path):
    folder = write_parts(frame.drop(columns=["income", "hours"]).iloc[:200], tmp_path / "parts", 2)
    with pytest.raises(FairsieveError, match="hours"):
        tabular.predict(in_parts, folder).save(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


@given(
    st.integers(1, 40), st.lists(st.integers(1, 5), max_size=3), st.integers(0, 3), st.integers(0, 2**32 - 1)
)
@settings(max_examples=30)
def test_categories_as_codes_multiply_as_their_columns_do(rows, widths, numbers, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, np.array(widths, int) + 1, (rows, len(widths))).astype(np.uint8)
    features = OneHot(rng.normal(size=(rows, numbers)), codes, widths)
    whole = np.zeros((rows, 0))
    for column, width in zip(codes.T, widths, strict=True):
        whole = np.hstack([whole, np.equal.outer(column, np.arange(width))])
    whole = np.hstack([features.numbers, whole])
    assert np.asarray(features).tolist() == whole.tolist()
    assert np.asarray(features[rows // 2 :]).tolist() == whole[rows // 2 :].tolist()
    right, left = rng.normal(size=(whole.shape[1], 2)), rng.normal(size=(3, rows))
    assert features @ right == pytest.approx(whole @ right)
    assert left @ features == pytest.approx(left @ whole)
    assert left[0] @ features == pytest.approx(left[0] @ whole)
