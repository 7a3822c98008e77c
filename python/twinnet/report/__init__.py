"""What is shown: the text summary, the page, figures and tables of a study."""
