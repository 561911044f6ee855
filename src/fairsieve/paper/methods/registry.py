"""Every method by its name."""

from __future__ import annotations

from fairsieve.errors import InvalidInputError
from fairsieve.paper.methods.contract import Method
from fairsieve.paper.methods.estimated_ratio import train_fairsieve_auto
from fairsieve.paper.methods.fairlearn_methods import train_exponentiated_gradient, train_threshold_optimizer
from fairsieve.paper.methods.fr_train import FR_TRAIN
from fairsieve.paper.methods.group_confident_learning import train_group_confident_learning
from fairsieve.paper.methods.label_correction import train_fair_label_correction
from fairsieve.paper.methods.planned import plan_trainer, two_step_trainer
from fairsieve.paper.methods.reweighing import train_reweighing
from fairsieve.training.methods import SELECTION_METHODS

__all__ = ["METHODS", "PAPER_METHODS", "find_methods"]

RATES = {"learning_rate": (0.0005, 0.0001)}
STEPS = {"step_size": (0.0005, 0.001, 0.0001)}
WEIGHTS = {"penalty_weight": (0.3, 0.1, 1.0)}

ITLM = plan_trainer("itlm")
FAIRBATCH = plan_trainer("fairbatch")
PENALTY = plan_trainer("lr", penalty_weight=0.3)
ITLM_WITH_PENALTY = plan_trainer("itlm", penalty_weight=0.1)

PAPER = (
    Method("lr", "LR", "plain", plan_trainer("lr"), RATES),
    Method("itlm", "ITLM", "robust", ITLM, RATES),
    Method("fairbatch", "FB", "fair", FAIRBATCH, RATES | STEPS),
    Method("penalty", "Penalty", "fair", PENALTY, WEIGHTS),
    Method("itlm-fairbatch", "ITLM→FB", "fair and robust", two_step_trainer(ITLM, FAIRBATCH), RATES | STEPS),
    Method("itlm-penalty", "ITLM→Penalty", "fair and robust", two_step_trainer(ITLM, PENALTY), WEIGHTS),
    Method(
        "itlm+penalty-fairbatch",
        "(ITLM+Penalty)→FB",
        "fair and robust",
        two_step_trainer(ITLM_WITH_PENALTY, FAIRBATCH),
        STEPS | {"penalty_weight": (0.1, 0.3)},
    ),
    Method(
        "itlm+penalty-penalty",
        "(ITLM+Penalty)→Penalty",
        "fair and robust",
        two_step_trainer(ITLM_WITH_PENALTY, PENALTY),
        WEIGHTS,
    ),
    Method("fairsieve", "fairsieve", "fair and robust", plan_trainer("fairsieve"), RATES | STEPS),
    *(
        Method(name, SELECTION_METHODS[name].title, "fair and robust", plan_trainer(name), RATES | STEPS)
        for name in ("fairsieve-no-constraints", "fairsieve-no-weights")
    ),
    FR_TRAIN,
)

OTHERS = (
    Method("fairsieve-auto", "fairsieve, auto", "fair and robust", train_fairsieve_auto, RATES | STEPS),
    Method(
        "exponentiated-gradient",
        "ExponentiatedGradient",
        "fair",
        train_exponentiated_gradient,
        {"eps": (0.01,)},
        most_classes=2,
    ),
    Method("threshold-optimizer", "ThresholdOptimizer", "fair", train_threshold_optimizer, most_classes=2),
    Method("reweighing", "Reweighing", "fair", train_reweighing),
    Method(
        "group-confident-learning",
        "Group confident learning",
        "robust",
        train_group_confident_learning,
        {"decoupled": (False, True)},
    ),
    Method("fair-label-correction", "Fair label correction", "fair and robust", train_fair_label_correction),
)

PAPER_METHODS = tuple(method.name for method in PAPER)
METHODS = {method.name: method for method in (*PAPER, *OTHERS)}


def find_methods(names: str) -> list[Method]:
    """Methods by names with commas between them; ``all``, or ``paper`` for those of the paper."""
    wanted = {"all": list(METHODS), "paper": list(PAPER_METHODS)}.get(names, names.split(","))
    unknown = [name for name in wanted if name not in METHODS]
    if unknown:
        raise InvalidInputError(
            f"methods must be all, paper, or among {', '.join(METHODS)}; got {', '.join(map(repr, unknown))}"
        )
    return [METHODS[name] for name in wanted]
