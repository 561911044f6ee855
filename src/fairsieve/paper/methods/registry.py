"""The list of methods: the command line, the tables and the figures take names, titles and looks from here."""

from __future__ import annotations

from fairsieve.errors import InvalidInputError
from fairsieve.paper.methods import estimators
from fairsieve.paper.methods.contract import Family, Method
from fairsieve.paper.methods.fr_train import fr_train_trainer
from fairsieve.paper.methods.learning_to_reweight import train_learning_to_reweight
from fairsieve.paper.methods.noise_losses import noise_loss_trainer
from fairsieve.paper.methods.selection import loop_trainer, train_as_authors, two_step_trainer
from fairsieve.report.looks import Look
from fairsieve.validation import closest_hint

__all__ = ["DEFAULT_METHODS", "METHODS", "PAPER_METHODS", "find_methods"]

# The first candidate is the default. For the paper's method these are the paper's own; the paper's other learning rate,
# .0001, is left out: after 400 epochs even LR has not converged with it. The grids of the others are wide enough that
# few choices sit at an end.
STEP_SIZES = {"step_size": (0.001, 0.0005, 0.0001)}
WIDE_STEP_SIZES = {"step_size": (0.001, 0.00002, 0.0001, 0.0005, 0.002, 0.005, 0.02, 0.05)}
PENALTY_WEIGHTS = {"penalty_weight": (1.0, 0.03, 0.1, 0.3, 3.0, 10.0, 30.0, 100.0)}
CLEANING_WEIGHTS = {"cleaning_penalty_weight": (0.3, 0.01, 0.1, 1.0, 10.0)}
FAIRNESS_WEIGHTS = {"fairness_weight": (0.4, 0.05, 0.1, 0.2, 0.3, 0.5, 0.55)}
FEWER_STEP_SIZES = {"step_size": (0.001, 0.0001, 0.0005, 0.005, 0.02)}
FEWER_PENALTY_WEIGHTS = {"penalty_weight": (1.0, 0.1, 0.3, 3.0, 10.0, 100.0)}

FAIRBATCH = loop_trainer("fairbatch")
PENALTY = loop_trainer("lr", penalty_weight=1.0)
BOTH: Family = "fair and robust"

