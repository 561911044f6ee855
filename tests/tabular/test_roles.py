"""Labels, groups and features: what columns are for, and what people get wrong about them."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.support.refusals import refused

from fairsieve import tabular
from fairsieve.errors import InvalidInputError
from fairsieve.tabular.reading.encoding import Preparation
from fairsieve.tabular.reading.roles import _bin_numbers, find_edges, write_bins

ROWS = 120


def cycle(values, rows=ROWS):
    """Repeat values to a column; an array keeps its type."""
    repeated = [values[row % len(values)] for row in range(rows)]
    return np.array(repeated, values.dtype) if isinstance(values, np.ndarray) else repeated


def audit(label="y", sensitive="z", rows=ROWS, **given):
    """Audit a table of columns that repeat their values, beside two labels and two groups; other settings too."""
    columns = {"y": ["no", "yes", "yes"], "z": ["m", "w"], "ok": list("abcde")}
    chosen = {}
    for name, value in given.items():
        column = isinstance(value, np.ndarray) or (isinstance(value, list) and name not in ("bins", "drop"))
        (columns if column else chosen)[name] = value
    frame = pd.DataFrame({name: cycle(values, rows) for name, values in columns.items()})
    return tabular.audit(frame, label=label, sensitive=sensitive, **chosen).audit


def features(rows=ROWS, **given):
    return {one.column: one for one in audit(rows=rows, **given).features}


def group_names(found):
    return [None if code < 0 else found.groups.names[code] for code in found.train.groups.codes]


# ---- Kinds


def test_a_mixture_is_refused_with_the_ways_out():
    mixed = ["1", "2", "inf", "about 3"]
    message = r"column 'x' of the data frame mixes numbers with 60 texts \('inf', 'about 3'; rows 2, 3, 6 …\)"
    with pytest.raises(InvalidInputError, match=message) as raised:
        audit(x=mixed)
    assert "missing='inf'" in str(raised.value)
    assert "categories='x'" in str(raised.value)
    assert features(x=mixed, categories="x")["x"].kind == "categories"


@pytest.mark.parametrize(("separator", "texts", "numbers"), [
    (";", ["1,5", "2", "0,25"], [1.5, 2.0, 0.25]),
    (";", ["€ 1.234,50", "€ 2,00", "3"], [1234.5, 2.0, 3.0]),
    (";", ["70,5 %", "5 %"], [70.5, 5.0]),
    (",", ['"1,234.5"', "2.25"], [1234.5, 2.25]),
    (",", ["$5.5", "-$6"], [5.5, -6.0]),
    (",", ["1'234", "1 234 567.5"], [1234.0, 1234567.5]),
    (";", ["\u22121,5", "(0,29)", "(€ 3)", "2"], [-1.5, -0.29, -3.0, 2.0]),
])  # fmt: skip
def test_numbers_as_people_write_them_are_read(tmp_path, separator, texts, numbers):
    rows = [(("no", "yes")[row % 3 > 0], "mw"[row % 2], texts[row % len(texts)]) for row in range(ROWS)]
    (tmp_path / "t.csv").write_text("\n".join(separator.join(row) for row in [("y", "z", "x"), *rows]))
    found = tabular.audit(tmp_path / "t.csv", label="y", sensitive="z").audit
    assert found.train.values["x"].tolist() == cycle(numbers)


@pytest.mark.parametrize(("texts", "expected"), [
    (["2026-03-04", "04.03.2026", "2026-3-5"], [20516.0, 20516.0, 20517.0]),
    (["2026-03-04T06:00", "2026-03-04 18:00:00", "2026-03-04"], [20516.25, 20516.75, 20516.0]),
    (["1969-12-31", None], [-1.0, np.nan]),
    (["2026-03-04", "03/04/2026"], "'03/04/2026' in row 1"),
    (["2026-02-30", "2026-03-04"], "'2026-02-30' in row 0"),
    (["2026-03-04", "soon"], "'soon' in row 1"),
    (np.array([2026, 2027]), "'2026' in row 0"),
])  # fmt: skip
def test_dates_that_mean_one_day_are_read(texts, expected):
    if isinstance(expected, str):
        told = f"dates must be a column of dates, written as 2026.* has {expected}"
        refused(told, audit, x=texts, dates="x")
    else:
        np.testing.assert_array_equal(audit(x=texts, dates="x").train.values["x"], cycle(expected))


# ---- Labels


def test_labels_and_their_positive_one():
    labels = audit().labels
    assert (labels.classes, labels.positive) == (("no", "yes"), "yes")
    assert audit(positive="no").labels.positive == "no"
    assert audit(y=["a", "b", "c"]).labels.positive is None
    assert audit(y=["0", "1", "1.0"], positive="1.0").labels.positive == "1"
    assert audit(y=["007", "7"]).labels.classes == ("007", "7")
    assert audit(y=np.array([0, 1]), positive=0).labels.positive == "0"
    refused(r"must be a value of 'y'; got 'Yes'. Did you mean 'yes'", audit, positive="Yes")


def test_new_labels_in_a_test_file_are_refused():
    table = pd.DataFrame({"y": cycle(["no", "yes", "yes"]), "z": cycle(["m", "w"]), "x": cycle(["a", "b"])})
    with pytest.raises(InvalidInputError, match="must be among no, yes; got also 'perhaps'"):
        tabular.train(table, label="y", sensitive="z", test_file=table.assign(y="perhaps"))


# ---- Groups


def test_groups_of_one_column_and_of_two():
    assert audit(z=["w", "m"]).groups.names == ("m", "w")
    crossed = audit(sensitive=["z", "race"], z=["w", "m"], race=["a", "a", "b", "b", None], rows=200)
    assert crossed.groups.names == ("m / a", "m / b", "w / a", "w / b")
    assert group_names(crossed)[:5] == ["w / a", "m / a", "w / b", "m / b", None]


def test_crossed_groups_do_not_run_into_each_other():
    given = {"z": ["a / b", "a", "a /", "a"], "h": ["c", "b / c", "d", "/ d"]}
    names = ("'a / b' / c", "'a /' / d", "a / '/ d'", "a / 'b / c'")
    assert audit(sensitive=["z", "h"], rows=160, **given).groups.names == names


def test_small_groups_are_ignored_or_merged():
    values = ["w", "m"] * 42 + ["x"] * 20 + ["v"] * 16
    ignored = audit(z=values, small_groups="ignore")
    assert ignored.groups.names == ("m", "w")
    assert group_names(ignored)[-1] is None
    told = "Groups of fewer than 30 people are trained on but not compared: v (16), x (20)."
    assert told in ignored.notes
    merged = audit(z=values, small_groups="merge")
    assert merged.groups.names == ("m", "other", "w")
    assert group_names(merged)[-1] == "other"
    assert any("are one group, 'other'" in note for note in merged.notes)


def test_a_group_called_other_is_not_the_one_of_small_groups():
    values = ["w", "m", "other"] * 42 + ["x"] * 20 + ["v"] * 16
    merged = audit(z=values, rows=len(values), small_groups="merge")
    assert merged.groups.names == ("(other)", "m", "other", "w")
    assert group_names(merged).count("other") == values.count("other")
    assert group_names(merged)[-1] == "(other)"


def test_too_many_crossed_groups():
    refused("makes 30: name fewer columns", audit, sensitive=["z", "b"], z=list("abcdef"), b=list("12345"))


def test_bins_make_groups_of_numbers():
    found = audit(z=["24", "25", "44.9", "45", None], rows=200, bins=["z=25,45"])
    names = ["under 25", "25 to under 45", "25 to under 45", "45 and over", None]
    assert group_names(found)[:5] == names
    ages = [str(18 + i) for i in range(60)]
    assert len(audit(z=ages, rows=240, bins=["z=4"]).groups.names) == 4
    refused("has numbers, 60 different ones: add bins='z=33,48,63' to make", audit, z=ages)


@pytest.mark.parametrize(("bins", "message"), [
    ("sex=3", "bins must be of a sensitive column, z; got 'sex'"),
    ("z=45,25", "must be edges in ascending order, such as 25,45,65"),
    ("z=x", "must be edges in ascending order"),
    ("z=nan,3", "a number of equally large groups from 2 to 10; got 'nan,3'"),
    ("z=11", "two or more groups to compare; 'z' of the data frame has only '11 and over'"),
])  # fmt: skip
def test_bad_bins(bins, message):
    refused(message, audit, z=[str(18 + i) for i in range(60)], bins=bins)
    refused("has texts, such as 'm' in row 0", audit, bins="z=2")


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40),
    st.lists(st.integers(-100, 100), min_size=1, max_size=5, unique=True),
)
@settings(max_examples=15)
def test_every_number_is_in_the_bin_that_says_so(numbers, edges):
    """The lowest and the highest bin have people enough; smaller ones are not compared."""
    edges = sorted(edges)
    inner = [f"{low} to under {high}" for low, high in pairwise(edges)]
    bins = [f"under {edges[0]}", *inner, f"{edges[-1]} and over"]
    values = np.array([-1e7, 1e7] * 40 + numbers)
    rule = ",".join(f"{edge}.0" for edge in edges)
    found = audit(z=values, rows=len(values), bins=f"z={rule}", small_groups="ignore")
    expected = [bins[sum(number >= edge for edge in edges)] for number in values]
    compared = {name for name in bins if expected.count(name) >= 30}
    assert group_names(found) == [name if name in compared else None for name in expected]


edges = st.one_of(st.floats(-1e9, 1e9), st.integers(10**6, 10**6 + 5)).map(float)
edges_of_any_size = st.lists(edges, min_size=1, max_size=4, unique=True)


@given(edges_of_any_size)
@example([1000001.0, 1000002.0, 1000003.0])
@example([0.1, 0.30000000000000004, 0.3])
@settings(max_examples=30)
def test_bins_have_different_names_and_are_recorded_exactly(edges):
    edges = sorted(edges)
    numbers = np.array([edges[0] - 1e3, *edges])
    bins = _bin_numbers(numbers, edges)
    assert bins.tolist() == bins.categories.tolist()
    assert len(set(bins)) == len(edges) + 1
    assert find_edges(write_bins("z", edges).removeprefix("z="), numbers, "z") == tuple(edges)


@given(st.lists(st.integers(0, 1000), min_size=160, max_size=300, unique=True), st.integers(2, 5))
@settings(max_examples=15)
def test_bins_by_number_are_of_about_equal_size(numbers, count):
    found = audit(z=np.array(numbers, dtype=float), rows=len(numbers), bins=f"z={count}")
    sizes = np.bincount(found.train.groups.codes)
    assert len(sizes) == count
    assert max(sizes) - min(sizes) <= 1


# ---- Features


def test_what_is_made_of_columns():
    found = features(
        good=[str(i) for i in range(7)],
        gaps=[None, *(str(i) for i in range(9))],
        kind=["a", "b"],
        towns=[f"v{i % 60}" for i in range(ROWS)],
        empty=[None],
        same=["x"],
        number=[str(i) for i in range(ROWS)],
        name=[f"person {i}" for i in range(ROWS)],
        day=[f"2024-01-{i + 1:02d}" for i in range(28)],
        pay=[f"{1000 + n},5{n % 10}" for n in range(ROWS)],
    )
    told = {name: one.treatment("logistic") for name, one in found.items()}
    learnt = {name for name, one in found.items() if not one.left_out}
    assert learnt == {"good", "gaps", "kind", "towns", "ok"}
    assert told["gaps"] == "standardised; missing ones take the median, and a column says which"
    columns = "one column for each value, missing being one; of more than 50, the rarest share one"
    assert told["kind"] == told["towns"] == columns
    assert told["empty"] == "left out: no row has a value"
    assert told["same"] == "left out: the same value in every row"
    assert told["number"] == "left out: it numbers the rows"
    assert "names and identifiers" in told["name"]
    assert "dates" in told["day"]
    assert told["pay"] == "left out: numbers with a decimal comma; add decimal=',' to learn from them"


def test_numbers_that_may_not_be_alike_are_told():
    columns = {"share": ["12.3 %", "0.123"], "pay": ["€ 5.5", "$6.5", "7.5"], "euro": ["€ 5.5", "6.5"]}
    found = features(**columns, some=["1", "x", "y"])
    assert found["share"].hint == "Signs of numbers in column 'share' differ, and are ignored: % and none."
    assert "€ and $" in found["pay"].hint
    assert found["euro"].hint == ""
    told = "Column 'some' has numbers in 40 of 120 rows with a value, and is taken as"
    assert found["some"].hint.startswith(told)
    days = features(day=["03/04/2026", "2026-03-05"])["day"].left_out
    assert days.startswith("dates that may mean two days")


def test_columns_may_be_named_by_numbers():
    frame = pd.DataFrame({0: cycle(["no", "yes", "yes"]), 1: cycle(["m", "w"]), 2: cycle(range(1, 6)), 3: 7})
    roles = {"label": 0, "sensitive": 1, "drop": [3], "missing": 5}
    for found in (tabular.audit(frame, **roles).audit, tabular.review(frame, **roles, id_column=2).review):
        assert (found.labels.column, found.groups.columns, found.asked.drop) == ("0", ("1",), ("3",))
        assert found.features[0].missing == 24
    assert tabular.audit(frame.assign(guess=frame[0]), **roles, prediction="guess").predictions is not None


def test_columns_can_be_dropped_and_forced():
    found = features(a=["1", "2"], b=["3", "5"], drop=["a"], categories="b")
    assert found["a"].left_out == "you asked for it"
    assert found["b"].kind == "categories"


# ---- Values that floating point would merge


@given(st.lists(st.integers(-(10**20), 10**20), min_size=2, max_size=4, unique=True), st.booleans())
@settings(max_examples=15)
def test_whole_numbers_of_any_length_stay_apart(numbers, pointed):
    """As labels and as groups, however they are written."""
    written = [f"{number}.0" if pointed and i % 2 else str(number) for i, number in enumerate(numbers)]
    found = audit(y=written, z=[*written])
    assert found.labels.classes == found.groups.names == tuple(sorted(map(str, numbers)))


def test_whole_numbers_of_frames_are_not_merged():
    for kind, first in ((np.int64, 10**18), (np.uint64, 2**63)):
        found = audit(y=np.array([first + 1, first + 2], kind))
        assert found.labels.classes == (str(first + 1), str(first + 2))
    assert audit(y=np.array([0.5, 1.0])).labels.classes == ("0.5", "1")


@pytest.mark.parametrize("stored", ["text", "int64", "uint64"])
def test_identifiers_beyond_2_to_the_53_are_recognised(stored):
    def column(values):
        return [str(value) for value in values] if stored == "text" else np.array(values, stored)

    random = np.random.default_rng(0)
    found = features(
        rows=600,
        counter=column(range(10**18, 10**18 + 600)),
        scattered=column([int(value) for value in random.integers(2**60, 2**62, 600)]),
        few=column([2**60 + 7 * place for place in range(3)]),
        many=column([2**60 + 7 * place for place in range(90)]),
    )
    assert found["counter"].left_out == "it numbers the rows"
    assert "whole numbers beyond 2**53" in found["scattered"].left_out
    assert "identifiers" in found["scattered"].left_out
    assert (found["few"].kind, found["few"].distinct, found["few"].left_out) == ("categories", 3, "")
    assert "taken as categories: 'few'" in found["few"].hint
    assert "subtract a constant, or add categories" in found["many"].left_out


NUMBERS = st.floats(-1e6, 1e6)
KNOWN = st.tuples(NUMBERS | st.just(np.nan), st.sampled_from(["a", "b", None, "c"]), st.integers(0, 70))
NEW = st.tuples(NUMBERS, st.sampled_from(["a", None, "new"]), st.integers(60, 80))


@given(st.lists(KNOWN, min_size=1, max_size=120), st.lists(NEW, min_size=1))
def test_encoding_gives_what_scikit_learn_gives(rows, others):
    """Statistics and categories are our own; scikit-learn's parts are the oracle."""

    def values_of(rows):
        number, words, many = zip(*rows, strict=True)
        many = [f"v{value}" for value in many]
        frame = pd.DataFrame({"number": np.array(number), "text": words, "many": many})
        return frame.astype({"text": "category", "many": "category"})

    def objects(part):
        texts = {name: part[name].astype(object).where(part[name].notna(), "") for name in ("text", "many")}
        return part[["number"]].assign(**texts)

    values = values_of(rows)
    prepared = Preparation().fit(values)
    fill = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    one_hot = OneHotEncoder(max_categories=50, handle_unknown="infrequent_if_exist", sparse_output=False)
    oracle = ColumnTransformer([("numbers", fill, ["number"]), ("texts", one_hot, ["text", "many"])])
    with warnings.catch_warnings(action="ignore"):
        oracle.fit(objects(values))
        if np.isnan(values["number"]).all():
            return  # scikit-learn drops such a column; reading leaves it out before
        for part in (values, values_of(others)):
            most = np.finfo(np.float32).max
            expected = np.clip(oracle.transform(objects(part)), -most, most)
            # The order of texts, and of their columns, is our own.
            first = len(prepared.numbers_) + len(prepared.gaps_)
            known, rest = prepared.categories_, prepared.rest_
            widths = {name: len(known[name]) + (name in rest) for name in ("text", "many")}
            starts = dict(zip(known, [first, first + widths[next(iter(known))]], strict=True))
            order = [*range(first)]
            for name in ("text", "many"):
                places = np.argsort(prepared.categories_[name], kind="stable").tolist()
                order += [starts[name] + place for place in [*places, *range(len(places), widths[name])]]
            found = prepared.transform(part)[:, order]
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_all_problems_of_a_table_are_told_at_once():
    columns = {"size": "12x", "weight": "12y", "sex": "mmm", "paid": ["yes", "no", "perhaps"]}
    columns["since"] = ["2026-01-01", "soon", "2026-01-03"]
    frame = pd.DataFrame({name: [*values] * 40 for name, values in columns.items()})
    with pytest.raises(InvalidInputError) as caught:
        tabular.train(frame, label="paid", sensitive="sex", dates="since", drop="wieght", positive="maybe")
    text = str(caught.value)
    assert text.startswith("6 problems. (1) positive must be a value of 'paid'; got 'maybe'")
    for number, told in (
        (2, "sensitive must make two or more groups"),
        (3, "drop must be a column of the data frame; got 'wieght'. Did you mean 'weight'?"),
        (4, "column 'size' of the data frame mixes numbers"),
        (5, "column 'weight' of the data frame mixes numbers"),
        (6, "dates must be a column of dates"),
    ):
        assert f". ({number}) {told}" in text
    with pytest.raises(InvalidInputError, match=r"^label must be a column of the data frame; got 'x'"):
        tabular.audit(frame, label="x", sensitive="paid", drop=["size", "weight", "since"])
