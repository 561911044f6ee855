"""The paper's claims, in its order, and the verdicts on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fairsieve.paper.claims.evidence import (
    FAIR_AND_ROBUST,
    OURS,
    PUBLISHED,
    SIMILAR,
    Answer,
    Claim,
    claim_by_pairings,
    fairer_at_equal_accuracy,
    growing_gain,
    highest_loss,
    ranks_claim,
    rate_pairings,
    reversed_pairings,
    smallest_set,
    wider_spread,
)
from fairsieve.paper.claims.pairwise import OUTCOMES, Pairing, make_pairings, on_the_whole
from fairsieve.paper.reproduce.experiments import Experiment
from fairsieve.paper.reproduce.published import paper_tables
from fairsieve.paper.reproduce.results import Results
from fairsieve.paper.reproduce.targets import (
    ITEMS,
    compas_rate_experiments,
    plain_compas,
    trade_off_experiments,
)
from fairsieve.report.document import Verdict

__all__ = ["CLAIMS", "Judgement", "judgements", "verdicts"]

SYNTHETIC, COMPAS, ADULT = (paper_tables()[table].columns[:4] for table in (1, 2, 7))
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


@dataclass(frozen=True)
class Judgement:
    """A claim, and what the records say of it: on fresh draws or splits, and on the authors' draw.

    ``ours`` and ``authors_ours`` are the same with our FR-Train in place of the published one, where it plays a part.
    """

    claim: Claim
    fresh: Answer
    authors: Answer | None = None
    ours: Answer | None = None
    authors_ours: Answer | None = None


def judgements(fresh: Results, authors: Results | None = None) -> list[Judgement]:
    """Judge every claim whose runs are there."""
    found = []
    for claim in CLAIMS:
        if not claim.can_be_checked(fresh):
            continue
        synthetic = authors is not None and claim.is_synthetic
        found.append(
            Judgement(
                claim,
                claim.check(fresh),
                _answer(claim, authors) if synthetic else None,
                _answer(claim.other, fresh),
                _answer(claim.other, authors) if synthetic else None,
            )
        )
    return found


def _answer(claim: Claim | None, results: Results | None) -> Answer | None:
    """Check a claim if there is one, and its runs are there."""
    if claim is None or results is None or not claim.can_be_checked(results):
        return None
    return claim.check(results)


def verdicts(fresh: Results, authors: Results | None = None) -> list[Verdict]:
    """Return the verdicts for the page; fresh draws decide what is shown first."""
    found = []
    for judgement in judgements(fresh, authors):
        where = "Fresh draws" if judgement.claim.is_synthetic else "Splits"
        parts = [(where, judgement.fresh, judgement.ours)]
        if judgement.authors is not None:
            parts.append(("The authors' draw", judgement.authors, judgement.authors_ours))
        sentences = []
        for protocol, answer, ours in parts:
            against = " (FR-Train as published)" if judgement.claim.other is not None else ""
            sentences.append(f"{protocol}{against}: {OUTCOMES[answer.holds]}; {answer.summary}.")
            if ours is not None:
                sentences.append(f"{protocol} (our FR-Train): {OUTCOMES[ours.holds]}; {ours.summary}.")
        found.append(
            Verdict(judgement.claim.text, judgement.claim.source, judgement.fresh.holds, " ".join(sentences))
        )
    return found


def _fr_train(validation: str, fairness: str) -> Experiment:
    return Experiment(PUBLISHED, "compas", fairness=fairness, validation=validation)  # type: ignore[arg-type]


def _validation_pairings(better: str, worse: str, measure: str) -> list[Pairing]:
    """FR-Train with one validation set against another (Table 3)."""
    return [
        Pairing(
            _fr_train(better, column.fairness),
            _fr_train(worse, column.fairness),
            column.fairness if measure == "disparity" else measure,
        )
        for column in paper_tables()[3].columns
    ]


def _ours_against_cleaned(measure: str, slack: float = 0) -> list[Pairing]:
    """Ours against FR-Train in the realistic scenario (2) of Table 3."""
    return [
        Pairing(
            Experiment("fairsieve", "compas", fairness=column.fairness),
            _fr_train("cleaned", column.fairness),
            column.fairness if measure == "disparity" else measure,
            slack,
        )
        for column in paper_tables()[3].columns
    ]


def _seconds_pairing(faster: str, slower: str, data: str) -> list[Pairing]:
    return [Pairing(Experiment(faster, data), Experiment(slower, data), "cpu_seconds")]


def _curve_claim(text: str, make: Callable[[str], Callable[[Results], Answer]]) -> Claim:
    """Make a claim about the curves of Fig. 5."""
    claims = [
        Claim(
            text,
            "Sec. B.4, Fig. 5",
            tuple(
                experiment
                for method in ("fairsieve", rival)
                for noise in ("label", "group-targeted")
                for experiment in trade_off_experiments(method, noise)
            ),
            make(rival),
        )
        for rival in (PUBLISHED, OURS)
    ]
    return replace(claims[0], other=claims[1])


CLAIMS = (
    claim_by_pairings(
        "Fairness is better than or comparable to the state of the art, FR-Train, on synthetic and real data",
        "Abstract",
        make_pairings((PUBLISHED,), (*SYNTHETIC, *COMPAS, *ADULT), "disparity", slack=SIMILAR),
        rule=on_the_whole,
    ),
    claim_by_pairings(
        "Robustness (accuracy) is better than or comparable to the state of the art, FR-Train, on synthetic and real "
        "data",
        "Abstract",
        make_pairings((PUBLISHED,), (*SYNTHETIC, *COMPAS, *ADULT), "accuracy", slack=SIMILAR),
        rule=on_the_whole,
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
        ITEMS["figure2"].experiments,
        growing_gain,
    ),
    *(
        claim_by_pairings(
            f"ITLM worsens {short} disparity against LR at every noise rate (COMPAS)",
            f"Sec. 2, Fig. 2{letter}",
            [
                Pairing(lr, itlm, notion)
                for lr, itlm in zip(
                    compas_rate_experiments("lr"), compas_rate_experiments("itlm"), strict=True
                )
                if lr.rate > 0
            ],
        )
        for short, letter, notion in (("EO", "b", "equalized_odds"), ("DP", "c", "demographic_parity"))
    ),
    claim_by_pairings(
        "Ours has the lowest disparity of the fair and robust methods (synthetic data)",
        "Sec. 5.1, Table 1",
        make_pairings(FAIR_AND_ROBUST, SYNTHETIC, "disparity"),
    ),
    claim_by_pairings(
        "Ours has the highest accuracy of the fair and robust methods (synthetic data)",
        "Sec. 5.1, Table 1",
        make_pairings(FAIR_AND_ROBUST, SYNTHETIC, "accuracy"),
    ),
    claim_by_pairings(
        "Ours has higher accuracy than LR, and lower EO and DP disparity (synthetic data)",
        "Sec. 5.1, Table 1",
        make_pairings(("lr",), SYNTHETIC, "accuracy"),
        make_pairings(("lr",), SYNTHETIC, "disparity"),
    ),
    claim_by_pairings(
        "Ours is fairer than ITLM (synthetic data)",
        "Sec. 5.1, Table 1",
        make_pairings(("itlm",), SYNTHETIC, "disparity"),
    ),
    claim_by_pairings(
        "Ours is at least as accurate as ITLM (synthetic data)",
        "Sec. 5.1, Table 1",
        make_pairings(("itlm",), SYNTHETIC, "accuracy"),
    ),
    claim_by_pairings(
        "FB's accuracy is noticeably low: below LR's (synthetic data)",
        "Sec. 5.1, Table 1",
        make_pairings(("fairbatch",), SYNTHETIC, "accuracy", method="lr"),
    ),
    claim_by_pairings(
        "Ours is more accurate than FB (synthetic data)",
        "Sec. 5.1, Table 1",
        make_pairings(("fairbatch",), SYNTHETIC, "accuracy"),
    ),
    claim_by_pairings(
        "ITLM→FB and ITLM→Penalty usually have worse accuracy and fairness than ours (synthetic data)",
        "Sec. 5.1, Table 1",
        make_pairings(TWO_STEP, SYNTHETIC, "accuracy"),
        make_pairings(TWO_STEP, SYNTHETIC, "disparity"),
        rule=on_the_whole,
    ),
    claim_by_pairings(
        "Ours has similar accuracy to FR-Train (synthetic data)",
        "Sec. 5.1, Table 1",
        make_pairings((PUBLISHED,), SYNTHETIC, "accuracy", slack=SIMILAR),
    ),
    claim_by_pairings(
        "Ours is fairer than FR-Train (synthetic data)",
        "Sec. 5.1, Table 1",
        make_pairings((PUBLISHED,), SYNTHETIC, "disparity"),
    ),
    claim_by_pairings(
        "As on the synthetic data, ours is more accurate and fairer than LR (COMPAS)",
        "Sec. 5.1, Table 2",
        make_pairings(("lr",), COMPAS, "accuracy"),
        make_pairings(("lr",), COMPAS, "disparity"),
    ),
    claim_by_pairings(
        "As on the synthetic data, ours is fairer than ITLM (COMPAS)",
        "Sec. 5.1, Table 2",
        make_pairings(("itlm",), COMPAS, "disparity"),
    ),
    claim_by_pairings(
        "As on the synthetic data, ours is more accurate than FB (COMPAS)",
        "Sec. 5.1, Table 2",
        make_pairings(("fairbatch",), COMPAS, "accuracy"),
    ),
    ranks_claim(
        "Ours usually has the best or second-best accuracy and fairness of the fair and robust methods (COMPAS)",
        "Sec. 5.1, Table 2",
        COMPAS,
    ),
    claim_by_pairings(
        "FR-Train, with its clean validation set, is far more accurate than ours (COMPAS)",
        "Sec. 5.1, Table 2",
        make_pairings(("fairsieve",), COMPAS, "accuracy", method=PUBLISHED),
    ),
    claim_by_pairings(
        "FR-Train loses accuracy as its validation set gets less clean: clean, cleaned by ITLM, noisy",
        "Sec. 5.2, Table 3",
        _validation_pairings("clean", "cleaned", "accuracy"),
        _validation_pairings("cleaned", "noisy", "accuracy"),
    ),
    claim_by_pairings(
        "Ours is comparable to FR-Train with a noisy validation set cleaned by ITLM",
        "Sec. 5.2, Table 3",
        _ours_against_cleaned("accuracy", SIMILAR),
        _ours_against_cleaned("disparity", SIMILAR),
    ),
    claim_by_pairings(
        "Ours is faster than FR-Train (synthetic data)",
        "Sec. 5.2, Table 4",
        _seconds_pairing("fairsieve", PUBLISHED, "synthetic"),
    ),
    claim_by_pairings(
        "Ours is a bit slower than FR-Train (COMPAS)",
        "Sec. 5.2, Table 4",
        _seconds_pairing(PUBLISHED, "fairsieve", "compas"),
    ),
    *(
        claim
        for source, fairness in (
            ("Sec. 5.3, Fig. 3", "demographic_parity"),
            ("Sec. B.6, Fig. 6", "equalized_odds"),
        )
        for claim in (
            claim_by_pairings(
                "At every noise rate from 10 % to 20 % ours is more accurate and fairer than LR and ITLM (synthetic "
                "data)",
                source,
                rate_pairings(("lr", "itlm"), fairness, "accuracy"),
                rate_pairings(("lr", "itlm"), fairness, fairness),
            ),
            claim_by_pairings(
                "At noise rates from 10 % to 20 % ours is fairer than FR-Train (synthetic data)",
                source,
                rate_pairings((PUBLISHED,), fairness, fairness),
                rule=on_the_whole,
            ),
            claim_by_pairings(
                "At noise rates from 10 % to 20 % FR-Train is more accurate than ours (synthetic data)",
                source,
                reversed_pairings(rate_pairings((PUBLISHED,), fairness, "accuracy")),
                rule=on_the_whole,
            ),
        )
    ),
    *(
        claim_by_pairings(
            f"Without {part}, fairness is worse ({where})",
            "Sec. 5.4, Table 5",
            make_pairings((method,), columns, "disparity"),
        )
        for part, method in ABLATIONS.items()
        for where, columns in ABLATION_COLUMNS.items()
    ),
    claim_by_pairings(
        "(ITLM+Penalty)→FB and (ITLM+Penalty)→Penalty are more accurate and fairer than LR (synthetic data)",
        "Sec. B.3, Table 6",
        *(make_pairings(("lr",), SYNTHETIC, "accuracy", method=method) for method in OTHER_TWO_STEP),
        *(make_pairings(("lr",), SYNTHETIC, "disparity", method=method) for method in OTHER_TWO_STEP),
        rule=on_the_whole,
    ),
    claim_by_pairings(
        "(ITLM+Penalty)→FB and (ITLM+Penalty)→Penalty are less accurate and less fair than ours (synthetic data)",
        "Sec. B.3, Table 6",
        make_pairings(OTHER_TWO_STEP, SYNTHETIC, "accuracy"),
        make_pairings(OTHER_TWO_STEP, SYNTHETIC, "disparity"),
    ),
    _curve_claim(
        "When accuracy is similar, ours is usually fairer than FR-Train (synthetic data)",
        fairer_at_equal_accuracy,
    ),
    _curve_claim("FR-Train's trade-off curve is noisy", wider_spread),
    ranks_claim(
        "Ours has the best or second-best accuracy and fairness of the fair and robust methods (Adult)",
        "Sec. B.5, Table 7",
        ADULT,
    ),
    claim_by_pairings(
        "Ours has similar accuracy to FR-Train (Adult)",
        "Sec. B.5, Table 7",
        make_pairings((PUBLISHED,), ADULT, "accuracy", slack=SIMILAR),
    ),
    claim_by_pairings(
        "Ours is fairer than FR-Train (Adult)",
        "Sec. B.5, Table 7",
        make_pairings((PUBLISHED,), ADULT, "disparity"),
    ),
)
