"""Studies: a question, put to a network again and again, and answered with its uncertainty."""
