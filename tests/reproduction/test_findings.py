"""``docs/reproduction/findings.md`` says what the published tables, claims and records say."""

import csv
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from fairsieve.benchmark.workers import read_results
from fairsieve.notions import EO
from fairsieve.report.text import number
from fairsieve_reproduction import experiments as sets
from fairsieve_reproduction.methods.registry import METHODS
from fairsieve_reproduction.published import paper_tables

DOCS = Path(__file__).parents[2] / "docs"
PUBLISHED = DOCS / "reproduction"
pytestmark = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="part of the repository, not of the package")

VERDICTS = ("holds", "does not hold", "inconclusive", "not comparable")
COLUMNS = ("label flips, EO", "label flips, DP", "group-targeted flips, EO", "group-targeted flips, DP")
ADULT = (*COLUMNS[:2], "flips among men, EO", "flips among men, DP")
BOTH_FR_TRAINS = ("FR-Train (ours)", "FR-Train (published settings)")


@cache
def page():
    return (PUBLISHED / "findings.md").read_text("utf-8")


@cache
def read(name):
    with (PUBLISHED / f"{name}.csv").open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def mean(text):
    return re.match(r"[.\d]*", text)[0]


def row_of(name, method, whose, columns=COLUMNS, title=None):
    """Write a method's row of the page: accuracy / disparity in each column of a table."""
    (row,) = [each for each in read(name) if each["method"] == method and each.get("whose", whose) == whose]
    cells = [[mean(row[f"{column}: {what}"]) for what in ("acc. ↑", "disp. ↓")] for column in columns]
    return [title or method, *(" / ".join(pair) for pair in cells)]


def count(verdicts):
    """Count the four verdicts; the last is left empty where it cannot be."""
    found = [verdicts.count(word) for word in VERDICTS]
    return [str(number) for number in found[:3]] + [str(found[3]) if found[3] else ""]


def counts():
    names = "verdict", "against FR-Train's published settings", "by the paper's own printed numbers"
    ours, published, printed = ([row[name] for row in read("claims")] for name in names)
    corrected = [row["corrected over all claims"] for row in read("claims")]
    named = [one for one, other in zip(ours, published, strict=True) if other != "–"]
    yield "all; where one names FR-Train, against ours", ours
    yield "those that name FR-Train, against ours", named
    yield "the same, against FR-Train as its authors published it", [one for one in published if one != "–"]
    yield "by the paper's own printed means, where it prints them", [one for one in printed if one != "–"]
    yield "all, after a correction for their number", corrected


@cache
def results():
    return sets.Results(read_results(PUBLISHED / "records.jsonl"), sets.Scope())


def pair_of(experiment, fairness):
    """Write the means of an experiment's runs."""
    values = (results().values(experiment, name) for name in ("accuracy", fairness))
    return " / ".join(number(float(each.mean())) for each in values)


def told_ratios():
    """Write the method's row of Table 1, and the ablation without constraints told three clean ratios."""
    for column, title in zip(sets.TABLE1, COLUMNS, strict=True):
        told = {dict(each.fixed)["clean_ratio"]: each for each in sets.clean_ratio_experiments(column)}
        cells = [pair_of(told[ratio], column.fairness) for ratio in (0.82, 0.86, 0.9)]
        ours = pair_of(sets.column_experiment(sets.OURS, column), column.fairness)
        yield [title.replace(" flips", ""), ours, *cells]


def by_rate():
    """Write the rows of Fig. 6."""
    for name in sets.RATE_METHODS:
        experiments = sets.rate_experiments(name, EO)
        yield [METHODS[name].short, *(pair_of(each, EO) for each in experiments)]


