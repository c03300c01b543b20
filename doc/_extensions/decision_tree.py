"""Draw a decision tree as an SVG picture whose leaves are links to pages.

    .. decision-tree:: What do I have, and what do I want to know?

       Predictions and labels
          How wrong are they? -> ece_interval

A wide picture has the branches beside the leaves; screens of a telephone get a narrow one. Colours
are those of the theme, light or dark. A leaf without a page is a warning.
"""

from html import escape
from itertools import count

from docutils import nodes
from sphinx.errors import NoUri
from sphinx.util import docname_join, logging
from sphinx.util.docutils import SphinxDirective

ROW, GAP, FONT = 34, 14, 15
NUMBERS = count()
logger = logging.getLogger(__name__)


class decision_tree(nodes.General, nodes.Element):
    """A question and its branches: ``(text, [(text, page), …])``."""


class DecisionTree(SphinxDirective):
    """Read the branches and their leaves from the indented lines."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        """Return the node."""
        branches = []
        for line in filter(str.strip, self.content):
            text, _, page = (part.strip() for part in line.partition("->"))
            if not page:
                branches.append((text, []))
                continue
            branches[-1][1].append((text, docname_join(self.env.docname, page)))
            if not self.env.doc2path(branches[-1][1][-1][1]).exists():
                logger.warning(
                    "the decision tree leads to no page %s", page, location=self.env.docname
                )
        return [decision_tree(question=self.arguments[0], branches=branches)]


def box(x, y, width, text, kind):
    """Return a box with a text, centred at the height y."""
    return (
        f'<rect class="{kind}" x="{x}" y="{y - ROW / 2 + 3}" width="{width}" '
        f'height="{ROW - 6}" rx="5"/>'
        f'<text class="{kind}" x="{x + 10}" y="{y + FONT / 3}">{escape(text)}</text>'
    )


def curve(x, y, end_x, end_y):
    """Return a line from a box to the next."""
    middle = (x + end_x) / 2
    return f'<path d="M{x},{y} C{middle},{y} {middle},{end_y} {end_x},{end_y}"/>'


def wide(branches, href):
    """Return the picture with the leaves at the right, and its size."""
    lines, boxes, y = [], [], ROW / 2
    height = sum(ROW * len(leaves) + GAP for _, leaves in branches) - GAP
    root = ROW * len(branches[0][1]) / 2
    for text, leaves in branches:
        middle = y + ROW * (len(leaves) - 1) / 2
        lines.append(curve(118, root, 150, middle))
        boxes.append(box(150, middle, 240, text, "branch"))
        for leaf, page in leaves:
            lines.append(curve(390, middle, 420, y))
            boxes.append(f'<a href="{href(page)}">{box(420, y, 330, leaf, "leaf")}</a>')
            y += ROW
        y += GAP
    return "".join([*lines, box(2, root, 116, "I have …", "root"), *boxes]), 752, height


def narrow(branches, href):
    """Return the picture with the leaves below their branch, and its size."""
    lines, boxes, y = [], [box(1, ROW / 2, 116, "I have …", "root")], 1.5 * ROW
    for text, leaves in branches:
        lines.append(f'<path d="M12,{ROW - 3} V{y} H24"/>')
        boxes.append(box(24, y, 322, text, "branch"))
        for number, (leaf, page) in enumerate(leaves, 1):
            lines.append(f'<path d="M34,{y + ROW / 2 - 3} V{y + ROW * number} H46"/>')
            link = box(46, y + ROW * number, 300, leaf, "leaf")
            boxes.append(f'<a href="{href(page)}">{link}</a>')
        y += ROW * (len(leaves) + 1) + GAP
    return "".join([*lines, *boxes]), 348, y - ROW


def visit(self, node):
    """Write both pictures; the style sheet shows one of them."""

    def href(page):
        try:
            return self.builder.get_relative_uri(self.builder.current_docname, page)
        except NoUri:
            return ""

    for layout in (wide, narrow):
        body, width, height = layout(node["branches"], href)
        name = f"decision-tree-{next(NUMBERS)}"
        self.body.append(
            f'<svg class="decision-tree {layout.__name__}" role="group" aria-labelledby="{name}" '
            f'viewBox="0 0 {width} {height:g}" width="{width}" font-size="{FONT}">'
            f'<title id="{name}">{escape(node["question"])}</title>{body}</svg>'
        )
    raise nodes.SkipNode


def skip(self, node):
    """Leave the picture out of what is not HTML."""
    raise nodes.SkipNode


def setup(app):
    """Register the directive."""
    app.add_node(decision_tree, html=(visit, None), text=(skip, None), latex=(skip, None))
    app.add_directive("decision-tree", DecisionTree)
    return {"parallel_read_safe": True}
