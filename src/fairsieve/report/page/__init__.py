"""A document as one HTML file that opens anywhere, offline."""

from fairsieve.report.page.render import render_page, write_page

__all__ = ["render_page", "write_page"]
