"""Presentation of a study: the text summary, the page, figures and tables."""
