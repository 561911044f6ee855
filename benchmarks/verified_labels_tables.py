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
CHOICE_NAMES = tuple(f"choice: {name}" for name in CHOICES)
CHOICE_NOISES = (("group-targeted", 0.1), ("weak-annotator", 0.2))
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
    """Print Markdown tables of some counts, write all of them, and draw accuracy and disparity against the counts."""
    groups = defaultdict(list)
    for each in records.found:
        groups[each["data"], each["noise"], each["rate"], each["method"], each["count"]].append(each)
    problems = list(dict.fromkeys(key[:3] for key in groups))
    counts = sorted({key[4] for key in groups if key[4]})
    for names, titles in ((METHOD_NAMES, ONCE), (CHOICE_NAMES, ())):
        some = [each for each in problems if any((*each, name, counts[0]) in groups for name in names)]
        if not some:
            continue
        heads = [name.removeprefix("choice: ") for name in (*names, *titles)]
        print("| data | noise | checked | " + " | ".join(heads) + " |")
        print("| --- |" * 1 + " --- |" * (len(heads) + 2))
        for each in some:
            for count in [count for count in counts if count in options.counts]:
                cells = [pair(groups[(*each, name, count)]) for name in names]
                cells += [pair(groups[(*each, name, 0)]) for name in titles]
                data, noise, rate = each
                print(f"| {data} | {TITLES[noise]} {rate:.0%} | {count} | " + " | ".join(cells) + " |")
        print()
        summarise(groups, some, counts, names, titles)
        judge(groups, some, counts, names)
    if options.means:
        write_means(options.means, groups)
    if options.figure:
        draw(options.figure, groups, counts, METHOD_NAMES, NOISES)
        choices = options.figure.with_name(f"{options.figure.stem}-choices{options.figure.suffix}")
        draw(choices, groups, counts, CHOICE_NAMES, CHOICE_NOISES)


def summarise(
    groups: dict, problems: list, counts: list[int], names: tuple[str, ...], titles: tuple[str, ...]
) -> None:
    """Print a table of means over the noises."""
    heads = [name.removeprefix("choice: ") for name in (*names, *titles)]
    print("| data | checked | " + " | ".join(heads) + " |")
    print("| --- |" * 1 + " --- |" * (len(heads) + 1))
    for data in dict.fromkeys(each[0] for each in problems):
        own = [each for each in problems if each[0] == data]
        for count in counts:
            columns = [(name, count) for name in names] + [(name, 0) for name in titles]
            cells = [pair([run for each in own for run in groups[(*each, *column)]]) for column in columns]
            print(f"| {data} | {count} | " + " | ".join(cells) + " |")
    print()


def judge(groups: dict, problems: list, counts: list[int], names: tuple[str, ...]) -> None:
    """Say how often the first method is more accurate, fairer, and both, than each other, by means over runs.

    Then by how much on average, with the standard error over the draws.
    """
    for name in names[1:]:
        wins = np.zeros(3, int)
        total = 0
        by_seed = defaultdict(list)
        for each in problems:
            for count in counts:
                first, other = (
                    {
                        run["seed"]: (run["accuracy"], run["disparity"])
                        for run in groups[(*each, which, count)]
                    }
                    for which in (names[0], name)
                )
                seeds = sorted(first.keys() & other.keys())
                if not seeds:
                    continue
                gains = np.array([np.subtract(first[seed], other[seed]) for seed in seeds])
                for seed, gain in zip(seeds, gains, strict=True):
                    by_seed[seed].append(gain)
                better = gains[:, 0].mean() > 0, gains[:, 1].mean() < 0
                wins += (*better, all(better))
                total += 1
        means = np.array([np.mean(gains, axis=0) for gains in by_seed.values()])
        errors = means.std(axis=0, ddof=1) / np.sqrt(len(means))
        (accuracy, disparity), (about, about_too) = means.mean(axis=0), errors
        print(
            f"- {names[0]} beside {name}: more accurate in {wins[0]} of {total}, fairer in {wins[1]}, both in "
            f"{wins[2]}; accuracy {accuracy:+.4f} (standard error {about:.4f}), disparity {disparity:+.4f} "
            f"({about_too:.4f})"
        )
    print()


def write_means(path: Path, groups: dict) -> None:
    """Write means and standard errors of every method, problem and count as CSV."""
    lines = ["data,noise,rate,checked,method,runs,accuracy,accuracy_error,disparity,disparity_error"]
    for (data, noise, rate, method, count), runs in groups.items():
        if not runs:
            continue
        values = np.array([(run["accuracy"], run["disparity"]) for run in runs])
        errors = values.std(axis=0, ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else np.full(2, np.nan)
        numbers = ",".join(
            f"{mean:.4f},{error:.4f}" for mean, error in zip(values.mean(axis=0), errors, strict=True)
        )
        lines.append(f'{data},{noise},{rate},{count},"{method}",{len(runs)},{numbers}')
    path.write_text("\n".join(lines) + "\n")


def draw(
    path: Path,
    groups: dict,
    counts: list[int],
    methods: tuple[str, ...],
    noises: tuple[tuple[str, float], ...],
) -> None:
    """Accuracy above disparity, a column for each data set, means over the noises."""
    plt = pyplot()
    names = [name for name in methods if any(key[3] == name for key in groups)]
    sets = [
        data for data in DATA if any(key[0] == data and key[3] in names and groups[key] for key in groups)
    ]
    figure, axes = plt.subplots(2, len(sets), figsize=(3.1 * len(sets), 5), sharex=True, squeeze=False)
    for column, data in enumerate(sets):
        for row, part in enumerate(("accuracy", "disparity")):
            for name in names:
                if not all(groups[data, *noise, name, count] for noise in noises for count in counts):
                    continue  # a mean over some of the noises would not be comparable
                points = [
                    np.mean(
                        [
                            np.mean([run[part] for run in groups[data, *noise, name, count]])
                            for noise in noises
                        ]
                    )
                    for count in counts
                ]
                look = LOOKS[name]
                axes[row, column].plot(
                    range(len(counts)),
                    points,
                    color=colour(look),
                    marker=SYMBOLS[look.symbol].matplotlib,
                    label=name.removeprefix("choice: "),
                )
            axes[row, column].set_xticks(range(len(counts)), [str(count) for count in counts])
            axes[row, 0].set_ylabel({"disparity": "EO disparity"}.get(part, part))
        axes[0, column].set_title(data)
        axes[1, column].set_xlabel("checked rows")
    figure.subplots_adjust(wspace=0.32)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(names), bbox_to_anchor=(0.5, 1.06))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