def gains():
    """Write by how much the method is better on the whole, from the claims' numbers."""
    found = {}
    for row in read("claims"):
        for measure, gain, interval in re.findall(r"(\w+): (\S+) better (\[.*?\])", row["numbers"]):
            found[row["claim"], measure] = f"{gain} {interval}"
    for title, accuracy, disparity in (
        ("LR", "lr", "lr"),
        ("ITLM", "itlm-accuracy", "itlm-fairness"),
        ("FB", "fb-accuracy", ""),
        ("ITLM→FB and ITLM→Penalty", "two-step", "two-step"),
        ("FR-Train (ours)", "fr-accuracy", "fr-fairness"),
    ):
        on_compas = {"LR": ("lr", "lr"), "ITLM": ("", "itlm"), "FB": ("fb", "")}.get(title, ("", ""))
        names = [f"table1-{accuracy}", f"table1-{disparity}", *(f"table2-{name}" for name in on_compas)]
        asked = zip(names, ("accuracy", "disparity") * 2, strict=True)
        yield [title, *(found.get(each, "") for each in asked)]


def tables():
    """Yield the head and the rows of every table."""
    heads = ["claims of the paper", "", "hold", "do not hold", "inconclusive", "not comparable"]
    yield heads, [[title, str(len(found)), *count(found)] for title, found in counts()]
    rows = []
    for title in ("LR", "ITLM", "the method", "FR-Train (ours)"):
        short = title.replace(" (ours)", "")
        rows += [row_of("table1", title, "paper", title=f"{short}, the paper")]
        rows += [row_of("table1", title, "authors'", title=f"{short}, here")]
    rows += [row_of("table1", BOTH_FR_TRAINS[1], "authors'", title="FR-Train, published settings")]
    yield ["", *(title.replace(" flips", "") for title in COLUMNS)], rows
    rows = []
    for title in ("LR", "ITLM", "FB", "ITLM→FB", "ITLM→Penalty", *BOTH_FR_TRAINS, "the method"):
        rows += [row_of("table1", title, "fresh") + row_of("table2", title, "splits")[1:]]
    heads = [title.replace(" flips", "") for title in COLUMNS]
    yield ["", *heads, f"COMPAS: {heads[0]}", *heads[1:]], rows
    on_compas = ["accuracy, COMPAS", "disparity, COMPAS"]
    yield ["than", "accuracy, synthetic", "disparity, synthetic", *on_compas], list(gains())
    rows = []
    for title in ("LR", "ITLM", "the method"):
        rows += [row_of("table7", title, "paper", ADULT, f"{title}, the paper")]
        rows += [row_of("table7", title, "splits", ADULT, f"{title}, here")]
    yield ["", "label, EO", "label, DP", "men, EO", "men, DP"], rows
    told = ["", "the method, τ = .9", "without constraints, τ = .82", "τ = .86", "τ = .9"]
    yield told, list(told_ratios())
    yield ["", "10 %", "12.5 %", "15 %", "17.5 %", "20 %"], list(by_rate())


def written(heads, rows):
    """Write a table as the page has it; an empty cell is one space."""
    rules = ["---", *("---:" if heads[1:2] == [""] else "---" for _ in heads[1:])]
    lines = [[f" {cell} |" if cell else " |" for cell in row] for row in (heads, rules, *rows)]
    return "\n".join("|" + "".join(line) for line in lines)


@pytest.mark.parametrize("place", range(7))
def test_a_table_is_what_was_published(place):
    heads, rows = list(tables())[place]
    assert written(heads, rows) in page()


def test_the_claims_that_do_not_hold_are_told_with_their_numbers():
    listed = re.findall(r"^- \*(.*)\* \((.*), `([a-z0-9-]+)`\): (.*)\.$", page(), flags=re.MULTILINE)
    failed = [row for row in read("claims") if row["verdict"] == "does not hold"]
    assert [each[2] for each in listed] == [row["claim"] for row in failed]
    for (text, where, _, told), row in zip(listed, failed, strict=True):
        assert (text, where) == (row["what it says"], row["where"])
        assert told.startswith(row["numbers"].rstrip("."))
        for column in ("against FR-Train's published settings", "under the rules before"):
            assert (row[column] == "–") == (f"{column}: " not in told)
            assert row[column] == "–" or f"{column}: {row[column]}" in told


