"""The pages of the site: their code runs, and they describe the files that are written."""

import inspect
import json
import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

import fairsieve
import fairsieve.data
import fairsieve.tabular
from fairsieve import tabular
from fairsieve.data import make_synthetic
from fairsieve.errors import FairsieveWarning

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


PAGES = sorted(path for path in DOCS.rglob("*.md") if "```python\n" in path.read_text("utf-8"))


BLOCK = re.compile(r"(?:<!-- needs (\w+) -->\n)?```(python|text)\n(.*?)```", flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_runs_as_written(page, capsys):
    """Run its blocks in order, up to one that needs a library we do not have; it shows what they print."""
    code, shown = [], []
    for library, kind, block in BLOCK.findall(page.read_text("utf-8")):
        if library and find_spec(library) is None:
            break
        (code if kind == "python" else shown).append(block)
    with warnings.catch_warnings(action="ignore", category=FairsieveWarning):
        exec(compile("\n".join(code), str(page), "exec"), {"__name__": "page"})
    printed = capsys.readouterr().out
    assert all(one.strip("\n") in printed for one in shown)


@pytest.mark.parametrize(("question", "page"), [
    ("Which group is harmed?", "how-to/report.md"),
    ("What do I tell the regulator?", "how-to/regulator.md"),
    ("How do I put it into skorch?", "how-to/skorch.md"),
    ("What does cleanlab do better?", "peers.md"),
])  # fmt: skip
def test_a_question_is_the_heading_of_one_page(question, page):
    """The site's search looks at headings first."""
    heading = re.compile(rf"^#+ {re.escape(question)}", flags=re.MULTILINE)
    found = [path for path in DOCS.rglob("*.md") if heading.search(path.read_text("utf-8"))]
    assert found == [DOCS / page]


def test_the_pages_stay_short():
    """README and all pages have 27,000 words, tables and code included; the paper's results and what is built apart."""
    made = ("reproduction", "generated", "tutorials")
    pages = [path for path in DOCS.rglob("*.md") if path.parent.name not in made]
    pages = [ROOT / "README.md", *(path for path in pages if path.name != "command-line.md")]
    assert sum(len(path.read_text("utf-8").split()) for path in pages) <= 27_000


@pytest.mark.parametrize(
    "module", [fairsieve, fairsieve.data, fairsieve.tabular], ids=lambda module: module.__name__
)
def test_the_reference_lists_public_names_once(module):
    sections = (DOCS / "reference" / "api.md").read_text("utf-8").split("currentmodule:: ")
    mine = "".join(part for part in sections if part.startswith(f"{module.__name__}\n"))
    listed = re.findall(r"^   (\w+)$", mine, flags=re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) <= set(module.__all__)


every_public_name = pytest.mark.parametrize(
    ("module", "name"),
    [(module, name) for module in (fairsieve, fairsieve.data, fairsieve.tabular) for name in module.__all__],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)


@every_public_name
def test_a_public_name_has_an_example(module, name):
    """The doctests run them."""
    assert ">>> " in (inspect.getdoc(getattr(module, name)) or "")


@every_public_name
def test_a_documented_parameter_says_its_default(module, name):
    value = getattr(module, name)
    parts = re.split(r"^(\w+)\n-+$", inspect.getdoc(value) or "", flags=re.MULTILINE)
    described = dict(zip(parts[1::2], parts[2::2], strict=True)).get("Parameters", "")
    for parameter in inspect.signature(value).parameters.values():
        head = re.search(rf"^(\w+, )*{parameter.name}(, \w+)* :.*$", described, flags=re.MULTILINE)
        if head is not None and parameter.default not in (None, inspect.Parameter.empty):
            assert ", default=" in head[0]


def broken_rules(value, schema, root, where="$"):
    """The rules of a JSON schema that a value breaks; of the few kinds that our schemas use."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    kinds = {
        "object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
    }  # fmt: skip
    asked = schema.get("type", [])
    asked = [asked] if isinstance(asked, str) else asked
    fits = any((value is None) if kind == "null" else isinstance(value, kinds[kind]) for kind in asked)
    if asked and not fits:
        yield f"{where} is no {asked}: {value!r}"
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        yield f"{where} is {value!r}"
    if isinstance(value, dict):
        yield from (f"{where} has no {name}" for name in schema.get("required", ()) if name not in value)
        listed, others = schema.get("properties"), schema.get("additionalProperties")
        for name, entry in value.items():
            if listed is not None and others is None and name not in listed:
                yield f"{where}.{name} is not in the schema"
            rule = (listed or {}).get(name, others or {})
            yield from broken_rules(entry, rule, root, f"{where}.{name}")
    if isinstance(value, list):
        for place, entry in enumerate(value):
            yield from broken_rules(entry, schema.get("items", {}), root, f"{where}[{place}]")


def schema(name):
    return json.loads((DOCS / "reference" / "schemas" / f"{name}.schema.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A run on a small table, with answers to some of its labels."""
    folder = tmp_path_factory.mktemp("files")
    drawn = make_synthetic(600, seed=0)
    people = pd.DataFrame(drawn.features[:, :2], columns=["x1", "x2"])
    people["group"], people["label"] = drawn.groups, drawn.labels
    people.to_csv(folder / "people.csv", index=False)
    asked = {"label": "label", "sensitive": "group"}
    answers = tabular.review(folder / "people.csv", rows=40, **asked).save(folder / "review.html")
    review = pd.read_csv(answers, dtype=str)
    review.assign(verified_label=review["given_label"]).to_csv(answers, index=False)
    tabular.train(folder / "people.csv", verified=[answers], **asked).save(folder / "run")
    guessed = people.assign(guess=people["label"], chance=people["x1"].rank(pct=True))
    tabular.audit(guessed, prediction="guess", score="chance", format="ll144", **asked).save(folder / "audit")
    return folder


@pytest.mark.parametrize(("name", "folder"), [("metrics", "run"), ("audit", "audit")])
def test_metrics_follow_their_schema(run_folder, name, folder):
    rules, metrics = schema(name), json.loads((run_folder / folder / "metrics.json").read_text("utf-8"))
    assert list(broken_rules(metrics, rules, rules)) == []
    assert set(rules["properties"]) - set(metrics) <= {"between"}  # runs that are compared
    assert list(broken_rules(metrics | {"seconds": "long"}, rules, rules))


def test_the_files_of_an_audit_are_documented(run_folder):
    page = (DOCS / "reference" / "files.md").read_text("utf-8")
    section = page.partition("## An audit's folder\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `([\w.]+)` \|", section, flags=re.MULTILINE)
    written = {path.name for path in (run_folder / "audit").iterdir()}
    assert written == {name for name in listed if "." in name}


@pytest.mark.parametrize("file", ["run/suspects.csv", "review.csv"])
def test_the_columns_of_a_file_are_documented(run_folder, file):
    page = (DOCS / "reference" / "files.md").read_text("utf-8")
    section = page.partition(f"## {Path(file).name}\n")[2].partition("\n## ")[0]
    names = pd.read_csv(run_folder / file).columns
    own = [name for name in names if name not in ("x1", "x2", "group_", "label_")]
    assert own == re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)


READMES = [*(ROOT / "src").rglob("README.md"), DOCS / "architecture.md", ROOT / "CONTRIBUTING.md"]


def test_the_files_that_readmes_and_recipes_name_are_there():
    """By their path in the repository or the package, or by their name in the folder of the file named before."""
    package = Path(fairsieve.__file__).parent
    for readme in READMES:
        folders = [
            readme.parent, readme.parent, ROOT, package, ROOT / "reproduction" / "fairsieve_reproduction",
        ]  # fmt: skip
        for name in re.findall(r"`([\w/]+\.py)`", readme.read_text("utf-8")):
            named = [folder / name for folder in folders if (folder / name).is_file()]
            assert named, f"{readme}: {name}"
            folders[0] = named[0].parent
