"""Selection rates and impact ratios as the rule defines them, by hand and in the folder of an audit."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairsieve import tabular
from fairsieve.errors import InvalidInputError
from fairsieve.metrics import wilson
from fairsieve.tabular.audits import SMALL_NOTE, rate_categories, ratio_interval

COUNTS = st.tuples(st.integers(0, 60), st.integers(1, 60)).map(lambda pair: (min(pair), max(*pair, 1)))


def people(seed=0):
    """600 people, of whom women and Blue ones are selected less; 6 are Grey; 4 do not say who they are."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"sex": np.repeat(["Female", "Male"], 300), "skill": rng.normal(size=600)})
    frame["race"] = np.tile(["Blue", "Green"], 300).astype(object)
    frame.loc[:5, "race"] = "Grey"
    frame.loc[6:9, "race"] = None
    chance = 0.3 + 0.2 * (frame["sex"] == "Male") + 0.1 * (frame["race"] == "Green")
    frame["hired"] = np.where(rng.random(600) < chance, "yes", "no")
    frame["chosen"] = np.where(rng.random(600) < chance, "yes", "no")
    frame["rank"] = np.round(np.clip(chance + rng.normal(size=600) / 10, 0, 1), 3)
    return frame


def by_hand(frame, by, selected):
    """Rates and ratios without any of ours."""
    rates = selected.groupby(frame[by]).mean()
    large = frame[by].value_counts(normalize=True) >= 0.02
    return rates, rates / rates[large[rates.index]].max()


SETTINGS = {"label": "hired", "sensitive": ["sex", "race"], "positive": "yes", "small_groups": "ignore"}


def test_rates_are_those_by_hand():
    frame = people()
    found = tabular.audit(frame, prediction="chosen", score="rank", format="ll144", **SETTINGS).audit.impact
    assert found["measure"].unique().tolist() == ["selection", "scoring"]
    assert found["by"].unique().tolist() == ["sex", "race", "sex × race"]
    frame = frame.assign(**{"sex × race": frame["sex"] + " / " + frame["race"]})
    selections = {"selection": frame["chosen"] == "yes", "scoring": frame["rank"] > frame["rank"].median()}
    for (measure, by), part in found.groupby(["measure", "by"]):
        rates, ratios = by_hand(frame, by, selections[measure])
        part = part.set_index("category")
        assert part.drop(index="unknown", errors="ignore")["rate"].to_dict() == pytest.approx(rates.to_dict())
        told = part["impact_ratio"].dropna()
        assert told.to_dict() == pytest.approx(ratios.to_dict())
        for row in part.itertuples():
            assert (row.rate_low, row.rate_high) == pytest.approx(wilson(row.selected, row.people))
    race = found[(found["by"] == "race") & (found["measure"] == "selection")].set_index("category")
    assert race.loc["unknown", ["people", "note"]].tolist() == [4, "no category is known"]
    assert race.loc["Grey", "note"] == SMALL_NOTE
    assert race["people"].sum() == 600


def test_without_predictions_the_labels_are_the_selections(tmp_path):
    frame = people()
    result = tabular.audit(frame, format="ll144", **SETTINGS)
    result.save(tmp_path / "ll144.csv")
    written = pd.read_csv(tmp_path / "ll144.csv")
    assert len(written) == len(result.audit.impact)
    women = written[written["category"] == "Female"].iloc[0]
    assert women["rate"] == pytest.approx((frame["hired"] == "yes")[:300].mean(), abs=0.0001)


def test_the_folder_has_the_table_and_the_page_a_section(tmp_path):
    result = tabular.audit(people(), prediction="chosen", format="ll144", **SETTINGS)
    folder = result.save(tmp_path / "audit")
    assert list(pd.read_csv(folder / "ll144.csv")["by"].unique()) == ["sex", "race", "sex × race"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Selection rates and impact ratios" in page
    assert "The law sets no threshold" in page
    without = tabular.audit(people(), prediction="chosen", **SETTINGS).save(tmp_path / "without")
    assert not (without / "ll144.csv").exists()
    assert "impact ratio" not in (without / "report.html").read_text(encoding="utf-8")


def test_a_small_category_is_not_what_others_are_divided_by():
    groups = pd.Series(["tiny"] + ["large"] * 99)
    found = rate_categories(groups, np.array([True] + [True] * 49 + [False] * 50)).set_index("category")
    assert found.loc["large", "impact_ratio"] == 1
    assert found.loc["tiny", "impact_ratio"] == pytest.approx(99 / 49)
    assert found.loc["tiny", "note"] == SMALL_NOTE


def test_where_nobody_is_selected_there_is_no_ratio():
    found = rate_categories(pd.Series(["a", "b"] * 20), np.zeros(40, bool))
    assert found["impact_ratio"].isna().all()
    assert found["rate_high"].max() < 0.2


@given(COUNTS, COUNTS.filter(lambda pair: pair[0] > 0))
def test_an_interval_holds_its_ratio_and_is_turned_with_it(first, second):
    low, high = ratio_interval(first, second)
    ratio = (first[0] / first[1]) / (second[0] / second[1])
    assert 0 <= low <= ratio * (1 + 1e-9)
    assert high >= ratio * (1 - 1e-9)
    if first[0] > 0:
        turned = ratio_interval(second, first)
        assert low == pytest.approx(1 / turned[1] if np.isfinite(turned[1]) else 0, abs=1e-9)


def test_intervals_cover_the_true_ratio():
    rng = np.random.default_rng(0)
    hits = rng.binomial([60, 80], [0.3, 0.5], size=(1000, 2))
    ends = [ratio_interval((int(one), 60), (int(other), 80)) for one, other in hits]
    assert np.mean([low <= 0.6 <= high for low, high in ends]) >= 0.93


def test_bad_input_is_named():
    three = people().assign(hired=np.tile(["yes", "no", "later"], 200))
    with pytest.raises(InvalidInputError, match="must name the label that stands for being selected"):
        tabular.audit(three, label="hired", sensitive="sex", format="ll144")
    with pytest.raises(InvalidInputError, match="must be one of ll144; got 'eu'"):
        tabular.audit(people(), format="eu", **SETTINGS)
