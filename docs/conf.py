"""How Sphinx builds these pages: ``python -m sphinx -W -b html docs docs/_build/html``."""

import os
import sys
from pathlib import Path

import django

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from prism_memory import __version__  # noqa: E402

project = "Prism Memory for Django"
author = "The Prism Memory contributors"
copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = project
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # signatures are read, their types in the code
autodoc_use_legacy_class_based = True

nitpicky = True
# No page is fetched to resolve a name, so only this package's own names can be.
nitpick_ignore_regex = [(r"py:.*", r"(?!prism_memory).*")]
