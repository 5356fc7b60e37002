"""How the site is built: `python -m sphinx -W --keep-going docs FOLDER`.

Nothing is fetched: neither at build time nor by the pages when they are read.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# The directives of the reference pages lie beside this file.
sys.path.insert(0, str(Path(__file__).parent))

from t2t_repro import __version__

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

html_theme = "furo"
html_title = f"t2t_repro {__version__}"
html_copy_source = False
html_show_sphinx = False
