"""Write formulas as MathML, which browsers draw themselves: no script, no request, no font to load."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml


def _inline(writer: Any, node: nodes.math) -> None:
    """Write a formula inside a line of text."""
    writer.body.append(latex2mathml.tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    code = node.astext().strip()
    if "\\\\" in code and "\\begin" not in code:
        code = f"\\begin{{align*}}{code}\\end{{align*}}"
    formula = latex2mathml.tex2mathml(code, as_block=True)
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    writer.body.append(f"{formula}</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the writers."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
