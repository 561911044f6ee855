"""The list of methods: the command line, the tables and the figures take names, titles and looks from here."""

from __future__ import annotations

from typing import Any

from fairsieve.errors import InvalidInputError
from fairsieve.paper.methods import estimators
from fairsieve.paper.methods.contract import Family, Method, TrainFunction
from fairsieve.paper.methods.fr_train import fr_train_trainer
from fairsieve.paper.methods.noise_losses import noise_loss_trainer, train_learning_to_reweight
from fairsieve.paper.methods.selection import loop_trainer, train_as_authors, two_step_trainer
from fairsieve.report.looks import Look
from fairsieve.validation import closest_hint

# The first candidate is the default. For the paper's method these are the paper's own; the paper's other learning rate,
# .0001, is left out: after 400 epochs even LR has not converged with it. The grids of the others are wide enough that
# few choices sit at an end.
STEP_SIZES = {"step_size": (0.001, 0.0005, 0.0001)}
WIDE_STEP_SIZES = {"step_size": (0.001, 0.00002, 0.0001, 0.0005, 0.002, 0.005, 0.02, 0.05)}
PENALTY_WEIGHTS = {"penalty_weight": (1.0, 0.03, 0.1, 0.3, 3.0, 10.0, 30.0, 100.0)}
CLEANING_WEIGHTS = {"cleaning_penalty_weight": (0.3, 0.01, 0.1, 1.0, 10.0)}
FAIRNESS_WEIGHTS = {"fairness_weight": (0.4, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.55, 0.59)}
FEWER_STEP_SIZES = {"step_size": (0.001, 0.0001, 0.0005, 0.005, 0.02)}
FEWER_PENALTY_WEIGHTS = {"penalty_weight": (1.0, 0.1, 0.3, 3.0, 10.0, 100.0)}

FAIRBATCH = loop_trainer("fairbatch")
PENALTY = loop_trainer("lr", penalty_weight=1.0)
BOTH: Family = "fair and robust"


def _add(
    name: str, title: str, look: tuple[str, ...], family: Family, train: TrainFunction, **more: Any
) -> Method:
    return Method(name=name, title=title, look=Look(*look), family=family, train=train, **more)


TWO = {"most_groups": 2, "most_classes": 2}
MU = {"candidates": {"mu": (1.0, 0.0001, 0.001, 0.01, 0.1, 10.0, 100.0, 1000.0, 10000.0)}}

PAPER = (
    _add("lr", "LR", ("grey",), "plain", loop_trainer("lr", longer=True)),
    _add("itlm", "ITLM", ("orange", "square"), "robust", loop_trainer("itlm", longer=True)),
    _add("fairbatch", "FairBatch", ("sky", "triangle"), "fair", FAIRBATCH, short="FB", candidates=WIDE_STEP_SIZES),
    _add("penalty", "Penalty", ("pink", "diamond"), "fair", PENALTY, candidates=PENALTY_WEIGHTS),
    _add("itlm-fairbatch", "ITLM→FairBatch", ("green", "triangle"), BOTH, two_step_trainer(FAIRBATCH),
         short="ITLM→FB", candidates=WIDE_STEP_SIZES),
    _add("itlm-penalty", "ITLM→Penalty", ("black", "diamond"), BOTH, two_step_trainer(PENALTY),
         candidates=PENALTY_WEIGHTS),
    _add("itlm+penalty-fairbatch", "(ITLM+Penalty)→FairBatch", ("green", "cross"), BOTH,
         two_step_trainer(FAIRBATCH, penalised=True), short="(ITLM+Penalty)→FB",
         candidates=CLEANING_WEIGHTS | FEWER_STEP_SIZES),
    _add("itlm+penalty-penalty", "(ITLM+Penalty)→Penalty", ("black", "cross"), BOTH,
         two_step_trainer(PENALTY, penalised=True), candidates=CLEANING_WEIGHTS | FEWER_PENALTY_WEIGHTS),
    _add("sample-selection", "Sample selection", ("blue",), BOTH, loop_trainer("fairsieve"),
         short="the method", candidates=STEP_SIZES),
    _add("sample-selection-no-constraints", "Sample selection without constraints", ("blue", "triangle"), BOTH,
         loop_trainer("fairsieve-no-constraints"), short="w/o constraints", candidates=STEP_SIZES),
    _add("sample-selection-no-weights", "Sample selection without weights", ("blue", "point"), BOTH,
         loop_trainer("fairsieve-no-weights"), short="w/o weights", candidates=STEP_SIZES),
    _add("sample-selection-authors", "Sample selection, as the authors' code", ("sky", "diamond"), BOTH,
         train_as_authors, short="as the authors' code", candidates=STEP_SIZES, **TWO),
    _add("fr-train", "FR-Train (ours)", ("pink", "square"), BOTH, fr_train_trainer("ours"),
         candidates=FAIRNESS_WEIGHTS, uses_validation=True, **TWO),
    _add("fr-train-published", "FR-Train (published settings)", ("red", "square"), BOTH,
         fr_train_trainer("published"), uses_validation=True, **TWO),
)  # fmt: skip
OTHERS = (
    _add("plain", "Plain", ("black",), "plain", estimators.train_plain),
    _add("fairsieve", "fairsieve", ("blue", "diamond"), BOTH, estimators.train_fairsieve),
    _add("reweighing", "Reweighing", ("pink", "point"), "fair", estimators.train_reweighing),
    _add("exponentiated-gradient", "ExponentiatedGradient", ("pink", "cross"), "fair",
         estimators.train_exponentiated_gradient, most_classes=2),
    _add("threshold-optimizer", "ThresholdOptimizer", ("pink", "triangle"), "fair",
         estimators.train_threshold_optimizer, most_classes=2),
    _add("surrogate-loss", "Surrogate loss", ("orange", "diamond"), BOTH, noise_loss_trainer("surrogate"), **TWO, **MU),
    _add("group-peer-loss", "Group peer loss", ("orange", "cross"), BOTH, noise_loss_trainer("peer"), **TWO, **MU),
    _add("learning-to-reweight", "Learning to reweight", ("orange", "point"), "robust", train_learning_to_reweight,
         uses_validation=True, most_classes=2),
)  # fmt: skip

PAPER_METHODS = tuple(method.name for method in PAPER)
DEFAULT_METHODS = ("plain", "fairsieve", "reweighing", "exponentiated-gradient", "threshold-optimizer")
METHODS = {method.name: method for method in (*PAPER, *OTHERS)}


def find_methods(names: str) -> list[Method]:
    """Return methods by names with commas between them; ``default``, ``all``, or ``paper`` for the paper's."""
    sets = {"default": DEFAULT_METHODS, "all": tuple(METHODS), "paper": PAPER_METHODS}
    wanted = sets.get(names, tuple(names.split(",")))
    unknown = [name for name in wanted if name not in METHODS]
    if unknown:
        raise InvalidInputError(
            f"methods must be default, all, paper, or among {', '.join(METHODS)}; got "
            f"{', '.join(map(repr, unknown))}{closest_hint(unknown[0], METHODS)}"
        )
    return [METHODS[name] for name in wanted]
