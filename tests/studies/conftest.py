"""Studies read what tests share, and the battery."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS), str(TESTS / "battery"), str(TESTS / "hypothesis_tests")]
