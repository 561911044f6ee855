"""What is published: addresses that agree, workflows that name commits, versions of the site, notes of a release."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="an archive of the sources has no workflows")


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_by_commit(path):
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert used
    for action in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", action), action


def test_an_action_has_one_commit_everywhere():
    used = {line for path in WORKFLOWS for line in re.findall(r"uses: (.*)", path.read_text("utf-8"))}
    assert len({line.partition("@")[0] for line in used}) == len(used)


def test_nothing_may_write_but_the_jobs_that_must():
    for path in WORKFLOWS:
        top = path.read_text(encoding="utf-8").partition("\njobs:")[0]
        told = re.search(r"^permissions: \{\}|^permissions:\n  contents: read\n", top, flags=re.MULTILINE)
        assert told, path.name


@pytest.mark.parametrize(("name", "needed"), [
    ("run", PROJECT["dependencies"] + PROJECT["optional-dependencies"]["plot"]),
    ("build", ["build", "hatchling", "twine"]),
    ("test", PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]),
])  # fmt: skip
def test_what_a_release_is_made_and_tried_with_is_named_by_hash(name, needed):
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    text = (ROOT / ".ci" / f"requirements-{name}.txt").read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"\n(?! )", text) if not entry.startswith("#") and entry]
    assert all("--hash=sha256:" in entry for entry in entries)
    pinned = dict(re.match(r"(\S+)==(\S+)", entry).groups() for entry in entries)
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    elsewhere = {canonicalize_name(line.partition("==")[0]): line.partition("==")[2] for line in lines}
    assert not {one: pinned[one] for one in pinned if elsewhere.get(one, pinned[one]) != pinned[one]}
    for requirement in map(Requirement, needed):
        assert pinned[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_addresses_agree():
    urls = PROJECT["urls"]
    home = urls["Homepage"].removeprefix("https://github.com/")
    owner, name = home.split("/")
    assert urls["Documentation"] == f"https://{owner}.github.io/{name}" == tool("place_docs").BASE
    texts = [path for path in ROOT.glob("*") if path.suffix in (".md", ".cff")]
    texts += [*(ROOT / ".github").rglob("*.yml"), ROOT / "docs" / "conf.py"]
    for path in texts:
        text = path.read_text(encoding="utf-8")
        assert not set(re.findall(r"github\.com/(fairsieve/[\w-]+)", text)) - {home}, path.name
        sites = set(re.findall(r"https://(\w+\.github\.io/\w+)", text))
        assert sites <= {f"{owner}.github.io/{name}"}, path.name


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, flags=re.MULTILINE)[1] == PROJECT["version"]
    assert tool("release_notes").notes((ROOT / "CHANGELOG.md").read_text("utf-8"), PROJECT["version"])


def test_notes_of_a_version_end_where_the_next_begins():
    notes = tool("release_notes").notes
    text = "# Changelog\n\n## [0.3.0]\n\nnew\n\n### Added\n\n- this\n\n## [0.2.0]\n\nold\n"
    assert notes(text, "0.3.0") == "new\n\n### Added\n\n- this"
    assert notes(text, "0.2.0") == "old"
    with pytest.raises(SystemExit, match=r"no part for version 0\.9\.0"):
        notes(text, "0.9.0")


def test_versions_of_the_site_stand_side_by_side(tmp_path):
    place = tool("place_docs").place
    (tmp_path / "site" / "_static").mkdir(parents=True)
    (tmp_path / "site" / "index.html").write_text("site")
    pages = tmp_path / "pages"
    pages.mkdir()
    for version in ("dev", "v0.9.0", "v0.10.0", "dev"):
        place(tmp_path / "site", pages, version)
    listed = json.loads((pages / "switcher.json").read_text())
    assert [entry["version"] for entry in listed] == ["0.10.0", "0.9.0", "dev"]
    assert [entry.get("preferred", False) for entry in listed] == [True, False, False]
    assert "url=0.10.0/" in (pages / "index.html").read_text()
    assert (pages / "dev" / "index.html").read_text() == "site"


def test_llms_txt_leads_to_pages_that_exist():
    text = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
    pages = re.findall(rf"\({re.escape(PROJECT['urls']['Documentation'])}/dev/(.*?)\.html\)", text)
    assert len(pages) == text.count("](") >= 10
    for page in pages:
        assert (ROOT / "docs" / f"{page}.md").is_file(), page
