"""The list of methods: the command line, the tables and the figures take names, titles and looks from here."""

from __future__ import annotations

from fairsieve.errors import InvalidInputError
from fairsieve.paper.methods.contract import Method
from fairsieve.paper.methods.converged import converged_trainer
from fairsieve.paper.methods.estimated_ratio import train_fairsieve_auto
from fairsieve.paper.methods.fairlearn_methods import train_exponentiated_gradient, train_threshold_optimizer
from fairsieve.paper.methods.fr_train import FR_TRAIN
from fairsieve.paper.methods.fr_train_published import FR_TRAIN_PUBLISHED
from fairsieve.paper.methods.group_confident_learning import train_group_confident_learning
from fairsieve.paper.methods.label_correction import train_fair_label_correction
from fairsieve.paper.methods.planned import plan_trainer, shared_trainer, two_step_trainer
from fairsieve.paper.methods.reweighing import train_reweighing
from fairsieve.report.looks import Look
from fairsieve.validation import closest_hint

__all__ = ["METHODS", "PAPER_METHODS", "UNCONVERGED", "find_methods"]

# The paper's candidates; the first is the default, for the step size the one of both of the authors' notebooks. The
# paper's other learning rate, .0001, is left out: after 400 epochs even LR has not converged with it.
STEP_SIZES = {"step_size": (0.001, 0.0005, 0.0001)}
PENALTY_WEIGHTS = {"penalty_weight": (1.0, 0.3, 3.0, 10.0)}
UNCONVERGED = {"converge": False}

LR = converged_trainer("lr")
ITLM = converged_trainer("itlm")
FAIRBATCH = plan_trainer("fairbatch")
PENALTY = plan_trainer("lr", penalty_weight=1.0)
ITLM_WITH_PENALTY = converged_trainer("itlm", penalty_weight=0.3)

PAPER = (
    Method(
        name="lr",
        title="LR",
        look=Look("grey"),
        family="plain",
        trainer=LR,
        while_tuning=UNCONVERGED,
    ),
    Method(
        name="itlm",
        title="ITLM",
        look=Look("orange", "square"),
        family="robust",
        trainer=shared_trainer(ITLM),
        while_tuning=UNCONVERGED,
    ),
    Method(
        name="fairbatch",
        title="FairBatch",
        short="FB",
        look=Look("sky", "triangle"),
        family="fair",
        trainer=FAIRBATCH,
        candidates=STEP_SIZES,
    ),
    Method(
        name="penalty",
        title="Penalty",
        look=Look("pink", "diamond"),
        family="fair",
        trainer=PENALTY,
        candidates=PENALTY_WEIGHTS,
    ),
    Method(
        name="itlm-fairbatch",
        title="ITLM→FairBatch",
        short="ITLM→FB",
        look=Look("green", "triangle"),
        family="fair and robust",
        trainer=two_step_trainer(ITLM, FAIRBATCH),
        candidates=STEP_SIZES,
        while_tuning=UNCONVERGED,
    ),
    Method(
        name="itlm-penalty",
        title="ITLM→Penalty",
        look=Look("black", "diamond"),
        family="fair and robust",
        trainer=two_step_trainer(ITLM, PENALTY),
        candidates=PENALTY_WEIGHTS,
        while_tuning=UNCONVERGED,
    ),
    Method(
        name="itlm+penalty-fairbatch",
        title="(ITLM+Penalty)→FairBatch",
        short="(ITLM+Penalty)→FB",
        look=Look("green", "cross"),
        family="fair and robust",
        trainer=two_step_trainer(ITLM_WITH_PENALTY, FAIRBATCH, penalised=True),
        candidates=STEP_SIZES | {"cleaning_penalty_weight": (0.3,)},
        while_tuning=UNCONVERGED,
    ),
    Method(
        name="itlm+penalty-penalty",
        title="(ITLM+Penalty)→Penalty",
        look=Look("black", "cross"),
        family="fair and robust",
        trainer=two_step_trainer(ITLM_WITH_PENALTY, PENALTY, penalised=True),
        candidates=PENALTY_WEIGHTS | {"cleaning_penalty_weight": (0.3,)},
        while_tuning=UNCONVERGED,
    ),
    Method(
        name="fairsieve",
        title="fairsieve",
        look=Look("blue"),
        family="fair and robust",
        trainer=plan_trainer("fairsieve"),
        candidates=STEP_SIZES,
    ),
    Method(
        name="fairsieve-no-constraints",
        title="fairsieve without constraints",
        short="w/o constraints",
        look=Look("blue", "triangle"),
        family="fair and robust",
        trainer=plan_trainer("fairsieve-no-constraints"),
        candidates=STEP_SIZES,
    ),
    Method(
        name="fairsieve-no-weights",
        title="fairsieve without weights",
        short="w/o weights",
        look=Look("blue", "point"),
        family="fair and robust",
        trainer=plan_trainer("fairsieve-no-weights"),
        candidates=STEP_SIZES,
    ),
    FR_TRAIN_PUBLISHED,
    FR_TRAIN,
)

OTHERS = (
    Method(
        name="fairsieve-auto",
        title="fairsieve, auto",
        look=Look("blue", "diamond"),
        family="fair and robust",
        trainer=train_fairsieve_auto,
        candidates=STEP_SIZES,
    ),
    Method(
        name="exponentiated-gradient",
        title="ExponentiatedGradient",
        look=Look("pink", "cross"),
        family="fair",
        trainer=train_exponentiated_gradient,
        candidates={"eps": (0.01,)},
        most_classes=2,
    ),
    Method(
        name="threshold-optimizer",
        title="ThresholdOptimizer",
        look=Look("pink", "triangle"),
        family="fair",
        trainer=train_threshold_optimizer,
        most_classes=2,
    ),
    Method(
        name="reweighing",
        title="Reweighing",
        look=Look("pink", "point"),
        family="fair",
        trainer=train_reweighing,
    ),
    Method(
        name="group-confident-learning",
        title="Group confident learning",
        look=Look("orange", "diamond"),
        family="robust",
        trainer=train_group_confident_learning,
        candidates={"decoupled": (False, True)},
    ),
    Method(
        name="fair-label-correction",
        title="Fair label correction",
        look=Look("red", "diamond"),
        family="fair and robust",
        trainer=train_fair_label_correction,
    ),
)

PAPER_METHODS = tuple(method.name for method in PAPER)
METHODS = {method.name: method for method in (*PAPER, *OTHERS)}


def find_methods(names: str) -> list[Method]:
    """Return methods by names with commas between them; ``all``, or ``paper`` for those of the paper."""
    wanted = {"all": list(METHODS), "paper": list(PAPER_METHODS)}.get(names, names.split(","))
    unknown = [name for name in wanted if name not in METHODS]
    if unknown:
        raise InvalidInputError(
            f"methods must be all, paper, or among {', '.join(METHODS)}; got {', '.join(map(repr, unknown))}"
            f"{closest_hint(unknown[0], METHODS)}"
        )
    return [METHODS[name] for name in wanted]
