"""A run as a page: what changed, for whom, who was dropped, what to check, and how to read each part."""

from __future__ import annotations

from fairsieve.report.document import Block, Document, Facts, Items, Notice, Section, Text
from fairsieve.report.number_format import number, percent
from fairsieve.selection.fairness import ABBREVIATIONS
from fairsieve.tabular.decision import Decision
from fairsieve.tabular.report.guide import (
    CALIBRATION,
    COLUMNS,
    DROPPED,
    EPOCHS,
    GAPS,
    GROUPS,
    MIXED,
    QUALITY,
    ROUNDS,
    SUSPECTS,
    TRADE_OFF,
)
from fairsieve.tabular.report.model_phrases import (
    kept_point,
    model_sentences,
    model_title,
    trade_off_sentence,
)
from fairsieve.tabular.report.phrases import (
    NOTIONS,
    estimate_sentence,
    headline,
    is_inconclusive,
    kept_sentence,
)
from fairsieve.tabular.report.plots import (
    calibration_figure,
    dropped_figure,
    epochs_figure,
    groups_figure,
    trade_off_figure,
)
from fairsieve.tabular.report.summary_tables import (
    columns_table,
    dropped_table,
    gaps_table,
    groups_table,
    overall_table,
    quality_table,
    suspects_table,
)
from fairsieve.tabular.report.verdicts import (
    dropping_verdict,
    label_warning,
    upper,
)
from fairsieve.tabular.request import data_name
from fairsieve.tabular.table_run import TableRun

__all__ = ["clean_ratio_sentence", "list_settings", "run_document", "sensitive_sentence", "test_sentence"]


def run_document(run: TableRun, decision: Decision) -> Document:
    """Lay out the page of a run."""
    sections = [
        Section("decision", "Decision", _decision(decision)),
        Section("changed", "What changed", _changed(run)),
        Section("dropped", "Who was dropped, and why", _dropped(run)),
        Section("suspects", "Labels to check", _suspects(run)),
    ]
    if len(run.trade_off) > 1:
        sections.append(Section("trade-off", "The trade-off", _trade_off(run)))
    sections += [
        Section(
            "rates", "Details: every rate", [Text(GROUPS), groups_table(run), Text(GAPS), gaps_table(run)]
        ),
        Section("quality", "Details: telling labels apart", [Text(QUALITY), quality_table(run)]),
        *_calibration(run),
        Section("epochs", "Details: epoch by epoch", [Text(EPOCHS), epochs_figure(run)]),
        Section("columns", "Details: the table", _columns(run, decision)),
        Section(
            "settings", "Details: how this was made", [Facts("Settings and versions", list_settings(run))]
        ),
    ]
    problem = run.problem
    lead = (
        f"Trained on {len(problem.train):,} rows of {data_name(run.asked.data)} to predict "
        f"{problem.labels.column}, fair by {problem.groups.title}; measured on {len(problem.test):,} other rows."
    )
    return Document(f"A model of {problem.labels.column}", lead, sections, _notice(decision))


def _notice(decision: Decision) -> Notice:
    """Put the decision on top of the page."""
    title, holds = {
        "use": ("Use", True),
        "inconclusive": ("Inconclusive", None),
        "do-not-use": ("Do not use", False),
    }[decision.outcome]
    return Notice(title, upper(decision.sentence.removeprefix(f"{title}: ")), holds)


def _decision(decision: Decision) -> list[Block]:
    """List the verdicts, failed ones first, the reasons, and what to do next."""
    lists = [Items("Reasons", decision.reasons), Items("What to do next", decision.next_steps)]
    return [*(verdict.as_block() for verdict in decision.verdicts), *(one for one in lists if one.texts)]


def _changed(run: TableRun) -> list[Block]:
    """Show where each group stands under both models, what they reach, and what the numbers stand on."""
    notion = f"Fairness here is {NOTIONS[run.asked.fairness]}."
    disparity = (
        f"The {ABBREVIATIONS[run.asked.fairness]} disparity is the largest distance between a group's rate and that of "
        "everyone; 0 is best."
    )
    words = [
        *model_sentences(run),
        f"{notion} {disparity}",
        test_sentence(run),
        clean_ratio_sentence(run),
        sensitive_sentence(run),
    ]
    first: list[Block] = [Text(f"{upper(headline(run))}."), groups_figure(run), overall_table(run)]
    return [*first, *map(Text, words)]


