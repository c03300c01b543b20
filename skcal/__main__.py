"""``python -m skcal``: estimate and test the calibration of predictions."""

import sys

from skcal.cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
