"""FR-Train (Roh et al. 2020): a classifier that plays against two discriminators.

The *fairness* discriminator tells a sample's group from the classifier's output ŷ (for equalized
odds, with the label as a second input). The *robustness* discriminator tells training samples with
the classifier's label, (x, z, ŷ), from samples of a clean validation set, (x, z, y). The classifier
minimises (1 − λf − λr)·L₁ − λf·L_fair − λr·L_robust; in L₁ a sample weighs what the robustness
discriminator makes of (x, z, y), once that tells more than a coin.

Three things the description leaves open are settled here, by experiment on the synthetic data:

- ŷ is a label that is 1 with the classifier's probability, and L_robust is its expectation. Handing
  over the probability itself lets the discriminator win by noticing that it is not 0 or 1, which
  says nothing about wrong labels.
- The robustness discriminator sees standardised features, so that one step size fits all data.
- Discriminators take steps of 0.05, not the published 0.001, at which they learn too slowly to steer
  the classifier: with group-targeted flips accuracy / EO disparity are then .693 / .156, not .710 / .052.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Literal

from fairsieve.errors import InvalidInputError
from fairsieve.optional import require
from fairsieve.paper.methods.contract import Method, TrainingInput
from fairsieve.paper.methods.fitted_estimator import settings_with
from fairsieve.paper.methods.fr_train_options import FRTrainOptions
from fairsieve.report.looks import Look
from fairsieve.samples import Samples
from fairsieve.training.fit import check_data, fit
from fairsieve.training.result import Fitted
from fairsieve.validation import check_at_least, check_choice, check_positive, check_share

__all__ = ["FR_TRAIN", "check_validation", "check_weights", "clean_with_itlm"]


def _train_fr_train(
    given: TrainingInput,
    *,
    fairness_weight: float = 0.4,
    robustness_weight: float = 0.4,
    validation_kind: Literal["clean", "noisy", "cleaned"] = "clean",
    epochs: int = 10_000,
    pretrain_epochs: int = 500,
    discriminator_updates: int = 5,
    classifier_rate: float = 0.001,
    discriminator_rate: float = 0.05,
    batch_limit: int = 2_000,
    engine: Literal["auto", "compiled", "autograd"] = "auto",
    **hyperparameters: Any,
) -> Fitted:
    """Train a model by FR-Train: any module, two classes, any number of groups.

    Of the settings the notion of fairness, the positive label, the loss, the optimiser (the
    classifier's), the device and ``average_last`` count; epochs, batches and rates are FR-Train's own.
    The validation set, which says what right labels look like, is needed.

    Parameters
    ----------
    fairness_weight, robustness_weight : float
        λf and λr, together at most 1.
    validation_kind : {"clean", "noisy", "cleaned"}
        What the validation set is (Table 3). Clean and noisy are taken as they are; cleaned is
        first put through :func:`clean_with_itlm` with the settings' clean ratio.
    epochs, pretrain_epochs : int
        Epochs in all, one update of someone in each, and how many of them train plainly first.
    discriminator_updates : int
        For one update of the classifier.
    classifier_rate, discriminator_rate : float
        Learning rates, of Adam and of gradient descent.
    batch_limit : int
        An update looks at all training and all validation samples, or at so many of each where there are
        more: a shuffle, part by part.
    engine : {"auto", "compiled", "autograd"}
        The linear model has a compiled loop beside the autograd one; auto uses it where it can.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> from fairsieve.training.settings import Settings
    >>> data, clean = make_synthetic(300, seed=0), make_synthetic(50, seed=1)
    >>> given = TrainingInput(data=data, settings=Settings(), seed=0, validation=clean)
    >>> fitted = _train_fr_train(given, epochs=30, pretrain_epochs=10)
    >>> fitted.history.epochs.tolist()[-1], len(fitted.indices)
    (29, 300)
    """
    settings = settings_with("fr-train", given.settings, hyperparameters, OWN)
    data, validation = given.data, given.validation
    check_data(data, given.evaluation)
    FR_TRAIN.check(data, settings, validation)
    assert validation is not None
    check_validation(data, validation)
    options = _check_options(
        fairness_weight=fairness_weight,
        robustness_weight=robustness_weight,
        classifier_rate=classifier_rate,
        discriminator_rate=discriminator_rate,
        discriminator_updates=discriminator_updates,
        pretrain_epochs=pretrain_epochs,
    )
    check_at_least("epochs", epochs, 1)
    check_at_least("batch_limit", batch_limit, 1)
    check_choice("engine", engine, ("auto", "compiled", "autograd"))
    check_choice("validation_kind", validation_kind, ("clean", "noisy", "cleaned"))
    require("torch", extra="torch", purpose="FR-Train")
    from fairsieve.paper.methods.fr_train_training import train_against_discriminators

    started = time.perf_counter()
    if validation_kind == "cleaned":
        validation = clean_with_itlm(validation, settings.clean_ratio, seed=given.seed)
    fitted = train_against_discriminators(
        replace(given, settings=settings, validation=validation),
        options,
        epochs=epochs,
        batch_limit=batch_limit,
        engine=engine,
    )
    return replace(fitted, seconds=time.perf_counter() - started)


FR_TRAIN = Method(
    name="fr-train",
    title="FR-Train",
    short="FR-Train (ours)",
    look=Look("pink", "square"),
    family="fair and robust",
    trainer=_train_fr_train,
    candidates={"fairness_weight": (0.4, 0.2)},
    while_tuning={"epochs": 3_000},
    uses_validation=True,
    most_classes=2,
    extra="torch",
)
OWN = (
    "fairness_weight",
    "robustness_weight",
    "validation_kind",
    "epochs",
    "pretrain_epochs",
    "discriminator_updates",
    "classifier_rate",
    "discriminator_rate",
    "batch_limit",
    "engine",
)


def clean_with_itlm(validation: Samples, clean_ratio: float, *, seed: int = 0) -> Samples:
    """Return what ITLM selects of a noisy validation set after training on it (Table 3).

    Batches are a twentieth of the set, so that a small one gets as many updates as the paper's
    2,000 samples in batches of 100.

    Examples
    --------
    >>> from fairsieve.data import make_synthetic
    >>> len(clean_with_itlm(make_synthetic(200, seed=0), 0.9))
    180
    """
    batch_size = max(1, len(validation) // 20)
    fitted = fit(None, validation, "itlm", seed=seed, clean_ratio=clean_ratio, batch_size=batch_size)
    return validation.take(fitted.indices)


def check_validation(data: Samples, validation: Samples) -> None:
    """Raise unless the samples have the classes, groups and features of the training data."""
    if len(validation) == 0:
        raise InvalidInputError("validation must have at least one sample; got none")
    known = (data.classes, data.group_values, data.features.shape[1:])
    found = (validation.classes, validation.group_values, validation.features.shape[1:])
    if known != found:
        raise InvalidInputError(
            f"validation must have the classes, groups and features of data, {known}; got {found}. Pass classes= and "
            "group_values= to Samples when some are absent"
        )


def check_weights(fairness_weight: float, robustness_weight: float) -> None:
    """Raise unless λf and λr are shares that sum to at most 1."""
    check_share("fairness_weight", fairness_weight)
    check_share("robustness_weight", robustness_weight)
    if fairness_weight + robustness_weight > 1 + 1e-9:
        raise InvalidInputError(
            f"fairness_weight and robustness_weight must sum to at most 1; got {fairness_weight} and "
            f"{robustness_weight}"
        )


def _check_options(
    *,
    fairness_weight: float,
    robustness_weight: float,
    classifier_rate: float,
    discriminator_rate: float,
    discriminator_updates: int,
    pretrain_epochs: int,
) -> FRTrainOptions:
    """Return the options of both engines, or raise where a rule is broken."""
    check_weights(fairness_weight, robustness_weight)
    return FRTrainOptions(
        float(fairness_weight),
        float(robustness_weight),
        check_positive("classifier_rate", classifier_rate),
        check_positive("discriminator_rate", discriminator_rate),
        check_at_least("discriminator_updates", discriminator_updates, 1),
        check_at_least("pretrain_epochs", pretrain_epochs, 0),
    )
