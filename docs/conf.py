"""Sphinx: what `tools/build_site.py` has put together in `build/site-source`, as pages. `make docs` calls both."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, os.environ.get("FAIROPT_TOOLS", str(HERE.parent / "tools")))
import docstring_text  # noqa: E402

import fairopt  # noqa: E402

project = "fairopt"
author = "The fairopt authors"
version = release = fairopt.__version__
copyright = author

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "jupyter_execute", "examples", "gallery/*.ipynb", "gallery/*.py", "gallery/*.zip"]
suppress_warnings = ["config.cache"]
html_theme = "furo"
html_title = f"fairopt {version}"
html_static_path = ["_static"]
html_css_files = ["fairopt.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
#: Formulas without a network, where `make docs` could get MathJax.
mathjax_path = "mathjax/tex-svg.js" if (HERE / "_static" / "mathjax" / "tex-svg.js").exists() else None
if mathjax_path is None:
    mathjax_path = "https://cdn.jsdelivr.net/npm/mathjax@4/tex-svg.js"

#: Speech of formulas is a worker with files of its own, which pages from a disk may not load.
_OFF = {"speech": False, "braille": False}
mathjax4_config = {"options": {"enableSpeech": False, "enableBraille": False, "menuOptions": {"settings": _OFF}}}

source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_fence_as_directive = ["math"]
#: What a notebook shows is kept until its code or fairopt's changes; FAIROPT_DOCS_NOTEBOOKS=off leaves outputs out.
nb_execution_mode = os.environ.get("FAIROPT_DOCS_NOTEBOOKS", "cache")
nb_execution_cache_path = str(HERE.parent / "notebook-cache")
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True

autodoc_typehints = "none"
autodoc_preserve_defaults = True  # as they are written, not forty alphas
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
default_role = "code"


def _picture(block: Any, variables: dict[str, Any], options: dict[str, Any]) -> str:
    """What a block of an example calls `figure`, as a picture: fairopt's figures belong to no window."""
    from sphinx_gallery.scrapers import figure_rst

    drawn = variables["example_globals"].pop("figure", None)
    if drawn is None:
        return ""
    path = next(variables["image_path_iterator"])
    drawn.savefig(path, dpi=130)
    return str(figure_rst([path], options["src_dir"]))


sphinx_gallery_conf = {
    "image_scrapers": (_picture,),
    "capture_repr": (),
    "examples_dirs": [str(HERE / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "write_computation_times": False,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}


def setup(app: Any) -> None:
    """Docstrings as fairopt writes them."""
    app.connect("autodoc-process-docstring", docstring_text.process, priority=100)  # before numpydoc
