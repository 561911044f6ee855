"""The head of a model card, as the Hugging Face Hub reads it: what the model is, and its measures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_front_matter(record: Mapping[str, Any], stored_by: str = "skops") -> str:
    """Write the head from the record of a run (``metrics.json``): YAML, whose values are written as in JSON.

    No licence is named: it is the user's to choose.

    Examples
    --------
    >>> record = {
    ...     "settings": {"label": "income", "data": "people.csv", "fairness": "equalized_odds"},
    ...     "model": {"name": "logistic", "file": "model.skops", "holds": "fair model"},
    ...     "fair": {"accuracy": {"value": 0.8}, "disparity": {"value": 0.05}},
    ... }
    >>> print(write_front_matter(record).splitlines()[3])
    pipeline_tag: "tabular-classification"
    """
    settings, model = record["settings"], record["model"]
    measures = record[str(model["holds"]).partition(" ")[0]]
    name = Path(str(settings["data"])).name
    results = [
        {
            "task": {"type": "tabular-classification"},
            "dataset": {"name": name, "type": Path(name).stem or "table"},
            "metrics": [
                {"type": "accuracy", "value": measures["accuracy"]["value"], "name": "accuracy"},
                {
                    "type": f"{settings['fairness']}_disparity".replace("-", "_"),
                    "value": measures["disparity"]["value"],
                    "name": "disparity (0 is best)",
                },
            ],
        }
    ]
    fields = {
        "library_name": "sklearn",
        "tags": ["tabular-classification", "fairness", "label-noise", "fairsieve", stored_by],
        "pipeline_tag": "tabular-classification",
        "model_format": stored_by,
        "model_file": model["file"],
        "model-index": [{"name": f"{model['name']} model of {settings['label']}", "results": results}],
    }
    head = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()]
    shown = (
        "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in line) for line in head
    )
    # Who shows it as it is shows no element of a page.
    return "\n".join(["---", *shown, "---", ""]).replace("<", "\\u003c")
