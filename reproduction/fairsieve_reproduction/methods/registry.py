"""The list of methods: the command line, the tables and the figures take names, titles and looks from here."""

from __future__ import annotations

from functools import partial
from typing import Any

from fairsieve.benchmark.methods import DEFAULTS, Family, Method
from fairsieve.errors import InvalidInputError
from fairsieve.notions import NOTIONS
from fairsieve.report.page import Look
from fairsieve.validation import closest_hint
from fairsieve_reproduction.methods.fr_train import clean_with_itlm, train_fr_train
from fairsieve_reproduction.methods.noise_losses import train_learning_to_reweight, train_noise_loss
from fairsieve_reproduction.methods.selection import train_loop, train_two_steps
from fairsieve_reproduction.methods.variants import train_variant

# The first candidate is the default. For the paper's method, and for all learning rates, these are the paper's own. The
# grids of the others are wide enough that few choices sit at an end. LR and ITLM may train as long as the method, or
# four times as long.
RATES = {"learning_rate": (0.0005, 0.0001)}
RATES_AND_LENGTHS = RATES | {"times_as_long": (4, 1)}
STEP_SIZES = {"step_size": (0.001, 0.0005, 0.0001)}
WIDE_STEP_SIZES = {"step_size": (0.001, 0.00002, 0.0001, 0.0005, 0.002, 0.005, 0.02, 0.05)}
PENALTY_WEIGHTS = {"penalty_weight": (1.0, 0.03, 0.1, 0.3, 3.0, 10.0, 30.0, 100.0)}
CLEANING_WEIGHTS = {"cleaning_penalty_weight": (0.3, 0.01, 0.1, 1.0, 10.0)}
FAIRNESS_WEIGHTS = {"fairness_weight": (0.4, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.55, 0.59)}
# Those of the notebook that FR-Train's authors published.
PUBLISHED_WEIGHTS = {"fairness_weight": (0.3, 0.1, 0.15, 0.2, 0.25, 0.35, 0.4, 0.45, 0.52)}
FEWER_STEP_SIZES = {"step_size": (0.001, 0.0001, 0.0005, 0.005, 0.02)}
FEWER_PENALTY_WEIGHTS = {"penalty_weight": (1.0, 0.1, 0.3, 3.0, 10.0, 100.0)}

BOTH: Family = "fair and robust"
# Losses of cells, covariances and discriminators say whether these hold.
COMPARED: Any = {"notions": tuple(name for name, one in NOTIONS.items() if one.list_comparisons is not None)}
LOOP: Any = COMPARED | {"pace": RATES}
TWO: Any = COMPARED | {"most_groups": 2, "most_classes": 2}
VALIDATED: Any = {"uses_validation": True, "clean_validation": clean_with_itlm}
MUS = {"mu": (1.0, 0.0001, 0.001, 0.01, 0.1, 10.0, 100.0, 1000.0, 10000.0)}

