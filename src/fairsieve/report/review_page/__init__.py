"""A list of rows as one HTML file in which a person answers, row by row, whether a label is right."""

from fairsieve.report.review_page.review_render import ReviewItem, ReviewSheet, render_review

__all__ = ["ReviewItem", "ReviewSheet", "render_review"]
