"""Settings of the documentation site: ``make docs`` builds it into build/site."""

from __future__ import annotations

import os
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_extensions"), str(ROOT / "src")]
os.environ.setdefault("OMP_NUM_THREADS", "1")

project = "fairsieve"
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))[
    "project"
]["version"]
copyright = "the fairsieve developers, Apache-2.0"
language = "en"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # Our own, in docs/_extensions.
    "command_pages",
    "mathml",
    "page_sources",
    "training_figure",
]
exclude_patterns = [
    "_extensions",
    "_templates",
    "tutorials/GALLERY_HEADER.rst",
    "tutorials/*.ipynb",
]
nitpicky = False
suppress_warnings = [
    "config.cache"
]  # the gallery's settings hold functions, which are not cached

# Links to the reference of other projects. Their inventories are downloaded only when INTERSPHINX=1 is set, so that a
# build without a network neither waits nor warns.
intersphinx_mapping = (
    {
        "numpy": ("https://numpy.org/doc/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "python": ("https://docs.python.org/3", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "torch": ("https://docs.pytorch.org/docs/stable", None),
    }
    if os.environ.get("INTERSPHINX") == "1"
    else {}
)
intersphinx_timeout = 10

# Markdown.
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# Reference.
autosummary_generate = True
autosummary_generate_overwrite = True
autodoc_typehints = "none"  # numpydoc's "Parameters" says them
autodoc_mock_imports = [  # the adapters' pages need no more than their names
    name
    for name in ("accelerate", "lightning", "transformers")
    if find_spec(name) is None
]
autodoc_default_options = {"show-inheritance": False}
templates_path = ["_templates"]
numpydoc_show_class_members = False  # the template lists them
numpydoc_xref_param_type = os.environ.get("INTERSPHINX") == "1"

# Tutorials: Python files, executed once for each state of their source.
sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples" / "tutorials")],
    "gallery_dirs": ["tutorials"],
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "min_reported_time": 1,
    "remove_config_comments": True,
    "copyfile_regex": r".*\.rst",
    "capture_repr": ("_repr_html_", "__repr__"),
    "image_scrapers": ("matplotlib",),
    "image_srcset": ["2x"],
    "reset_modules": ("matplotlib", "page_sources.reset_figures"),
    "write_computation_times": False,
    "backreferences_dir": None,
}
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

# HTML.
html_theme = "pydata_sphinx_theme"
html_title = f"fairsieve {release}"
html_static_path = ["_static"]
html_extra_path = ["llms.txt"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
html_theme_options = {
    "logo": {
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "text": f"fairsieve {release}",
    },
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
if version_shown := os.environ.get("DOCS_VERSION", "").removeprefix("v"):
    # The site in versions, see .github/workflows/docs.yml: a menu leads to the others.
    html_theme_options |= {
        "switcher": {
            "json_url": "https://fairsieve.github.io/fairsieve/switcher.json",
            "version_match": version_shown,
        },
        "check_switcher": False,
        "navbar_end": ["version-switcher", "theme-switcher"],
    }
html_sidebars = {"index": [], "install": [], "quickstart": []}