PAPER = (
    Method(name="lr", title="LR", look=Look("grey"), family="plain", train=loop_trainer("lr", longer=True)),
    Method(
        name="itlm",
        title="ITLM",
        look=Look("orange", "square"),
        family="robust",
        train=loop_trainer("itlm", longer=True),
    ),
    Method(
        name="fairbatch",
        title="FairBatch",
        short="FB",
        look=Look("sky", "triangle"),
        family="fair",
        train=FAIRBATCH,
        candidates=WIDE_STEP_SIZES,
    ),
    Method(
        name="penalty",
        title="Penalty",
        look=Look("pink", "diamond"),
        family="fair",
        train=PENALTY,
        candidates=PENALTY_WEIGHTS,
    ),
    Method(
        name="itlm-fairbatch",
        title="ITLM→FairBatch",
        short="ITLM→FB",
        look=Look("green", "triangle"),
        family=BOTH,
        train=two_step_trainer(FAIRBATCH),
        candidates=WIDE_STEP_SIZES,
    ),
    Method(
        name="itlm-penalty",
        title="ITLM→Penalty",
        look=Look("black", "diamond"),
        family=BOTH,
        train=two_step_trainer(PENALTY),
        candidates=PENALTY_WEIGHTS,
    ),
    Method(
        name="itlm+penalty-fairbatch",
        title="(ITLM+Penalty)→FairBatch",
        short="(ITLM+Penalty)→FB",
        look=Look("green", "cross"),
        family=BOTH,
        train=two_step_trainer(FAIRBATCH, penalised=True),
        candidates=CLEANING_WEIGHTS | FEWER_STEP_SIZES,
    ),
    Method(
        name="itlm+penalty-penalty",
        title="(ITLM+Penalty)→Penalty",
        look=Look("black", "cross"),
        family=BOTH,
        train=two_step_trainer(PENALTY, penalised=True),
        candidates=CLEANING_WEIGHTS | FEWER_PENALTY_WEIGHTS,
    ),
    Method(
        name="sample-selection",
        title="Sample selection",
        short="the method",
        look=Look("blue"),
        family=BOTH,
        train=loop_trainer("fairsieve"),
        candidates=STEP_SIZES,
    ),
    Method(
        name="sample-selection-no-constraints",
        title="Sample selection without constraints",
        short="w/o constraints",
        look=Look("blue", "triangle"),
        family=BOTH,
        train=loop_trainer("fairsieve-no-constraints"),
        candidates=STEP_SIZES,
    ),
    Method(
        name="sample-selection-no-weights",
        title="Sample selection without weights",
        short="w/o weights",
        look=Look("blue", "point"),
        family=BOTH,
        train=loop_trainer("fairsieve-no-weights"),
        candidates=STEP_SIZES,
    ),
    Method(
        name="sample-selection-authors",
        title="Sample selection, as the authors' code",
        short="as the authors' code",
        look=Look("sky", "diamond"),
        family=BOTH,
        train=train_as_authors,
        candidates=STEP_SIZES,
        most_classes=2,
        most_groups=2,
    ),
    Method(
        name="fr-train",
        title="FR-Train (ours)",
        look=Look("pink", "square"),
        family=BOTH,
        train=fr_train_trainer("ours"),
        candidates=FAIRNESS_WEIGHTS,
        uses_validation=True,
        most_groups=2,
        most_classes=2,
        extra="reproduce",
    ),
    Method(
        name="fr-train-published",
        title="FR-Train (published settings)",
        look=Look("red", "square"),
        family=BOTH,
        train=fr_train_trainer("published"),
        uses_validation=True,
        most_groups=2,
        most_classes=2,
        extra="reproduce",
    ),
)

OTHERS = (
    Method(name="plain", title="Plain", look=Look("black"), family="plain", train=estimators.train_plain),
    Method(
        name="fairsieve",
        title="fairsieve",
        look=Look("blue", "diamond"),
        family=BOTH,
        train=estimators.train_fairsieve,
    ),
    Method(
        name="reweighing",
        title="Reweighing",
        look=Look("pink", "point"),
        family="fair",
        train=estimators.train_reweighing,
    ),
    Method(
        name="exponentiated-gradient",
        title="ExponentiatedGradient",
        look=Look("pink", "cross"),
        family="fair",
        train=estimators.train_exponentiated_gradient,
        most_classes=2,
        extra="fairlearn",
    ),
    Method(
        name="threshold-optimizer",
        title="ThresholdOptimizer",
        look=Look("pink", "triangle"),
        family="fair",
        train=estimators.train_threshold_optimizer,
        most_classes=2,
        extra="fairlearn",
    ),
    Method(
        name="surrogate-loss",
        title="Surrogate loss",
        look=Look("orange", "diamond"),
        family=BOTH,
        train=noise_loss_trainer("surrogate"),
        candidates={"mu": (1.0, 0.01, 0.1, 10.0, 100.0)},
        most_groups=2,
        most_classes=2,
    ),
    Method(
        name="group-peer-loss",
        title="Group peer loss",
        look=Look("orange", "cross"),
        family=BOTH,
        train=noise_loss_trainer("peer"),
        candidates={"mu": (1.0, 0.01, 0.1, 10.0, 100.0)},
        most_groups=2,
        most_classes=2,
    ),
    Method(
        name="learning-to-reweight",
        title="Learning to reweight",
        look=Look("orange", "point"),
        family="robust",
        train=train_learning_to_reweight,
        uses_validation=True,
        most_classes=2,
    ),
)

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
