"""The paper's claims, in its order, and the verdicts on them."""

from __future__ import annotations

from fairsieve.paper.claims.evidence import (
    FAIR_AND_ROBUST,
    SIMILAR,
    Claim,
    by_duels,
    fairer_at_equal_accuracy,
    growing_gain,
    highest_loss,
    ranks_claim,
    rate_duels,
    reversed_duels,
    smallest_set,
    tell_rates,
    wider_spread,
)
from fairsieve.paper.claims.pairwise import OUTCOMES, Duel, duels_of, most_of
from fairsieve.paper.reproduce.published import paper_tables
from fairsieve.paper.reproduce.results import Results
from fairsieve.paper.reproduce.targets import ITEMS, compas_rate_trials, plain_compas
from fairsieve.paper.reproduce.trials import Trial
from fairsieve.report.document import Verdict

__all__ = ["CLAIMS", "verdicts"]

SYNTHETIC, COMPAS, ADULT = (paper_tables()[table].columns for table in (1, 2, 7))
TWO_STEP = ("itlm-fairbatch", "itlm-penalty")
OTHER_TWO_STEP = ("itlm+penalty-fairbatch", "itlm+penalty-penalty")
ABLATIONS = {
    "the fairness constraints": "fairsieve-no-constraints",
    "the weights": "fairsieve-no-weights",
    "both": "itlm",
}
ABLATION_COLUMNS = {
    "synthetic data": paper_tables()[5].columns[:2],
    "COMPAS": paper_tables()[5].columns[2:],
}


def verdicts(results: Results) -> list[Verdict]:
    """A verdict on every claim whose runs are there, and whether it is the same with the defaults."""
    found, plain = [], results.with_defaults()
    for claim in CLAIMS:
        if not claim.is_told_by(results):
            continue
        holds, evidence = claim.check(results)
        chosen = any(results.scope.tuned_as(trial) is not None for trial in claim.trials)
        if chosen and claim.is_told_by(plain):
            first, _, rest = evidence.removesuffix(".").partition(". ")
            otherwise = f"{first}; with the default hyperparameters: {OUTCOMES[claim.check(plain)[0]]}."
            evidence = f"{otherwise} {rest}." if rest else otherwise
        found.append(Verdict(claim.text, claim.source, holds, evidence))
    return found


def _fr_train(validation: str, fairness: str) -> Trial:
    return Trial("fr-train", "compas", fairness=fairness, validation=validation)  # type: ignore[arg-type]


def _validation_duels(better: str, worse: str, measure: str) -> list[Duel]:
    """FR-Train with one validation set against another (Table 3)."""
    return [
        Duel(
            _fr_train(better, column.fairness),
            _fr_train(worse, column.fairness),
            column.fairness if measure == "disparity" else measure,
        )
        for column in paper_tables()[3].columns
    ]


def _ours_against_cleaned(measure: str, slack: float = 0) -> list[Duel]:
    """Ours against FR-Train in the realistic scenario (2) of Table 3."""
    return [
        Duel(
            Trial("fairsieve", "compas", fairness=column.fairness),
            _fr_train("cleaned", column.fairness),
            column.fairness if measure == "disparity" else measure,
            slack,
        )
        for column in paper_tables()[3].columns
    ]


def _seconds_duel(faster: str, slower: str, data: str) -> list[Duel]:
    return [Duel(Trial(faster, data), Trial(slower, data), "seconds")]


