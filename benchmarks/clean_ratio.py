"""The unknown clean ratio: how well it is found, and what models come of it.

    python benchmarks/clean_ratio.py uniform     # estimates under uniform flips
    python benchmarks/clean_ratio.py attacks     # "auto" beside the known ratio, the paper's attacks
    python benchmarks/clean_ratio.py groups      # flips in one group only, beside other methods of compare
    python benchmarks/clean_ratio.py scenarios   # random scenarios beside plain training
    python benchmarks/clean_ratio.py suspects    # precision and recall of the suspects
    python benchmarks/clean_ratio.py time        # fitting on Adult beside ExponentiatedGradient

Each takes ``--seeds`` and ``--data``, and prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from pathlib import Path

import joblib
import numpy as np
from noisy_tables import TABLES, attacked, problem, with_large_test

from fairsieve import FairRobustClassifier, InvalidInputError, Samples, estimate_clean_ratio
from fairsieve.errors import FairsieveWarning
from fairsieve.metrics import accuracy_from_table, confusion_table, disparity_from_table
from fairsieve.paper.methods.contract import TrainingInput
from fairsieve.paper.methods.registry import METHODS
from fairsieve.paper.problems import paper_settings
from fairsieve.paper.run import measure as measure_trained

DATA = ("synthetic", "compas", "adult")
BOTH = ("equalized_odds", "demographic_parity")


def classifier(
    data: str, noise: str, fairness: str, seed: int, clean_ratio: float | str, on_collapse: str = "warn"
) -> FairRobustClassifier:
    """Ours, with the paper's settings for the data set."""
    settings = paper_settings(data, noise, 0.1, fairness)
    return FairRobustClassifier(
        fairness,
        clean_ratio,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        average_last=20,
        random_state=seed,
        on_collapse=on_collapse,
    )


