"""The site: `make docs` builds it offline, with warnings as errors."""

import logging
import os
import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx_gallery.sorting import ExplicitOrder

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests/extending/parts")]  # the tutorials show the parts of the tests
os.environ.setdefault("OMP_NUM_THREADS", "1")

from idarts import __version__  # noqa: E402

logging.getLogger("idarts").setLevel(logging.WARNING)  # Sphinx shows what its process logs

project, author, copyright = "idarts", "the idarts developers", "the idarts developers. Apache-2.0"
version = release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "tutorials"]
nitpicky = True
nitpick_ignore_regex = [("py:class", ".*")]  # types in signatures: torch's and numpy's pages are not at hand offline
suppress_warnings = ["config.cache"]  # the configuration holds a function

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
default_role = "code"  # docstrings write `names` as Markdown does
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
viewcode_follow_imported_members = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

TUTORIALS = ["own_data", "own_module", "compare_methods", "bilevel_core", "extend", "many_runs"]
sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "learn",
    "filename_pattern": r"\.py$",
    "within_subsection_order": ExplicitOrder([f"{name}.py" for name in TUTORIALS]),
    "abort_on_example_error": True,
    "image_scrapers": (),
    "reset_modules": (),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
}

html_theme = "furo"
html_title = f"idarts {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sphinx = False

_LABEL = re.compile(r"\b(Eq\.|Theorem|Corollary|Algorithm) (\d) of the paper")


def link_to_theory(_app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    """A number of the paper in a docstring becomes a link to its formula; |w| is a size, not a substitution."""
    for place, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            line = re.sub(r"\|(\w+)\|", r"\\|\1\\|", line)  # noqa: PLW2901
        lines[place] = _LABEL.sub(lambda m: f":ref:`{m[0]} <{m[1].rstrip('.').lower()}-{m[2]}>`", line)


def _mathml(node: nodes.math | nodes.math_block, block: bool) -> str:
    return tex2mathml(node.astext(), as_block=block)


def setup(app: Sphinx) -> None:
    """Formulas as MathML, which browsers draw themselves: no JavaScript and no fonts from elsewhere."""

    def inline(self, node):
        self.body.append(_mathml(node, False))
        raise nodes.SkipNode

    def block(self, node):
        self.body.append(f'<div class="formula">{_mathml(node, True)}</div>')
        raise nodes.SkipNode

    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("autodoc-process-docstring", link_to_theory)