def sitting():
    """Count the records of one run of everything, and the minutes of processor time behind them.

    The minutes are all, FR-Train's, and all at the pace of the fastest tenth of each kind of training: most records
    were made beside other work.
    """
    every = sets.collect_experiments(sets.ITEMS.values())
    drawn = sets.Results(results().records.values(), sets.Scope(arrays="recorded"))
    used = results().collect(every) + drawn.collect(one for one in every if one.data == "synthetic")
    spent, paces = {True: 0.0, False: 0.0}, {}
    for record in used:
        settings = record["settings"]
        asked, is_choice = settings.get("tuning") or settings, "tuning" in settings
        is_slow = asked["method"].startswith("fr-train")
        seconds = record.get("cpu_seconds", 0) + record.get("tuning_seconds", 0)
        folds = 1 if is_slow else settings.get("folds", 1)
        trainings = len(record["candidates"]) * len(settings["seeds"]) * folds if is_choice else 1
        rate = settings.get("fixed", {}).get("learning_rate")
        kind = asked["method"], asked["data"], is_choice, rate, settings.get("history")
        paces.setdefault(kind, []).append((seconds / trainings, trainings))
        spent[is_slow] += seconds
    kinds = [np.transpose(kind) for kind in paces.values()]
    quiet = sum(np.quantile(pace, 0.1) * n.sum() for pace, n in kinds)
    return len(used), *(round(seconds / 60) for seconds in (sum(spent.values()), spent[True], quiet))


def ends():
    """Say how many chosen hyperparameters sit at an end of their candidates."""
    found = {"the method": [], BOTH_FR_TRAINS[1]: [], "others": []}
    for row in read("choices"):
        names = [each.split()[0] for each in row["chosen"].split(", ")]
        names = [name for name in names if name not in ("learning_rate", "times_as_long")]
        kind = row["method"] if row["method"] in found else "others"
        found[kind] += [name in row["at an end"].split(", ") for name in names]
    (mine, published, others), every = found.values(), [one for each in found.values() for one in each]
    assert all(mine)
    return (
        f"{sum(every)} of {len(every)} sit at an end of their candidates: all {len(mine)} of the method's, which has "
        f"the paper's three, {sum(published)} of the published FR-Train's {len(published)}, whose candidates are its "
        f"notebook's, and {sum(others)} of the {len(others)} others"
    )


def test_the_other_rate_is_told_of_the_column_where_tuning_errs():
    columns = paper_tables()["table7"].columns
    (column,) = (each for each in columns if "Male" in each.noise and each.fairness == EO)
    other = (("learning_rate", 0.0001), ("step_size", 0.001))
    told = pair_of(sets.column_experiment(sets.OURS, column, fixed=other), EO)
    assert f"on the test splits, afterwards, .0001 has {told}." in " ".join(page().split())


def test_later_methods_are_told_with_their_numbers():
    text = " ".join(page().split())
    columns = [f"Synthetic, {COLUMNS[0]}", f"Synthetic, {COLUMNS[2]}", f"COMPAS, {COLUMNS[0]}"]
    names = "Group peer loss", "the method", "Learning to reweight"
    peer, method, reweighted = (row_of("rivals", name, "", columns)[1:] for name in names)
    assert f"{' and '.join(peer[:2])} with EO, the method {' and '.join(method[:2])}" in text.replace("(", "")
    assert f"({reweighted[2]}, the method {method[2]}; label flips, EO)" in text


def test_what_it_took_is_what_the_records_say():
    text = " ".join(page().split())
    made, every, of_fr_train, quiet = sitting()
    assert f"There are {len(results().records):,} records" in text
    assert f"{made:,} of them make one sitting, {every} minutes of processor time" in text
    assert f"({of_fr_train} for FR-Train; {quiet} at the pace of the fastest tenth of each kind)" in text
    assert ends() in text
    late = [row["claim"] for row in read("claims") if row["verdict"] != row["corrected over all claims"]]
    told = ", ".join(f"`{name}`" for name in late)
    assert f"After the correction over all claims these verdicts are inconclusive: {told}." in text
    drawn = [row["the authors' draw"] for row in read("claims") if row["the authors' draw"] != "–"]
    holds, fails, opened, others = count(drawn)
    first = f"Of the {len(drawn)} claims that can be checked on this draw {holds} hold, {fails} do not"
    assert f"{first}, {opened} are inconclusive and {others} are not comparable." in text
