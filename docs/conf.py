"""Sphinx configuration of the site: `python -m sphinx -W --keep-going docs FOLDER`.

Neither the build nor the pages download anything. `-D live_model=MODEL_DIR` adds a page
in which that model translates.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# reference_directives.py is in the same folder.
sys.path.insert(0, str(Path(__file__).parent))

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from t2t_repro import __version__, visualize
from t2t_repro.system.errors import UserError

project = "t2t_repro"
author = "the authors of t2t_repro"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "reference_directives",
]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
# `name` in a docstring is code, as in Markdown.
default_role = "code"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_numpy_docstring = False
# Otherwise the fields of a NamedTuple would be described twice.
napoleon_use_ivar = True
# The Returns sections have names of values, not types.
napoleon_use_rtype = False
napoleon_custom_sections = [("Call arguments", "params_style"), "Reference", "Source"]


def setup(app: Sphinx) -> None:
    """Registers the option `live_model`, a model directory (default: none)."""
    app.add_config_value("live_model", "", "html", str)
    app.connect("builder-inited", write_live_page)


def write_live_page(app: Sphinx) -> None:
    """Writes the page of `live_model`, if set; the first page links to it."""
    if app.config.live_model and app.builder.format == "html":
        flags = ("--model_dir", app.config.live_model)
        output = str(Path(app.outdir) / "live.html")
        try:
            visualize.main(["--live", *flags, "--output", output])
        except UserError as error:
            raise ExtensionError(f"live_model: {error}") from error
        app.tags.add("live_page")


html_theme = "furo"
html_title = f"t2t_repro {__version__}"
html_copy_source = False
html_show_sphinx = False
