"""How the site is built: `python -m sphinx -W --keep-going docs FOLDER`.

Nothing is fetched: neither at build time nor by the pages when they are read. With
`-D live_model=MODEL_DIR` the site has a page in which that model translates.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# The directives of the reference pages lie beside this file.
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
# `name` in a docstring is code, as it is in Markdown.
default_role = "code"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_numpy_docstring = False
# Otherwise the fields of a NamedTuple are described twice.
napoleon_use_ivar = True
# What a function returns is described by names here, not by types.
napoleon_use_rtype = False
napoleon_custom_sections = [("Call arguments", "params_style"), "Reference", "Source"]


def setup(app: Sphinx) -> None:
    """Lets `live_model` name a directory of a trained model, or none."""
    app.add_config_value("live_model", "", "html", str)
    app.connect("builder-inited", write_live_page)


def write_live_page(app: Sphinx) -> None:
    """Writes the page of the model, if one is given, to which the first page links."""
    if app.config.live_model and app.builder.format == "html":
        flags = ("--model_dir", app.config.live_model, "--text", "half past four")
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
