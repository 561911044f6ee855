"""The card's head is what the Hugging Face Hub reads, whatever columns are called."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairsieve import tabular
from fairsieve.data import read_nhanes
from fairsieve.report.text import load_sentences

hub = pytest.importorskip("huggingface_hub")
front_matter = load_sentences("fairsieve.tabular", "sentences.j2").front_matter


def test_the_card_of_a_run_is_a_model_card(tmp_path):
    people = read_nhanes().sample(600, random_state=0)
    asked = {"label": "obese", "sensitive": "sex", "drop": "truth", "positive": "yes"}
    result = tabular.train(people, **asked, max_iter=4, test=0.3)
    folder = result.save(tmp_path / "run")
    text = (folder / "card.md").read_text(encoding="utf-8")
    assert text.startswith("---\n")
    card = hub.ModelCard(text)
    assert card.data.library_name == "sklearn"
    assert card.data.pipeline_tag == "tabular-classification"
    assert {"fairness", "skops"} <= set(card.data.tags)
    measured = {result.metric_type: result.metric_value for result in card.data.eval_results}
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    kept = metrics[metrics["model"]["holds"].split()[0]]
    assert measured["accuracy"] == kept["accuracy"]["value"]
    assert measured["equalized_odds_disparity"] == kept["disparity"]["value"]
    assert card.text.lstrip().startswith("# A model that predicts obese")
    assert hub.ModelCard(str(card)).data.to_dict() == card.data.to_dict()


@given(st.text(min_size=1), st.text(min_size=1), st.booleans())
def test_any_name_can_be_read_again(label, data, compared):
    record = {
        "settings": {"label": label, "data": data, "fairness": "equalized_odds"},
        "model": {"name": "logistic", "file": "model.skops", "holds": "fair model"},
        "fair": {"accuracy": {"value": 0.8}, "disparity": {"value": 0.05}},
        "widest_gap": {"fair": {}} if compared else None,
    }
    read = hub.ModelCard(front_matter(record) + "text").data.to_dict()
    shown = "".join(one if one.isprintable() or ord(one) < 32 else "\ufffd" for one in label)
    assert read["model-index"][0]["name"] == f"logistic model of {shown}"
    assert len(read["model-index"][0]["results"][0]["metrics"]) == 1 + compared
