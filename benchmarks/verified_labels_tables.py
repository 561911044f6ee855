"""The records of ``verified_labels.py``, and the tables and the figure that are made of them."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from fairsieve.report.looks import SYMBOLS, Look
from fairsieve.report.style import colour, pyplot

DATA = ("synthetic", "compas", "adult")
NOISES = (
    ("label", 0.1),
    ("label", 0.2),
    ("group-targeted", 0.1),
    ("group-targeted", 0.2),
    ("weak-annotator", 0.2),
)
METHOD_NAMES = ("ours", "plain, corrected", "those rows alone", "fr-train")
ONCE = ("noisy", "true", "all labels true, fair")  # they do not depend on the rows
CHOICES = ("next_to_verify", "at random", "highest losses")
TITLES = {
    "label": "label flips",
    "group-targeted": "group-targeted flips",
    "weak-annotator": "weak annotator",
}
LOOKS = {
    "ours": Look("blue"),
    "plain, corrected": Look("grey", "triangle"),
    "those rows alone": Look("orange", "diamond"),
    "fr-train": Look("red", "square"),
    "choice: next_to_verify": Look("blue"),
    "choice: at random": Look("grey", "triangle"),
    "choice: highest losses": Look("orange", "diamond"),
}


class Records:
    """JSON lines: read once, appended as runs end."""

    KEYS = ("data", "noise", "rate", "seed", "method", "count")

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.found = [json.loads(line) for line in lines]
        self.known = {self._name(each) for each in self.found}

    def _name(self, record: dict) -> tuple:
        return tuple(record[key] for key in self.KEYS)

    def __contains__(self, record: dict) -> bool:
        return self._name(record) in self.known

    def add(self, record: dict) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        self.found.append(record)
        self.known.add(self._name(record))


def pair(records: list[dict]) -> str:
    """Mean accuracy / mean disparity."""
    if not records:
        return "–"
    means = (np.mean([each[part] for each in records]) for part in ("accuracy", "disparity"))
    return " / ".join(f"{mean:.3f}".lstrip("0") for mean in means)


def show_tables(records: Records, options: argparse.Namespace) -> None:
    """Print Markdown tables, and draw accuracy and disparity against the number of checked rows."""
    groups = defaultdict(list)
    for each in records.found:
        groups[each["data"], each["noise"], each["rate"], each["method"], each["count"]].append(each)
    problems = list(dict.fromkeys(key[:3] for key in groups))
    counts = sorted({key[4] for key in groups if key[4]})
    for names, titles in ((METHOD_NAMES, ONCE), (tuple(f"choice: {name}" for name in CHOICES), ())):
        some = [each for each in problems if any((*each, name, counts[0]) in groups for name in names)]
        if not some:
            continue
        print("| data | noise | checked | " + " | ".join((*names, *titles)) + " | runs |")
        print("| --- |" * 1 + " --- |" * (len(names) + len(titles) + 3))
        for each in some:
            for count in counts:
                cells = [pair(groups[(*each, name, count)]) for name in names]
                cells += [pair(groups[(*each, name, 0)]) for name in titles]
                runs = "/".join(str(len(groups[(*each, name, count)])) for name in names)
                data, noise, rate = each
                print(
                    f"| {data} | {TITLES[noise]} {rate:.0%} | {count} | " + " | ".join(cells) + f" | {runs} |"
                )
        print()
        judge(groups, some, counts, names)
    if options.figure:
        draw(options.figure, groups, counts)


def judge(groups: dict, problems: list, counts: list[int], names: tuple[str, ...]) -> None:
    """Say how often the first method is more accurate, fairer, and both, than each other, by means over runs."""
    for name in names[1:]:
        wins = np.zeros(3, int)
        total = 0
        for each in problems:
            for count in counts:
                first, other = groups[(*each, names[0], count)], groups[(*each, name, count)]
                seeds = {run["seed"] for run in first} & {run["seed"] for run in other}
                if not seeds:
                    continue
                gains = [
                    np.mean([run[part] for run in first if run["seed"] in seeds])
                    - np.mean([run[part] for run in other if run["seed"] in seeds])
                    for part in ("accuracy", "disparity")
                ]
                better = gains[0] > 0, gains[1] < 0
                wins += (*better, all(better))
                total += 1
        print(
            f"- {names[0]} beside {name}: more accurate in {wins[0]} of {total}, fairer in {wins[1]}, both in {wins[2]}"
        )
    print()


def draw(path: Path, groups: dict, counts: list[int]) -> None:
    """Accuracy above disparity, a column for each data set, means over the noises."""
    plt = pyplot()
    names = [name for name in METHOD_NAMES if any(key[3] == name for key in groups)]
    sets = [data for data in DATA if any(key[0] == data and key[3] in names for key in groups)]
    figure, axes = plt.subplots(2, len(sets), figsize=(3.1 * len(sets), 5), sharex=True, squeeze=False)
    for column, data in enumerate(sets):
        for row, part in enumerate(("accuracy", "disparity")):
            for name in names:
                if not all(groups[data, *noise, name, count] for noise in NOISES for count in counts):
                    continue  # a mean over some of the noises would not be comparable
                points = [
                    np.mean(
                        [
                            np.mean([run[part] for run in groups[data, *noise, name, count]])
                            for noise in NOISES
                        ]
                    )
                    for count in counts
                ]
                marker = SYMBOLS[LOOKS[name].symbol].matplotlib
                axes[row, column].plot(
                    range(len(counts)), points, color=colour(LOOKS[name]), marker=marker, label=name
                )
            axes[row, column].set_xticks(range(len(counts)), [str(count) for count in counts])
            axes[row, 0].set_ylabel({"disparity": "EO disparity"}.get(part, part))
        axes[0, column].set_title(data)
        axes[1, column].set_xlabel("checked rows")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(names), bbox_to_anchor=(0.5, 1.06))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
