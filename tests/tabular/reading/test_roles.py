"""Labels, groups and features: what columns are for, and what people get wrong about them."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairsieve.errors import InvalidInputError
from fairsieve.tabular.reading.columns import InputTable, Reading, as_numbers, canonical, kind_of, listed
from fairsieve.tabular.reading.encoding import (
    Preparation,
    describe_features,
    feature_values,
    new_categories,
    used,
)
from fairsieve.tabular.reading.roles import Groups, find_groups, find_labels, parse_bins
from fairsieve.tabular.settings import TableSettings


def text(values):
    """A column of texts as it is read; None is missing."""
    return pd.Series(values, dtype=object).astype("category")


def table_of(reading=None, **columns):
    """A table as it is read."""
    made = {
        name: values if isinstance(values, np.ndarray) else text(values).array
        for name, values in columns.items()
    }
    frame = pd.DataFrame(made)
    frame.index += 2
    return InputTable("t.csv", frame, reading or Reading(decimal="."))


def names(found):
    return listed(pd.Series(found))


# ---- Kinds


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2.5", None, "-3e2"], "numbers"),
        (["a", "b", "1"], "categories"),
        (["00501", "10001"], "categories"),
        ([None, None], "categories"),
        (["True", "False"], "categories"),
    ],
)
def test_kinds(values, kind):
    assert kind_of(table_of(x=values), "x") == kind


def test_a_mixture_is_refused_with_the_ways_out():
    table = table_of(x=["1", "2", "inf", "about 3"])
    message = r"column 'x' of t.csv mixes numbers with 2 texts \('inf', 'about 3'; rows 4, 5\)"
    with pytest.raises(InvalidInputError, match=message) as raised:
        kind_of(table, "x")
    assert "--missing 'inf'" in str(raised.value)
    assert "--categories 'x'" in str(raised.value)
    assert kind_of(table, "x", categories=["x"]) == "categories"


def test_decimal_commas():
    table = table_of(Reading(";", ","), x=["1,5", "2"])
    assert kind_of(table, "x") == "numbers"
    assert as_numbers(table, "x").tolist() == [1.5, 2.0]


@given(st.lists(st.one_of(st.none(), st.integers(-1000, 1000)), max_size=20))
def test_numbers_are_written_in_one_way(numbers):
    ways = [
        None if value is None else f"{value}.0" if place % 2 else f"{value}"
        for place, value in enumerate(numbers)
    ]
    assert listed(canonical(text(ways))) == [None if value is None else str(value) for value in numbers]


# ---- Labels


def test_labels_and_their_positive_one():
    table = table_of(y=["no"] * 10 + ["yes"] * 10 + [None])
    assert find_labels(table, "y").classes == ("no", "yes")
    assert find_labels(table, "y").positive == "yes"
    assert find_labels(table, "y", "no").positive == "no"
    assert find_labels(table_of(y=["a", "b", "c"] * 10), "y").positive is None
    assert find_labels(table_of(y=["0", "1"] * 10), "y", "1.0").positive == "1"


@pytest.mark.parametrize(
    ("values", "positive", "message"),
    [
        (["yes"] * 20, None, "two or more values to tell apart; 'y' of t.csv has only the value 'yes'"),
        ([None] * 20, None, "has no value at all"),
        (
            [str(i) for i in range(300)],
            None,
            "at most 20 values; 'y' of t.csv has 300, such as '0'. For a quantity",
        ),
        (
            ["no"] * 20 + ["yes"] * 20 + ["yse"],
            None,
            "in at least 10 rows; 'yse' of 'y' is in 1: correct it if",
        ),
        (["no", "yes"] * 20, "Yes", "--positive must be a value of 'y'; got 'Yes'. Did you mean 'yes'"),
    ],
)
def test_bad_labels(values, positive, message):
    with pytest.raises(InvalidInputError, match=message):
        find_labels(table_of(y=values), "y", positive)


def test_new_labels_in_a_test_file_are_refused():
    labels = find_labels(table_of(y=["no", "yes"] * 10), "y")
    with pytest.raises(InvalidInputError, match="must be among no, yes; got also 'perhaps'"):
        labels.read(table_of(y=["no", "perhaps"]))


# ---- Groups


def test_groups_of_one_column_and_of_two():
    table = table_of(sex=["w", "m"] * 60, race=["a", "a", "b", "b"] * 30)
    assert find_groups(table, ["sex"])[0].names == ("m", "w")
    crossed = find_groups(table, ["sex", "race"])[0]
    assert crossed.names == ("m / a", "m / b", "w / a", "w / b")
    assert names(crossed.read(table_of(sex=["w", None, "x"], race=["b", "a", "a"]))) == ["w / b", None, None]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["w"] * 100, "two or more groups to compare; 'z' of t.csv has only 'w'"),
        (
            [f"name {i}" for i in range(3000)],
            "at most 20 groups; 'z' of t.csv makes 3,000: choose a column of groups",
        ),
        (
            [str(i % 60 + 18) for i in range(600)],
            "has numbers, 60 different ones: add --bins z=33,48,63 to make",
        ),
        (["w", "m"] * 50 + ["x"] * 5, r"at least 30 people.*'x' \(5 people\). Add --small-groups ignore"),
        ([], "has no value at all"),
    ],
)
def test_bad_sensitive_columns(values, message):
    values = values or [None] * 3
    with pytest.raises(InvalidInputError, match=message):
        find_groups(table_of(z=values), ["z"])


def test_small_groups_are_ignored_or_merged():
    table = table_of(z=["w", "m"] * 50 + ["x"] * 20 + ["y"] * 15)
    ignored, notes = find_groups(table, ["z"], small_groups="ignore")
    assert ignored.names == ("m", "w")
    assert names(ignored.read(table))[-1] is None
    assert notes == ["Groups of fewer than 30 people are trained on but not compared: x (20), y (15)."]
    merged, notes = find_groups(table, ["z"], small_groups="merge")
    assert merged.names == ("m", "other", "w")
    assert names(merged.read(table))[-1] == "other"
    assert "are one group, 'other'" in notes[0]


def test_too_many_crossed_groups():
    table = table_of(a=[str(i % 6) for i in range(900)], b=[str(i % 5) for i in range(900)])
    with pytest.raises(InvalidInputError, match="makes 30: name fewer columns"):
        find_groups(table, ["a", "b"])


def test_bins_make_groups_of_numbers():
    table = table_of(age=[str(18 + i % 60) for i in range(600)])
    groups, _ = find_groups(table, ["age"], bins=parse_bins(["age=25,45"]))
    assert names(groups.read(table_of(age=["24", "25", "44.9", "45", None]))) == [
        "under 25",
        "25 to under 45",
        "25 to under 45",
        "45 and over",
        None,
    ]
    assert len(find_groups(table, ["age"], bins={"age": "4"})[0].names) == 4


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        (["age"], "--bins must be COLUMN=EDGES or COLUMN=HOW MANY"),
        (["sex=3"], "--bins must be of a sensitive column, age; got 'sex'"),
        (["age=45,25"], "must be edges in ascending order, such as 25,45,65"),
        (["age=x"], "must be edges in ascending order"),
        (["age=nan,3"], "a number of equally large groups from 2 to 10; got 'nan,3'"),
        (["age=11"], "two or more groups to compare; 'age' of t.csv has only '11 and over'"),
    ],
)
def test_bad_bins(bins, message):
    table = table_of(age=[str(18 + i % 60) for i in range(600)], sex=["w", "m"] * 300)
    with pytest.raises(InvalidInputError, match=message):
        find_groups(table, ["age"], bins=parse_bins(bins))


def test_bins_are_for_numbers():
    with pytest.raises(InvalidInputError, match="has texts, such as 'm' in row 2"):
        find_groups(table_of(sex=["m", "w"] * 50), ["sex"], bins={"sex": "2"})


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50),
    st.lists(st.integers(-100, 100), min_size=1, max_size=5, unique=True),
)
def test_every_number_is_in_the_bin_that_says_so(numbers, edges):
    edges = sorted(edges)
    inner = [f"{low} to under {high}" for low, high in pairwise(edges)]
    bins = (f"under {edges[0]}", *inner, f"{edges[-1]} and over")
    groups = Groups(("x",), bins, {"x": tuple(map(float, edges))})
    for number, name in zip(numbers, names(groups.read(table_of(x=np.array(numbers)))), strict=True):
        assert name == bins[sum(number >= edge for edge in edges)]


@given(st.lists(st.integers(0, 1000), min_size=160, max_size=300, unique=True), st.integers(2, 5))
def test_bins_by_number_are_of_about_equal_size(numbers, count):
    table = table_of(x=np.array(numbers, dtype=float))
    groups, _ = find_groups(table, ["x"], bins={"x": str(count)})
    sizes = np.bincount(groups.read(table).codes)
    assert len(sizes) == count
    assert max(sizes) - min(sizes) <= 1


# ---- Features


def describe(table, label="label", **settings):
    return describe_features(table, TableSettings("t.csv", label, ["group"], **settings))


def features(**columns):
    return {one.column: one for one in describe(table_of(**columns))}


def test_numbers_with_a_decimal_comma_are_told():
    found = features(income=[f"{1000 + n},5{n % 10}" for n in range(60)], age=["1", "2"] * 30)
    assert found["income"].left_out == "numbers with a decimal comma; add --decimal , to learn from them"


def test_what_is_made_of_columns():
    found = features(
        good=[str(i % 7) for i in range(100)],
        gaps=[None, *(str(i % 9) for i in range(99))],
        kind=["a", "b"] * 50,
        empty=[None] * 100,
        same=["x"] * 100,
        number=[str(i) for i in range(100)],
        name=[f"person {i}" for i in range(100)],
        day=[f"2024-01-{i % 28 + 1:02d}" for i in range(100)],
    )
    assert {name for name, one in found.items() if not one.left_out} == {"good", "gaps", "kind"}
    assert found["gaps"].treatment == "missing ones take the median, and a column says which; standardised"
    assert found["kind"].treatment == "one column for each value"
    assert found["empty"].treatment == "left out: no row has a value"
    assert found["same"].treatment == "left out: the same value in every row"
    assert found["number"].treatment == "left out: it numbers the rows"
    assert "names and identifiers" in found["name"].treatment
    assert "dates" in found["day"].treatment


def test_columns_can_be_dropped_and_forced():
    table = table_of(a=["1", "2"] * 30, b=["3", "5"] * 30)
    found = describe(table, drop=["a"], categories=["b"])
    assert [(one.column, one.kind) for one in used(found)] == [("b", "categories")]
    with pytest.raises(InvalidInputError, match=r"--drop must be a column of t.csv; got 'c'"):
        describe(table, drop=["c"])
    with pytest.raises(InvalidInputError, match="must have a column to learn from beside the label"):
        describe(table, "a", drop=["b"])


def test_columns_become_numbers_by_the_book():
    """Median, indicator, standardised; one column a value; what is new is nothing."""
    table = table_of(x=["1", "2", None, "9"], k=["a", "b", None, "a"])
    found = describe(table)
    kinds = {one.column: one.kind for one in found}
    values = feature_values(table, kinds)
    prepared = Preparation().fit(values)
    numbers = prepared.transform(values)
    filled = np.array([1.0, 2.0, 2.0, 9.0])
    gap = np.array([0.0, 0.0, 1.0, 0.0])
    expected = [(column - column.mean()) / column.std() for column in (filled, gap)]
    expected += [[0, 0, 1, 0], [1, 0, 0, 1], [0, 1, 0, 0]]  # "", a, b
    np.testing.assert_allclose(numbers, np.array(expected).T, rtol=1e-6)
    new = feature_values(table_of(x=["1"], k=["c"]), kinds)
    assert new_categories(new, prepared) == {"k": ["c"]}


def test_many_categories_are_the_commonest_and_the_rest():
    values = [f"v{min(i % 80, 60)}" for i in range(4000)]
    table = table_of(k=values)
    found = describe(table)
    assert found[0].treatment == "one column for each value; the 49 commonest, the others as one"
    values = feature_values(table, {"k": "categories"})
    assert Preparation().fit(values).transform(values).shape == (4000, 50)


# ---- Values that floating point would merge


LONG = ["1234567890123451", "1234567890123452", "7"]


@given(st.lists(st.integers(-(10**20), 10**20), min_size=1, max_size=30))
def test_whole_numbers_of_any_length_stay_apart(numbers):
    found = canonical(text([str(number) for number in numbers]))
    assert listed(found) == [str(number) for number in numbers]
    assert found.nunique() == len(set(numbers))


def test_labels_and_groups_of_16_digits_are_not_merged():
    table = table_of(z=LONG * 40, y=["1000000000000000001", "1000000000000000002", "7"] * 40)
    assert find_groups(table, ["z"])[0].names == tuple(sorted(LONG))
    assert find_labels(table, "y").classes == ("1000000000000000001", "1000000000000000002", "7")


def test_whole_numbers_of_parquet_are_not_merged():
    table = table_of(y=np.array([10**18 + 1, 10**18 + 2] * 20, np.int64), x=["1", "2"] * 20)
    assert find_labels(table, "y").classes == ("1000000000000000001", "1000000000000000002")
    table = table_of(y=np.array([2**63 + 1, 2**63 + 2] * 20, np.uint64), x=["1", "2"] * 20)
    assert find_labels(table, "y").classes == (str(2**63 + 1), str(2**63 + 2))
    half = table_of(y=np.array([0.5, 1.0] * 20, np.float64))
    assert find_labels(half, "y").classes == ("0.5", "1")


@pytest.mark.parametrize("stored", ["text", "int64", "uint64"])
def test_identifiers_beyond_2_to_the_53_are_recognised(stored):
    def column(values):
        return [str(value) for value in values] if stored == "text" else np.array(values, stored)

    random = np.random.default_rng(0)
    scattered = [int(value) for value in random.integers(2**60, 2**62, 600)]
    few = [2**60 + 7 * (place % 3) for place in range(600)]
    many = [2**60 + 7 * (place % 90) for place in range(600)]
    found = features(
        counter=column(range(10**18, 10**18 + 600)),
        scattered=column(scattered),
        few=column(few),
        many=column(many),
        good=[str(place % 7) for place in range(600)],
    )
    assert found["counter"].left_out == "it numbers the rows"
    assert "whole numbers beyond 2**53" in found["scattered"].left_out
    assert "identifiers" in found["scattered"].left_out
    assert (found["few"].kind, found["few"].distinct, found["few"].left_out) == ("categories", 3, "")
    assert "taken as categories" in found["few"].treatment
    assert "subtract a constant, or add --categories" in found["many"].left_out
    assert found["good"].kind == "numbers"


def test_codes_with_leading_zeros_stay_as_they_are():
    assert listed(canonical(text(["007", "7"]))) == ["007", "7"]


@given(
    st.lists(
        st.tuples(
            st.one_of(st.just(float("nan")), st.floats(-1e6, 1e6)),
            st.sampled_from(["a", "b", None, "c"]),
            st.integers(0, 70),
        ),
        min_size=1,
        max_size=120,
    ),
    st.lists(
        st.tuples(st.floats(-1e6, 1e6), st.sampled_from(["a", None, "new"]), st.integers(60, 80)), min_size=1
    ),
)
def test_encoding_gives_what_scikit_learn_gives(rows, others):
    """Statistics and categories are our own; scikit-learn's parts are the oracle."""

    def values_of(rows):
        number, words, many = zip(*rows, strict=True)
        coded = {"text": text(words).array, "many": text([f"v{value}" for value in many]).array}
        return pd.DataFrame({"number": np.array(number), **coded})

    def objects(part):
        texts = {name: part[name].astype(object).where(part[name].notna(), "") for name in ("text", "many")}
        return part[["number"]].assign(**texts)

    values = values_of(rows)
    prepared = Preparation().fit(values)
    fill = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    one_hot = OneHotEncoder(max_categories=50, handle_unknown="infrequent_if_exist", sparse_output=False)
    oracle = ColumnTransformer([("numbers", fill, ["number"]), ("texts", one_hot, ["text", "many"])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle.fit(objects(values))
        if np.isnan(values["number"]).all():
            return  # scikit-learn drops such a column; describe_features leaves it out before
        for part in (values, values_of(others)):
            most = np.finfo(np.float32).max
            expected = np.clip(oracle.transform(objects(part)), -most, most)
            np.testing.assert_allclose(prepared.transform(part), expected, rtol=1e-5, atol=1e-5)
