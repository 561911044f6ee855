"""A fitted linear model in other libraries: stored, converted, explained without fairsieve."""

import numpy as np
import pytest

from fairsieve import FairRobustClassifier
from fairsieve.data import make_synthetic


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def model(request):
    data = make_synthetic(400, seed=0)
    labels = data.labels if request.param == 2 else np.digitize(data.features[:, 0], [-1, 1])
    made = FairRobustClassifier(clean_ratio=0.9)
    made.features = data.features.astype(np.float64)
    return made.fit(made.features, labels, sensitive_features=data.groups)


def test_scikit_learns_own_model_predicts_the_same(model):
    made = model.to_sklearn()
    assert type(made).__module__.startswith("sklearn.")
    assert (made.predict(model.features) == model.predict(model.features)).all()
    assert made.predict_proba(model.features) == pytest.approx(model.predict_proba(model.features))
    assert made.coef_ == pytest.approx(model.coef_)


def test_skops_stores_it(model):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    text = skops.dumps(model.to_sklearn())
    assert skops.get_untrusted_types(data=text) == []
    assert (skops.loads(text).predict(model.features) == model.predict(model.features)).all()


def test_skl2onnx_converts_it(model):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    features = model.features.astype(np.float32)
    converted = skl2onnx.to_onnx(model.to_sklearn(), features[:1], options={"zipmap": False})
    session = runtime.InferenceSession(converted.SerializeToString())
    labels, chances = session.run(None, {session.get_inputs()[0].name: features})
    assert np.mean(labels == model.predict(features)) > 0.99
    assert chances == pytest.approx(model.predict_proba(features), abs=1e-4)


def test_shap_explains_it(model):
    shap = pytest.importorskip("shap", reason="shap is not installed")
    explained = shap.LinearExplainer(model.to_sklearn(), model.features)(model.features[:5])
    total = explained.values.sum(axis=1) + explained.base_values
    assert total == pytest.approx(model.decision_function(model.features[:5]), abs=1e-6)


@pytest.mark.filterwarnings("ignore")  # MLflow and what it imports warn of their own affairs
def test_mlflow_stores_it_in_its_default_format(model, tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed", minversion="2.0")
    folder = tmp_path / "model"
    mlflow.sklearn.save_model(model.to_sklearn(), folder)
    expected = model.predict(model.features)
    assert (mlflow.sklearn.load_model(folder).predict(model.features) == expected).all()
    assert (mlflow.pyfunc.load_model(str(folder)).predict(model.features) == expected).all()
