"""``python -m skcal``: the options, the commands and the files that they read."""
