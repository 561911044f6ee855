"""A run as a model card."""

from __future__ import annotations

from fairsieve.report.table_files import markdown, table_markdown
from fairsieve.tabular.decision import Decision
from fairsieve.tabular.reading.features import used
from fairsieve.tabular.report.model_phrases import (
    choice_sentences,
    kept_point,
    loading_text,
    model_limit,
    model_title,
)
from fairsieve.tabular.report.phrases import NOTIONS, headline, is_inconclusive, suspects_sentence
from fairsieve.tabular.report.story import (
    clean_ratio_sentence,
    list_settings,
    sensitive_sentence,
    test_sentence,
)
from fairsieve.tabular.report.summary_tables import (
    dropped_table,
    groups_table,
    overall_table,
    quality_table,
)
from fairsieve.tabular.report.verdicts import label_warning, upper
from fairsieve.tabular.table_run import TableRun

__all__ = ["model_card"]

USE = """\
For people who know the table: to predict the label of rows like those trained on, and to find labels worth a second
look. Not for decisions about people without somebody who can overrule it; not for rows of another time, place or
source, on which nobody has measured it."""

LIMITS = """\
- Fair on average over each group that was named, not to every person, and not to groups that were not named.
- Measured on labels that may be wrong; see above.
- A label that looks wrong may be right. People unlike the rest are suspected more often."""

LOADING = """\
`fairsieve predict RUN/ NEW.csv -o OUT.csv`, or in Python:

"""


def model_card(run: TableRun, decision: Decision) -> str:
    """Write the card in Markdown; names and values of the table are shown as they are."""
    problem = run.problem
    verdicts = [
        f"- **{markdown(verdict.claim)}** ({verdict.words}) {markdown(verdict.sentence)}"
        for verdict in decision.verdicts
    ]
    reasons, steps = (
        "\n".join(f"- {markdown(one)}" for one in lines) for lines in (decision.reasons, decision.next_steps)
    )
    warning = label_warning(run.dropped)
    warning = f"\n\n{markdown(warning)}" if warning else ""
    listed = "; `suspects.csv` lists them" if len(run.suspects["row"]) and not is_inconclusive(run) else ""
    kept = "fair model" if kept_point(run) is not run.trade_off[0] else "plain model"
    kept += ", since the fair one collapsed" if run.collapse else ""
    sections = {
        "Decision": f"**{markdown(decision.sentence)}**\n\n"
        + "\n".join(verdicts)
        + (f"\n\nReasons:\n\n{reasons}" if reasons else "")
        + (f"\n\nNext:\n\n{steps}" if steps else ""),
        "The model": f"The {kept}: predicts {markdown(problem.labels.column)} "
        f"({markdown(', '.join(problem.labels.classes))}) from {len(used(problem.features))} columns of a table. "
        f"{upper(model_title(run))}. {markdown(upper(NOTIONS[run.asked.fairness]))}. "
        f"{markdown(' '.join([*choice_sentences(run), sensitive_sentence(run)]))}",
        "What it is for": USE,
        "What changed": f"{markdown(upper(headline(run)))}.",
        "How it was measured": f"{markdown(test_sentence(run))} Intervals are of 95 %: Wilson's for rates, bootstrap "
        f"for accuracy and disparity.\n\n{table_markdown(overall_table(run))}\n{table_markdown(groups_table(run))}\n"
        f"{table_markdown(quality_table(run))}",
        "The labels": f"{markdown(clean_ratio_sentence(run))} {markdown(upper(suspects_sentence(run)))}{listed}."
        f"{warning}\n\n"
        f"{table_markdown(dropped_table(run))}",
        "Limits": f"- {model_limit(run)}\n{LIMITS}",
        "Using it": LOADING + loading_text(run),
        "Settings": "\n".join(
            f"- {markdown(name)}: {markdown(value)}" for name, value in list_settings(run).items()
        ),
    }
    untold = decision.untold(run.notes)
    if untold:
        sections["Notes"] = "\n".join(f"- {markdown(note)}" for note in untold)
    body = "\n\n".join(f"## {title}\n\n{text.strip()}" for title, text in sections.items())
    return f"# A model of {markdown(problem.labels.column)}\n\n{body}\n"
