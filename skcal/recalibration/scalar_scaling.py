"""Maps of a single probability by penalised likelihood: splines, Platt, Beta, quadratic."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from scipy.special import expit

from skcal._bins import quantile
from skcal._sklearn_compat import Interval
from skcal.recalibration.features import b_splines
from skcal.recalibration.scaling import PenalizedScaling


class SplineScaling(PenalizedScaling):
    """A cubic spline added to the logit of a single probability, shrunk towards a temperature.

    c(p) = σ(logit(p) / T + s(p)), T the maximum likelihood temperature, the coefficients of the
    B-splines of p penalised by ‖v‖² / (2 C). It suits scalar notions: confidence, top-label,
    class-wise, binary. With two columns p is the second.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty.
    n_knots : int ≥ 2, default=10
        Knots, at quantiles of the predictions; fewer where predictions repeat.
    max_iter : int, default=1000
        The largest number of iterations.
    tol : float, default=1e-6
        The tolerance at which the iterations stop.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    temperature_ : float
    knots_ : ndarray of shape (≤ n_knots,)
        Knots of the splines, as probabilities.
    coef_ : ndarray of shape (n_splines, 1)
    intercept_ : ndarray of shape (1,)
    n_iter_ : int
    estimators_ : list of SplineScaling
        With three and more columns, instead of the others: a map for each class.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    The curve need not rise: in most fits it falls somewhere, and reverses some samples.

    References
    ----------
    .. [1] Gupta et al., Calibration of neural networks using splines, ICLR 2021, who fit a spline
       to the empirical distribution function instead.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.recalibration import SplineScaling
    >>> p = np.linspace(0.05, 0.95, 19)[:, None]
    >>> SplineScaling().fit(p, p[:, 0] > 0.5).predict_proba([[0.7]])[0, 1].round(2)
    np.float64(1.0)
    """

    _parameter_constraints: dict = {
        **PenalizedScaling._parameter_constraints,
        "n_knots": [Interval(Integral, 2, None, closed="left")],
    }

    _of_single_probability = True
    _saved_parameters: tuple[str, ...] = ("temperature", "knots", "coef", "intercept")
    _formula = "σ(z / temperature + B(σ(z)) @ coef + intercept), B cubic B-splines on the knots"

    def __init__(self, C=1.0, n_knots=10, max_iter=1000, tol=1e-6, from_logits=False):
        super().__init__(C=C, max_iter=max_iter, tol=tol, from_logits=from_logits)
        self.n_knots = n_knots

    def _fit(self, z, codes, weight):
        p = expit(z)
        inner = quantile(p, None, weight, n_bins=self.n_knots - 1, min_samples=1).edges[1:-1]
        knots = np.unique([p.min(), *inner, p.max()])
        self.knots_ = np.array([0.0, 1.0]) if len(knots) == 1 else knots
        super()._fit(z, codes, weight)

    def _features(self, z):
        return b_splines(expit(z), self.knots_, 3)


class PlattScaling(PenalizedScaling):
    """Platt (logistic) scaling: a slope and an intercept on the logit of a single probability.

    c(p) = σ(a logit p + b), penalised weakly by ((a - 1)² + b²) / (2 C), which keeps a and b
    finite. It is Cox's logistic recalibration; of two columns p is the second.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty; 1e6 is all but maximum likelihood.
    max_iter : int, default=1000
        The largest number of iterations.
    tol : float, default=1e-6
        The tolerance at which the iterations stop.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities, such as the decision values of a support
        vector machine, for which Platt proposed the map.

    Attributes
    ----------
    slope_, intercept_ : float
        a and b.
    n_iter_ : int
    estimators_ : list of PlattScaling
        With three and more columns, instead of the others: a map for each class.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    TemperatureScaling : of two classes the slope alone.
    InterceptCalibration : the intercept alone.
    BetaCalibration : two slopes and an intercept.

    Notes
    -----
    ``CalibratedClassifierCV(method="sigmoid")`` of scikit-learn fits the same curve to decision
    values or, without a logit, to probabilities.

    References
    ----------
    .. [1] Platt, Probabilistic outputs for support vector machines and comparisons to regularized
       likelihood methods, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import expit, logit
    >>> from skcal.recalibration import PlattScaling
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=20_000)
    >>> y = rng.uniform(size=20_000) < expit(0.7 * logit(p) + 0.5)
    >>> fitted = PlattScaling().fit(p, y)
    >>> round(fitted.slope_, 1), round(fitted.intercept_, 1)
    (0.7, 0.5)
    """

    _of_single_probability = True
    _is_tempered = False
    _saved_parameters: tuple[str, ...] = ("slope", "intercept")
    _formula = "σ(slope z + intercept)"

    def _features(self, z):
        return z

    def _keep(self, coefficients):
        self.slope_, self.intercept_ = 1 + float(coefficients[0, 0]), float(coefficients[1, 0])

    def _map(self, z):
        return np.hstack([np.zeros_like(z), self.slope_ * z + self.intercept_])


class BetaCalibration(PenalizedScaling):
    """Beta calibration of a single probability, shrunk towards the identity.

    c(p) = σ(a log p - b log(1 - p) + m), penalised by ((a - 1)² + (b - 1)² + m²) / (2 C). With two
    columns p is the second.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty.
    max_iter : int, default=1000
        The largest number of iterations.
    tol : float, default=1e-6
        The tolerance at which the iterations stop.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    coef_ : ndarray of shape (2, 1)
        a - 1 and b - 1.
    intercept_ : ndarray of shape (1,)
        m.
    n_iter_ : int
    estimators_ : list of BetaCalibration
        With three and more columns, instead of the others: a map for each class.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    References
    ----------
    .. [1] Kull, Silva Filho & Flach, Beta calibration: a well-founded and easily implemented
       improvement on logistic calibration for binary classifiers, AISTATS 2017.

    Examples
    --------
    >>> from skcal.recalibration import BetaCalibration
    >>> p = [[0.9], [0.8], [0.9], [0.2], [0.1], [0.8]]
    >>> BetaCalibration(C=1e-9).fit(p, [1, 1, 0, 0, 0, 0]).predict_proba([[0.9]]).round(2)
    array([[0.1, 0.9]])
    """

    _of_single_probability = True
    _is_tempered = False
    _formula = "σ(z + coef[0] log σ(z) - coef[1] log σ(-z) + intercept)"

    def _features(self, z):
        return np.hstack([-np.logaddexp(0, -z), np.logaddexp(0, z)])


class QuadraticScaling(PenalizedScaling):
    """A quadratic function of the logit of a single probability, shrunk towards a temperature.

    c(p) = σ(z / T + v₁ z + v₂ z² + b) of z = logit p, T the maximum likelihood temperature,
    penalised by (‖v‖² + b²) / (2 C). With two columns p is the second. Without z² it is Platt
    scaling of the logit, :class:`skcal.recalibration.MatrixScaling` of a single column.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty.
    max_iter : int, default=1000
        The largest number of iterations.
    tol : float, default=1e-6
        The tolerance at which the iterations stop.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    temperature_ : float
    coef_ : ndarray of shape (2, 1)
        v₁ and v₂.
    intercept_ : ndarray of shape (1,)
        b.
    n_iter_ : int
    estimators_ : list of QuadraticScaling
        With three and more columns, instead of the others: a map for each class.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    Not monotone where v₂ ≠ 0: far from the training samples it may turn.

    References
    ----------
    .. [1] Berta, Holzmüller, Jordan & Bach, Structured matrix scaling for multi-class calibration,
       arXiv:2511.03685, 2025.

    Examples
    --------
    >>> from skcal.recalibration import QuadraticScaling
    >>> p = [0.9, 0.8, 0.9, 0.2, 0.1, 0.8]
    >>> QuadraticScaling().fit(p, [1, 1, 0, 0, 0, 0]).predict_proba([0.1, 0.9]).round(2)
    array([[0.96, 0.04],
           [0.54, 0.46]])
    """

    _of_single_probability = True
    _formula = "σ(z / temperature + coef[0] z + coef[1] z² + intercept)"

    def _features(self, z):
        return np.hstack([z, z**2])
