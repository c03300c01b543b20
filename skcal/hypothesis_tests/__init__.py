"""Tests of H0 "calibrated in this notion": functions that return a frozen result.

Which test? Share of rejections at level 5 %, canonical calibration unless said, C = 10 classes,
p ~ Dir(0.1), n = 250; M1 is calibrated, M2 mixes labels of one class into a share π of the samples,
and T = 1.2 is a temperature: p ∝ π^T for labels of π ~ Dir(0.1). 2,000 data sets for closed forms,
1,000 (M1) and 300 (others) for resampled ones; of M1 and M2 also for Kolmogorov-Smirnov and Kuiper,
and 300 for CME:

======================================== ======= ============ =========== ============ =======
test                                     M1      M2, π = 0.05 M2, π = 0.1 M2, π = 0.25  T = 1.2
======================================== ======= ============ =========== ============ =======
calibration_test                         5.8 %   97 %         100 %       100 %         57 %
calibration_test, confidence             4.9 %   31 %         67 %        100 %         37 %
Monte Carlo, SKCE (exact level)          5.0 %   48 %         97 %        100 %         12 %
Monte Carlo, ECE, 10 bins a class        5.3 %   50 %         93 %        100 %         62 %
Monte Carlo, ECE, median-variance        5.5 %   30 %         79 %        100 %         27 %
Monte Carlo, CME, 10 locations           5.5 %   38 %         81 %        100 %         18 %
Monte Carlo, risk of matrix scaling      3.5 %   11 %         35 %        99 %          11 %
SKCE, quadratic bootstrap (asymptotic)   4.3 %   43 %         96 %        100 %         6 %
SKCE, spectral (asymptotic)              4.2 %   40 %         95 %        100 %         4 %
SKCE, blocks of √n (asymptotic)          5.0 %   11 %         52 %        100 %         6 %
SKCE, linear (asymptotic)                4.0 %   5 %          15 %        85 %          6 %
SKCE, distribution-free (bounds)         0 %     0 %          0 %         0 %           0 %
CME, Hotelling's F (asymptotic)          5.7 %   26 %         60 %        97 %          8 %
CME, χ² (asymptotic)                     6.3 %   28 %         61 %        97 %          8 %
Kolmogorov-Smirnov, confidence           5.2 %   14 %         43 %        99 %          34 %
Kuiper, confidence (asymptotic)          4.7 %   12 %         44 %        100 %         36 %
Spiegelhalter, confidence (asymptotic)   5.1 %   25 %         67 %        100 %         47 %
Hosmer-Lemeshow, confidence (asymptotic) 5.2 %   23 %         59 %        100 %         28 %
Cox, confidence (asymptotic)             6.4 %   24 %         67 %        100 %         39 %
======================================== ======= ============ =========== ============ =======

So: ``calibration_test``, which combines several tests (its own table compares it with ``skce_test``
and ``scan_test``) and decides the verdict of reports; for a single statistic, ``monte_carlo_test``
or ``skce_test`` with their defaults; ``skce_test(method="asymptotic")`` where n is too large for
them; ``risk_test`` against an alternative that you can name. Levels and powers come from
``tests/studies/errors_of_tests.py``.
"""

from skcal.hypothesis_tests.bias_curve import BiasCurve, bias_curve
from skcal.hypothesis_tests.classical import (
    cox_test,
    hosmer_lemeshow_test,
    spiegelhalter_test,
)
from skcal.hypothesis_tests.comparison import ComparisonResult, compare_calibration
from skcal.hypothesis_tests.equivalence import (
    EquivalenceTestResult,
    equivalence_test,
    equivalence_tests,
)
from skcal.hypothesis_tests.error_interval import ErrorDifference, calibration_error_interval
from skcal.hypothesis_tests.joint import JointTestResult, calibration_test
from skcal.hypothesis_tests.kolmogorov_smirnov import kolmogorov_smirnov_test
from skcal.hypothesis_tests.mean_embedding import mean_embedding_test
from skcal.hypothesis_tests.monte_carlo import monte_carlo_test
from skcal.hypothesis_tests.result import CalibrationTestResult, adjust_pvalues
from skcal.hypothesis_tests.risk import risk_test
from skcal.hypothesis_tests.scan import ScanRange, ScanTestResult, scan_test
from skcal.hypothesis_tests.segments import Segment, SegmentTestResult, segment_test
from skcal.hypothesis_tests.skce import skce_test

__all__ = [
    "BiasCurve",
    "CalibrationTestResult",
    "ComparisonResult",
    "EquivalenceTestResult",
    "ErrorDifference",
    "JointTestResult",
    "ScanRange",
    "ScanTestResult",
    "Segment",
    "SegmentTestResult",
    "adjust_pvalues",
    "bias_curve",
    "calibration_error_interval",
    "calibration_test",
    "compare_calibration",
    "cox_test",
    "equivalence_test",
    "equivalence_tests",
    "hosmer_lemeshow_test",
    "kolmogorov_smirnov_test",
    "mean_embedding_test",
    "monte_carlo_test",
    "risk_test",
    "scan_test",
    "segment_test",
    "skce_test",
    "spiegelhalter_test",
]
