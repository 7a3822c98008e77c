"""What was seen: series and layer conversions from the tables of a run."""
