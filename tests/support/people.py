"""Small tables of people, for the tests of tables."""

import csv

import numpy as np

JOBS = ("baker", "clerk", "driver", "nurse", "welder")

# Settings by which a run on such a table is quick.
QUICK = {
    "label": "income", "sensitive": "sex", "positive": "high", "clean_ratio": 0.9, "max_iter": 8,
    "tolerance": 0.02,
}  # fmt: skip


def people(count=600, seed=0, *, wrong=0.1):
    """Columns of texts: age and hours with gaps, job, sex, income; some incomes are wrong."""
    random = np.random.default_rng(seed)
    sex = random.choice(["woman", "man"], count)
    age = random.integers(18, 70, count)
    hours = random.normal(38, 8, count).round(1)
    job = random.choice(JOBS, count)
    score = 0.08 * (age - 44) + 0.06 * (hours - 38) + 1.2 * (job == "nurse") + 0.8 * (sex == "man") - 0.8
    high = random.random(count) < 1 / (1 + np.exp(-2 * score))
    high ^= random.random(count) < wrong
    return {
        "age": [str(value) if random.random() > 0.03 else "?" for value in age],
        "hours": [str(value) for value in hours],
        "job": [str(value) if random.random() > 0.02 else "" for value in job],
        "sex": sex.tolist(),
        "income": ["high" if value else "low" for value in high],
    }


def write_csv(path, columns, separator=","):
    """Columns as a file; returns where."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter=separator)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path