def measure(model: FairRobustClassifier, train: Samples, test: Samples) -> tuple[float, float]:
    """Accuracy and disparity on clean test labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairsieveWarning)
        model.fit(train.features, train.labels, sensitive_features=train.groups)
    table, _, _ = confusion_table(test.labels, model.predict(test.features), test.groups)
    return float(accuracy_from_table(table)), float(disparity_from_table(table, model.fairness))


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}"


def pair(scores: list[tuple[float, float]]) -> str:
    return "{:.3f} / {:.3f}".format(*np.mean(scores, axis=0))


def uniform(data: str, rate: float, seed: int) -> tuple[float, float, bool]:
    train, flipped, _ = problem(data, "uniform", rate, seed)
    found = estimate_clean_ratio(
        train.features, train.labels, sensitive_features=train.groups, random_state=seed
    )
    right = 1 - flipped.mean()
    return found.clean_ratio, right, found.interval[0] <= right <= found.interval[1]


def show_uniform(seeds: int, sets: list[str]) -> None:
    print("| data | flips | estimated clean ratio | mean absolute error | inside the interval |")
    print("| --- | --- | --- | --- | --- |")
    for data in sets:
        for rate in (0.05, 0.1, 0.2, 0.3):
            runs = parallel(uniform, [(data, rate, seed) for seed in range(seeds)])
            estimates, right, inside = zip(*runs, strict=True)
            error = np.abs(np.subtract(estimates, right)).mean()
            print(
                f"| {data} | {rate:.0%} | {spread(estimates)} | {error:.3f} | {sum(inside)} of {seeds} |",
                flush=True,
            )


def attack(data: str, noise: str, fairness: str, seed: int) -> dict[str, tuple[float, float]]:
    train, flipped, test = problem(data, noise, 0.1, seed)
    return {
        name: measure(classifier(data, noise, fairness, seed, ratio), train, test)
        for name, ratio in (("known", float(1 - flipped.mean())), ("auto", "auto"))
    }


def show_attacks(seeds: int, sets: list[str]) -> None:
    print("| data | attack | fairness | known ratio | auto | difference |")
    print("| --- | --- | --- | --- | --- | --- |")
    for data in sets:
        for noise in ("label", "group-targeted"):
            for fairness in BOTH:
                runs = parallel(attack, [(data, noise, fairness, seed) for seed in range(seeds)])
                known, auto = ([run[name] for run in runs] for name in ("known", "auto"))
                gap = np.mean(auto, axis=0) - np.mean(known, axis=0)
                print(
                    f"| {data} | {noise} | {fairness} | {pair(known)} | {pair(auto)} | "
                    f"{gap[0]:+.3f} / {gap[1]:+.3f} |",
                    flush=True,
                )


GROUP_METHODS = (
    "lr",
    "itlm",
    "fairbatch",
    "penalty",
    "itlm-fairbatch",
    "sample-selection",
    "reweighing",
    "exponentiated-gradient",
    "threshold-optimizer",
)


def one_group(data: str, group: int, rate: float, fairness: str, seed: int) -> dict[str, tuple[float, float]]:
    noise = f"group {group}"
    train, flipped, test = problem(data, noise, rate, seed)
    settings = paper_settings(data, noise, float(flipped.mean()), fairness)
    clean = train.take(np.flatnonzero(~flipped))
    scores = {"auto": measure(classifier(data, noise, fairness, seed, "auto"), train, test)}
    for name, samples, method in (
        ("flips dropped, ratios moved", clean, "fairbatch"),
        *((name, train, name) for name in GROUP_METHODS),
    ):
        trained = METHODS[method].train(TrainingInput(data=samples, settings=settings, seed=seed))
        scores[name] = measure_trained(trained, test, fairness)
    return scores


def show_groups(seeds: int, sets: list[str]) -> None:
    columns = [(group, rate) for group in (0, 1) for rate in (0.1, 0.2, 0.3)]
    for data in [name for name in sets if name != "synthetic"]:
        asked = [(data, *column, BOTH[0], seed) for column in columns for seed in range(seeds)]
        runs = parallel(one_group, asked)
        titles = [f"{'women' if group == 0 else 'men'} {rate:.0%}" for group, rate in columns]
        print(f"\n{data}, equalized odds, {seeds} seeds\n\n| method | {' | '.join(titles)} |")
        print("| --- |" + " --- |" * len(columns))
        for name in runs[0]:
            cells = [pair([run[name] for run in runs[i : i + seeds]]) for i in range(0, len(runs), seeds)]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


ATTACKS = {
    "none": 0.0,
    "uniform": 0.3,
    "label": 0.2,
    "group-targeted": 0.2,
    "group 0": 0.3,
    "group 1": 0.3,
    "weak-annotator": 0.25,
    "boundary": 0.25,
    "feature": 0.25,
}


def scenario(number: int, sets: tuple[str, ...]) -> tuple[str, float, float, bool]:
    """A random scenario: (what, our accuracy less plain's, plain's disparity less ours, fell back)."""
    rng = np.random.default_rng(number)
    data, fairness, noise = (str(rng.choice(choices)) for choices in (sets, BOTH, list(ATTACKS)))
    rate = round(float(rng.uniform(0.02, ATTACKS[noise])), 2) if ATTACKS[noise] else 0.0
    clean, test = with_large_test(data, number)
    try:
        train, _ = attacked(clean, noise, rate, number)
    except InvalidInputError:  # an annotator that is not wrong so often
        rate = 0.05
        train, _ = attacked(clean, noise, rate, number)
    model = FairRobustClassifier(fairness, random_state=number, on_collapse="fallback")
    ours = measure(model, train, test)
    guessed = model.classes_[model.plain_model_.predict_codes(test.features)]
    table, _, _ = confusion_table(test.labels, guessed, test.groups)
    theirs = float(accuracy_from_table(table)), float(disparity_from_table(table, fairness))
    what = (
        f"{data}, {noise} {rate}, {fairness}, {'conclusive' if model.estimate_.credible else 'inconclusive'}"
    )
    return what, ours[0] - theirs[0], theirs[1] - ours[1], model.collapse_ is not None


def show_scenarios(count: int, sets: list[str]) -> None:
    """Run scenarios that are not recorded yet, one by one, and show all."""
    path = Path(f"scenarios-{'-'.join(sets)}.jsonl")  # a stopped benchmark continues
    runs = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for number in range(len(runs), count):
        runs.append(scenario(number, tuple(sets)))
        with path.open("a") as file:
            file.write(json.dumps(runs[-1]) + "\n")
    count = len(runs)
    runs.sort(key=lambda run: run[1])
    gains, fairer = (np.array([run[i] for run in runs]) for i in (1, 2))
    quantiles = [0, 5, 25, 50, 75, 95, 100]
    print("| quantile | accuracy, ours less plain | disparity, plain less ours |\n| --- | --- | --- |")
    for quantile in quantiles:
        print(
            f"| {quantile} % | {np.percentile(gains, quantile):+.3f} | {np.percentile(fairer, quantile):+.3f} |"
        )
    print(
        f"\n{np.sum(gains < -0.02)} of {count} more than .02 less accurate; {np.sum(fairer < -0.02)} more than .02 "
        f"less fair; {sum(run[3] for run in runs)} fell back.\n"
    )
    for what, gain, less, fell in [*runs[:8], *sorted(runs, key=lambda run: run[2])[:8]]:
        print(f"- {what}: {gain:+.3f} accuracy, {less:+.3f} less disparity{', fell back' if fell else ''}")


def confident_suspects(train: Samples, seed: int) -> np.ndarray:
    """Confident learning: labels whose class is less likely than another that passes its mean confidence."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    codes = train.cells.label_codes
    model = LogisticRegression(max_iter=1000)
    chances = cross_val_predict(model, train.features, codes, cv=3, method="predict_proba")
    threshold = np.array([chances[codes == c, c].mean() for c in range(chances.shape[1])])
    passed = np.where(chances >= threshold, chances, -1.0)
    return (passed.max(axis=1) > 0) & (passed.argmax(axis=1) != codes)