CLAIMS = (
    by_duels(
        "Fairness is better than or comparable to the state of the art, FR-Train, on synthetic and real data",
        "Abstract",
        duels_of(("fr-train",), (*SYNTHETIC, *COMPAS, *ADULT), "disparity", slack=SIMILAR),
        rule=most_of,
    ),
    by_duels(
        "Robustness (accuracy) is better than or comparable to the state of the art, FR-Train, on synthetic and real "
        "data",
        "Abstract",
        duels_of(("fr-train",), (*SYNTHETIC, *COMPAS, *ADULT), "accuracy", slack=SIMILAR),
        rule=most_of,
    ),
    Claim("(y = 1, z = 1) is the smallest set of COMPAS", "Sec. 1, Fig. 1a", (plain_compas(),), smallest_set),
    Claim(
        "(y = 1, z = 1) has the highest loss at every epoch when logistic regression trains on COMPAS",
        "Sec. 1, Fig. 1b",
        (plain_compas(),),
        highest_loss,
    ),
    Claim(
        "ITLM increasingly improves accuracy over LR for larger noise rates (COMPAS)",
        "Sec. 2, Fig. 2a",
        ITEMS["figure2"].trials,
        growing_gain,
    ),
    *(
        by_duels(
            f"ITLM worsens {short} disparity against LR at every noise rate (COMPAS)",
            f"Sec. 2, Fig. 2{letter}",
            [
                Duel(lr, itlm, notion)
                for lr, itlm in zip(compas_rate_trials("lr"), compas_rate_trials("itlm"), strict=True)
                if lr.rate > 0
            ],
            telling=tell_rates,
        )
        for short, letter, notion in (("EO", "b", "equalized_odds"), ("DP", "c", "demographic_parity"))
    ),
    by_duels(
        "Ours has the lowest disparity of the fair and robust methods (synthetic data)",
        "Sec. 5.1, Table 1",
        duels_of(FAIR_AND_ROBUST, SYNTHETIC, "disparity"),
    ),
    by_duels(
        "Ours has the highest accuracy of the fair and robust methods (synthetic data)",
        "Sec. 5.1, Table 1",
        duels_of(FAIR_AND_ROBUST, SYNTHETIC, "accuracy"),
    ),
    by_duels(
        "Ours has higher accuracy than LR, and lower EO and DP disparity (synthetic data)",
        "Sec. 5.1, Table 1",
        duels_of(("lr",), SYNTHETIC, "accuracy"),
        duels_of(("lr",), SYNTHETIC, "disparity"),
    ),
    by_duels(
        "Ours is fairer than ITLM (synthetic data)",
        "Sec. 5.1, Table 1",
        duels_of(("itlm",), SYNTHETIC, "disparity"),
    ),
    by_duels(
        "Ours is at least as accurate as ITLM (synthetic data)",
        "Sec. 5.1, Table 1",
        duels_of(("itlm",), SYNTHETIC, "accuracy"),
    ),
    by_duels(
        "FB's accuracy is noticeably low: below LR's (synthetic data)",
        "Sec. 5.1, Table 1",
        duels_of(("fairbatch",), SYNTHETIC, "accuracy", method="lr"),
    ),
    by_duels(
        "Ours is more accurate than FB (synthetic data)",
        "Sec. 5.1, Table 1",
        duels_of(("fairbatch",), SYNTHETIC, "accuracy"),
    ),
    by_duels(
        "ITLM→FB and ITLM→Penalty usually have worse accuracy and fairness than ours (synthetic data)",
        "Sec. 5.1, Table 1",
        duels_of(TWO_STEP, SYNTHETIC, "accuracy"),
        duels_of(TWO_STEP, SYNTHETIC, "disparity"),
        rule=most_of,
    ),
    by_duels(
        "Ours has similar accuracy to FR-Train (synthetic data)",
        "Sec. 5.1, Table 1",
        duels_of(("fr-train",), SYNTHETIC, "accuracy", slack=SIMILAR),
    ),
    by_duels(
        "Ours is fairer than FR-Train (synthetic data)",
        "Sec. 5.1, Table 1",
        duels_of(("fr-train",), SYNTHETIC, "disparity"),
    ),
    by_duels(
        "As on the synthetic data, ours is more accurate and fairer than LR (COMPAS)",
        "Sec. 5.1, Table 2",
        duels_of(("lr",), COMPAS, "accuracy"),
        duels_of(("lr",), COMPAS, "disparity"),
    ),
    by_duels(
        "As on the synthetic data, ours is fairer than ITLM (COMPAS)",
        "Sec. 5.1, Table 2",
        duels_of(("itlm",), COMPAS, "disparity"),
    ),
    by_duels(
        "As on the synthetic data, ours is more accurate than FB (COMPAS)",
        "Sec. 5.1, Table 2",
        duels_of(("fairbatch",), COMPAS, "accuracy"),
    ),
    ranks_claim(
        "Ours usually has the best or second-best accuracy and fairness of the fair and robust methods (COMPAS)",
        "Sec. 5.1, Table 2",
        COMPAS,
    ),
    by_duels(
        "FR-Train, with its clean validation set, is far more accurate than ours (COMPAS)",
        "Sec. 5.1, Table 2",
        duels_of(("fairsieve",), COMPAS, "accuracy", method="fr-train"),
    ),
    by_duels(
        "FR-Train loses accuracy as its validation set gets less clean: clean, cleaned by ITLM, noisy",
        "Sec. 5.2, Table 3",
        _validation_duels("clean", "cleaned", "accuracy"),
        _validation_duels("cleaned", "noisy", "accuracy"),
    ),
    by_duels(
        "Ours is comparable to FR-Train with a noisy validation set cleaned by ITLM",
        "Sec. 5.2, Table 3",
        _ours_against_cleaned("accuracy", SIMILAR),
        _ours_against_cleaned("disparity", SIMILAR),
    ),
    by_duels(
        "Ours is faster than FR-Train (synthetic data)",
        "Sec. 5.2, Table 4",
        _seconds_duel("fairsieve", "fr-train", "synthetic"),
    ),
    by_duels(
        "Ours is a bit slower than FR-Train (COMPAS)",
        "Sec. 5.2, Table 4",
        _seconds_duel("fr-train", "fairsieve", "compas"),
    ),
    *(
        claim
        for source, fairness in (
            ("Sec. 5.3, Fig. 3", "demographic_parity"),
            ("Sec. B.6, Fig. 6", "equalized_odds"),
        )
        for claim in (
            by_duels(
                "At every noise rate from 10 % to 20 % ours is more accurate and fairer than LR and ITLM (synthetic "
                "data)",
                source,
                rate_duels(("lr", "itlm"), fairness, "accuracy"),
                rate_duels(("lr", "itlm"), fairness, fairness),
                telling=tell_rates,
            ),
            by_duels(
                "At noise rates from 10 % to 20 % ours is fairer than FR-Train (synthetic data)",
                source,
                rate_duels(("fr-train",), fairness, fairness),
                telling=tell_rates,
                rule=most_of,
            ),
            by_duels(
                "At noise rates from 10 % to 20 % FR-Train is more accurate than ours (synthetic data)",
                source,
                reversed_duels(rate_duels(("fr-train",), fairness, "accuracy")),
                telling=tell_rates,
                rule=most_of,
            ),
        )
    ),
    *(
        by_duels(
            f"Without {part}, fairness is worse ({where})",
            "Sec. 5.4, Table 5",
            duels_of((method,), columns, "disparity"),
        )
        for part, method in ABLATIONS.items()
        for where, columns in ABLATION_COLUMNS.items()
    ),
    by_duels(
        "(ITLM+Penalty)→FB and (ITLM+Penalty)→Penalty are more accurate and fairer than LR (synthetic data)",
        "Sec. B.3, Table 6",
        *(duels_of(("lr",), SYNTHETIC, "accuracy", method=method) for method in OTHER_TWO_STEP),
        *(duels_of(("lr",), SYNTHETIC, "disparity", method=method) for method in OTHER_TWO_STEP),
        rule=most_of,
    ),
    by_duels(
        "(ITLM+Penalty)→FB and (ITLM+Penalty)→Penalty are less accurate and less fair than ours (synthetic data)",
        "Sec. B.3, Table 6",
        duels_of(OTHER_TWO_STEP, SYNTHETIC, "accuracy"),
        duels_of(OTHER_TWO_STEP, SYNTHETIC, "disparity"),
    ),
    Claim(
        "When accuracy is similar, ours is usually fairer than FR-Train (synthetic data)",
        "Sec. B.4, Fig. 5",
        ITEMS["figure5"].trials,
        fairer_at_equal_accuracy,
    ),
    Claim("FR-Train's trade-off curve is noisy", "Sec. B.4, Fig. 5", ITEMS["figure5"].trials, wider_spread),
    ranks_claim(
        "Ours has the best or second-best accuracy and fairness of the fair and robust methods (Adult)",
        "Sec. B.5, Table 7",
        ADULT,
    ),
    by_duels(
        "Ours has similar accuracy to FR-Train (Adult)",
        "Sec. B.5, Table 7",
        duels_of(("fr-train",), ADULT, "accuracy", slack=SIMILAR),
    ),
    by_duels(
        "Ours is fairer than FR-Train (Adult)",
        "Sec. B.5, Table 7",
        duels_of(("fr-train",), ADULT, "disparity"),
    ),
)
