"""The parts of :mod:`skcal.report`: numbers, comparison, rows of tables, HTML."""