PAPER = (
    Method("lr", "LR", Look("grey"), "plain", partial(train_loop, method="lr", times_as_long=4),
           pace=RATES_AND_LENGTHS),
    Method("itlm", "ITLM", Look("orange", "square"), "robust", partial(train_loop, method="itlm", times_as_long=4),
           pace=RATES_AND_LENGTHS),
    Method("fairbatch", "FairBatch", Look("sky", "triangle"), "fair", partial(train_loop, method="fairbatch"),
           short="FB", candidates=WIDE_STEP_SIZES, **LOOP),
    Method("penalty", "Penalty", Look("pink", "diamond"), "fair", partial(train_loop, method="lr"),
           candidates=PENALTY_WEIGHTS, **LOOP),
    Method("itlm-fairbatch", "ITLM→FairBatch", Look("green", "triangle"), BOTH,
           partial(train_two_steps, then="fairbatch"), short="ITLM→FB", candidates=WIDE_STEP_SIZES, **LOOP),
    Method("itlm-penalty", "ITLM→Penalty", Look("black", "diamond"), BOTH, partial(train_two_steps, then="lr"),
           candidates=PENALTY_WEIGHTS, **LOOP),
    Method("itlm+penalty-fairbatch", "(ITLM+Penalty)→FairBatch", Look("green", "cross"), BOTH,
           partial(train_two_steps, then="fairbatch"), short="(ITLM+Penalty)→FB",
           candidates=CLEANING_WEIGHTS | FEWER_STEP_SIZES, **LOOP),
    Method("itlm+penalty-penalty", "(ITLM+Penalty)→Penalty", Look("black", "cross"), BOTH,
           partial(train_two_steps, then="lr"), candidates=CLEANING_WEIGHTS | FEWER_PENALTY_WEIGHTS, **LOOP),
    Method("sample-selection", "Sample selection", Look("blue"), BOTH, partial(train_loop, method="sample-selection"),
           short="the method", candidates=STEP_SIZES, traced=train_variant, **LOOP),
    Method("sample-selection-no-constraints", "Sample selection without constraints", Look("blue", "triangle"), BOTH,
           partial(train_loop, method="sample-selection-no-constraints"), short="w/o constraints",
           candidates=STEP_SIZES, **LOOP),
    Method("sample-selection-no-weights", "Sample selection without weights", Look("blue", "point"), BOTH,
           partial(train_loop, method="sample-selection-no-weights"), short="w/o weights",
           candidates=STEP_SIZES, **LOOP),
    Method("sample-selection-authors", "Sample selection, as the authors' code", Look("sky", "diamond"), BOTH,
           partial(train_variant, selector="authors"), short="as the authors' code", candidates=STEP_SIZES, pace=RATES,
           **TWO),
    Method("fr-train", "FR-Train (ours)", Look("pink", "square"), BOTH, train_fr_train,
           candidates=FAIRNESS_WEIGHTS, **VALIDATED, **TWO),
    Method("fr-train-published", "FR-Train (published settings)", Look("red", "square"), BOTH,
           partial(train_fr_train, published=True, fairness_weight=0.3), pace=PUBLISHED_WEIGHTS,
           **VALIDATED, **TWO),
)  # fmt: skip
LATER = (
    Method("sample-selection-averaged", "Sample selection by averaged losses", Look("blue", "square"), BOTH,
           partial(train_variant, cleaner="averaged-loss"), candidates=STEP_SIZES, **COMPARED, most_classes=2),
    Method("sample-selection-reweighting", "Sample selection by learning to reweight", Look("blue", "cross"), BOTH,
           partial(train_variant, cleaner="reweighting"), candidates=STEP_SIZES, **VALIDATED,
           **COMPARED, most_classes=2),
    Method("sample-selection-exact", "Sample selection, knapsack solved exactly", Look("sky", "square"), BOTH,
           partial(train_variant, selector="exact"), candidates=STEP_SIZES, **COMPARED, most_classes=2),
    Method("surrogate-loss", "Surrogate loss", Look("orange", "diamond"), BOTH,
           partial(train_noise_loss, loss="surrogate"), candidates=MUS, **TWO),
    Method("group-peer-loss", "Group peer loss", Look("orange", "cross"), BOTH,
           partial(train_noise_loss, loss="peer"), candidates=MUS, **TWO),
    Method("learning-to-reweight", "Learning to reweight", Look("orange", "point"), "robust",
           train_learning_to_reweight, **VALIDATED, most_classes=2),
)  # fmt: skip

METHODS = {method.name: method for method in (*PAPER, *DEFAULTS, *LATER)}


def find_methods(names: str) -> list[Method]:
    """Return methods by names with commas between them; ``default``, ``all``, or ``paper`` for the paper's."""
    sets = {
        "default": [method.name for method in DEFAULTS],
        "all": METHODS,
        "paper": [method.name for method in PAPER],
    }
    wanted = list(sets.get(names, names.split(",")))
    unknown = [name for name in wanted if name not in METHODS]
    if unknown:
        raise InvalidInputError(
            f"methods must be default, all, paper, or among {', '.join(METHODS)}; got "
            f"{', '.join(map(repr, unknown))}{closest_hint(unknown[0], METHODS)}"
        )
    return [METHODS[name] for name in wanted]