def suspects(name: str, noise: str, rate: float, seed: int) -> dict[str, tuple[float, ...]]:
    train, flipped = attacked(TABLES[name](seed), noise, rate, seed + 1000)
    found = estimate_clean_ratio(
        train.features, train.labels, sensitive_features=train.groups, random_state=seed
    )
    ours = np.ones(len(train), bool)
    ours[found.believed] = False
    results = {}
    for method, mask in (("ours", ours), ("confident learning", confident_suspects(train, seed))):
        right = flipped[mask].mean() if mask.any() else np.nan
        recall = mask[flipped].mean() if flipped.any() else np.nan
        top = np.nan
        if method == "ours" and ours.sum() >= 50:
            rows = np.flatnonzero(ours)
            top = flipped[rows[np.argsort(-found.wrong[rows], kind="stable")[:50]]].mean()
        results[method] = (mask.mean(), top, right, recall, mask[~flipped].mean())
    return results


def show_suspects(seeds: int, sets: list[str]) -> None:
    print("| table | noise | method | suspects | precision at 50 | precision | recall | false alarms |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in TABLES:
        for noise, rate in (("none", 0.0), ("uniform", 0.1), ("label", 0.1)):
            runs = parallel(suspects, [(name, noise, rate, seed) for seed in range(seeds)])
            for method in runs[0]:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)
                    values = np.nanmean([run[method] for run in runs], axis=0)
                cells = " | ".join("–" if np.isnan(value) else f"{value:.3f}" for value in values)
                print(f"| {name} | {noise} {rate:.0%} | {method} | {cells} |", flush=True)


def show_time(repeats: int, _: list[str]) -> None:
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient
    from sklearn.linear_model import LogisticRegression

    train, _, _ = problem("adult", "uniform", 0.1, 0)
    seconds = defaultdict(list)
    given = {"sensitive_features": train.groups}
    for _ in range(repeats):
        for name, model in (
            ("clean ratio given", FairRobustClassifier(clean_ratio=0.9, random_state=0)),
            ("auto", FairRobustClassifier(random_state=0)),
            (
                "ExponentiatedGradient",
                ExponentiatedGradient(LogisticRegression(max_iter=1000), EqualizedOdds()),
            ),
        ):
            started = time.perf_counter()
            model.fit(train.features, train.labels, **given)
            seconds[name].append(time.perf_counter() - started)
    for name, values in seconds.items():
        ratio = np.median(values) / np.median(seconds["clean ratio given"])
        print(f"| {name} | {np.median(values):.1f} s | {ratio:.2f} |", flush=True)


def parallel(function: object, arguments: list[tuple[object, ...]]) -> list[object]:
    return joblib.Parallel(n_jobs=2)(joblib.delayed(single)(function, *each) for each in arguments)


def single(function: object, *arguments: object) -> object:
    return function(*arguments)


SHOWS = {
    "uniform": show_uniform,
    "attacks": show_attacks,
    "groups": show_groups,
    "scenarios": show_scenarios,
    "suspects": show_suspects,
    "time": show_time,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=SHOWS)
    parser.add_argument("--seeds", type=int, default=5, help="draws; scenarios; repeats")
    parser.add_argument("--data", default=",".join(DATA))
    asked = parser.parse_args()
    SHOWS[asked.what](asked.seeds, asked.data.split(","))