def test_sentence(run: TableRun) -> str:
    """Say how far the test labels can be trusted."""
    if run.asked.test_file is not None:
        return (
            f"Both models are measured on {data_name(run.asked.test_file)}; its labels are taken as right. If some are "
            "wrong, accuracies are too low and disparities off, for both models."
        )
    return (
        f"Both models are measured on {percent(run.asked.test)} of the rows, set aside. Their labels come from the "
        "same source as those trained on, so some may be wrong too: a model that learnt the truth is marked down for "
        "it, and disparities can be off. A test file with checked labels (--test-file) tells more."
    )


def clean_ratio_sentence(run: TableRun) -> str:
    """Say how many labels were believed to be right, and who said so."""
    if run.asked.clean_ratio != "auto" and run.model_name != "logistic":
        return (
            f"You said that {percent(run.clean_ratio)} of the labels are right (--clean-ratio), so rows are weighted "
            "by how likely their label is right, or left out where labels look wrong on purpose."
        )
    if run.estimate is None:
        return (
            f"You said that {percent(run.clean_ratio)} of the labels are right (--clean-ratio), so about "
            f"{percent(1 - run.clean_ratio)} of the rows, or more where a group would fall behind, were dropped, "
            "whether or not that many are wrong."
        )
    return f"The share of right labels was estimated from the data: {estimate_sentence(run.estimate)}"


def sensitive_sentence(run: TableRun) -> str:
    """Say whether the sensitive columns are learnt from."""
    title = run.problem.groups.title
    if run.asked.keep_sensitive:
        return f"The model also learns from {title} (--keep-sensitive)."
    return (
        f"The model does not learn from {title}, and needs none to predict; other columns may still tell of it. "
        "--keep-sensitive changes that."
    )


def _trade_off(run: TableRun) -> list[Block]:
    """Show the models between plain and fair, and which of them is kept."""
    between = MIXED if run.model_name == "logistic" else ROUNDS
    words = [f"{TRADE_OFF} {between}", trade_off_sentence(run)]
    return [*(Text(text) for text in words if text), trade_off_figure(run)]


def _calibration(run: TableRun) -> list[Section]:
    """Show whether probabilities mean what they say, where there are enough people to tell."""
    figure = calibration_figure(run)
    return (
        []
        if figure is None
        else [Section("calibration", "Details: probabilities", [Text(CALIBRATION), figure])]
    )


def _dropped(run: TableRun) -> list[Block]:
    """Show who was left out; warn where that is much of one label."""
    words = [DROPPED, dropping_verdict(run).sentence, label_warning(run.dropped)]
    return [*(Text(text) for text in words if text), dropped_figure(run), dropped_table(run)]


def _suspects(run: TableRun) -> list[Block]:
    """Show the labels to check, or say that there are none."""
    if len(run.suspects["row"]):
        kept = kept_sentence(run)
        return [Text(SUSPECTS), *([Text(kept)] if kept else []), suspects_table(run)]
    none = "No label looks wrong: none of the rows left out has a label that the model would change."
    if run.collapse is not None:
        none = "The fair model collapsed, so it says nothing about single labels."
    if is_inconclusive(run):
        none = "Which labels are wrong cannot be known from this table, so none is named."
    return [Text(none)]


def _columns(run: TableRun, decision: Decision) -> list[Block]:
    """Show the columns, and what was done to them."""
    missing = ", ".join(value or "an empty field" for value in sorted(run.asked.reading.all_missing))
    untold = decision.untold(run.notes)
    notes = [Text("\n".join(untold))] if untold else []
    return [Text(COLUMNS.format(missing=missing)), *notes, columns_table(run)]


def list_settings(run: TableRun) -> dict[str, str]:
    """List how to make this run again."""
    asked, labels = run.asked, run.problem.labels
    test = data_name(asked.test_file) if asked.test_file is not None else f"{percent(asked.test)} of the rows"
    return {
        "table": data_name(asked.data),
        "label": labels.column,
        "labels": ", ".join(labels.classes),
        "positive label": labels.positive or "none named",
        "sensitive": run.problem.groups.title,
        "groups": ", ".join(run.problem.groups.names),
        "fairness": asked.fairness.replace("_", " "),
        "clean ratio": f"{number(run.clean_ratio)}, {'estimated' if asked.clean_ratio == 'auto' else 'given'}",
        "measured on": test,
        "rows trained on": f"{len(run.problem.train):,}",
        "rows measured on": f"{len(run.problem.test):,}",
        "model": model_title(run),
        "kept": kept_point(run).title,
        "threshold": str(asked.threshold),
        "tolerance": "none given" if asked.tolerance is None else number(asked.tolerance),
        "epochs" if run.model_name == "logistic" else "rounds": str(len(run.history)),
        "seed": str(asked.seed),
        "seconds": f"{run.seconds:.0f}",
    } | {f"version of {name}": version for name, version in run.versions.items()}
