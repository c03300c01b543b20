"""Maps of penalised likelihood: splines, Beta, quadratic, vector, matrix and Dirichlet scaling."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from skcal._bins import quantile
from skcal._sklearn_compat import Interval, StrOptions
from skcal._validation import row_blocks
from skcal.recalibration.base import BLOCK_BYTES, RecalibrationMap, logits_of_all
from skcal.recalibration.features import COORDINATES, b_splines, coordinates_of_logarithms
from skcal.recalibration.likelihood import Affine, ClassByClass, penalized_coefficients
from skcal.recalibration.temperature import best_temperature

_CHOLESKY_MAX_CLASSES = 30  # its Hessian has (C (C + 1))² entries
_POSITIVE = Interval(Real, 0, None, closed="neither")

_COORDINATES_AS_TEXT = {  # of a single column and of several
    "probability": ("p[1:]", "p"),
    "square-root": ("sqrt(p[::-1])", "sqrt(p)"),
    "log": ("z[1:]", "z"),
    "log-ratio": ("z[1:]", "z - mean(z)"),
}


class PenalizedScaling(RecalibrationMap):
    """c(p) = softmax(log p / T + Vᵀf(p) + b), the penalty Σ V² / (2C) + ‖b‖² / (2C).

    Subclasses differ in the features f, in the temperature T from which the fit starts and to which
    the penalty shrinks it, and in the C of each coefficient.
    """

    _parameter_constraints: dict = {
        **RecalibrationMap._parameter_constraints,
        "C": [_POSITIVE],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [_POSITIVE],
    }

    _saved_parameters: tuple[str, ...] = ("temperature", "coef", "intercept")

    def __init__(self, C=1.0, max_iter=1000, tol=1e-6, from_logits=False):
        self.C = C
        self.max_iter = max_iter
        self.tol = tol
        self.from_logits = from_logits

    def _features(self, z):
        """f(p), shape (n_samples, n_features); subclasses have it, or a design of their own."""
        raise NotImplementedError

    def _features_text(self):
        """f(p) as text, of z and p; maps of one probability have their own formula."""

    def _formula_text(self):
        if self._of_single_probability:
            return self._formula
        shift = "f @ coef + intercept"
        shift = f"(0, {shift})" if self.coef_.shape[1] == 1 else shift
        p = "softmax(z)" if self.n_features_in_ == 1 else "exp(z)"
        return f"softmax(z / temperature + {shift}), f = {self._features_text()}, p = {p}"

    def _prepare(self, z, weight):
        """Learn what the features need before any is computed."""

    def _temperature(self, z, codes, weight):
        """T, by default that of the highest likelihood."""
        return best_temperature(z, codes, weight)

    def _inverse_penalty(self, shape):
        """C of each coefficient of (V, b), shape (n_features + 1, n_logits)."""
        return np.full(shape, self.C)

    def _fit(self, z, codes, weight):
        self._prepare(z, weight)
        self.temperature_ = self._temperature(z, codes, weight)
        offset = logits_of_all(z)
        if self.temperature_ != 1:
            offset = offset / self.temperature_
        design, shape = self._design(z, offset)
        coefficients, self.n_iter_ = penalized_coefficients(
            self, offset, design, codes, weight, self._inverse_penalty(shape)
        )
        if coefficients is None:
            self.temperature_, coefficients = 1.0, np.zeros(shape)
        self._keep(coefficients)

    def _design(self, z, offset):
        """How logits are added to the offset by coefficients, and the shape of these."""
        n_logits = 1 if offset.shape[1] == 2 else offset.shape[1]  # of two the second one is free
        width = self._features(z[:1]).shape[1]
        features = np.ones((len(z), width + 1))  # filled by blocks: no second array of this size
        for rows in row_blocks(len(z), 8 * width, most=BLOCK_BYTES):
            features[rows, :-1] = self._features(z[rows])
        return Affine(features), (width + 1, n_logits)

    def _keep(self, coefficients):
        self.coef_, self.intercept_ = coefficients[:-1], coefficients[-1]

    def _map(self, z):
        logits = logits_of_all(z) / self.temperature_
        logits[:, -self.coef_.shape[1] :] += self._features(z) @ self.coef_ + self.intercept_
        return logits


class InterceptCalibration(PenalizedScaling):
    """Add a constant to the log-probability of each class, fitted by maximum likelihood.

    c(p) = softmax(log p + b); for a single column σ(logit p + b). The mean prediction is then the
    share of each class among the training samples: calibration in the large. It suits predictions
    of another population of which only the base rate is new, and few samples.

    Parameters
    ----------
    C : float > 0, default=1e6
        Inverse strength of the penalty ‖b‖² / (2 C), which keeps b finite where a class is absent.
    max_iter : int, default=1000
        The largest number of iterations.
    tol : float, default=1e-6
        The tolerance at which the iterations stop.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    intercept_ : ndarray of shape (n_classes,) or, of two classes, (1,)
        b, of two classes that of the second.
    n_iter_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    TemperatureScaling : of two classes the slope of the logit alone.
    adjust_prevalence : the same by base rates that are known, without labels.

    References
    ----------
    .. [1] Vergouwe et al., A closed testing procedure to select an appropriate method for updating
       prediction models, Statistics in Medicine 2017.

    Examples
    --------
    >>> from skcal.recalibration import InterceptCalibration
    >>> p = [0.9, 0.8, 0.6, 0.2, 0.1, 0.4]
    >>> fitted = InterceptCalibration().fit(p, [1, 1, 0, 0, 0, 0])
    >>> new = fitted.predict_proba(p)[:, 1]
    >>> new.round(2), float(new.sum().round(4))  # two events
    (array([0.76, 0.59, 0.35, 0.08, 0.04, 0.19]), 2.0)
    """

    _saved_parameters = ("intercept",)
    _formula = "softmax(z + intercept), of two classes softmax(z + (0, intercept))"

    def __init__(self, C=1e6, max_iter=1000, tol=1e-6, from_logits=False):
        super().__init__(C=C, max_iter=max_iter, tol=tol, from_logits=from_logits)

    def _temperature(self, z, codes, weight):
        return 1.0

    def _features(self, z):
        return z[:, :0]

    def _keep(self, coefficients):
        self.intercept_ = coefficients[-1]

    def _formula_text(self):
        return f"softmax(z + {'(0, intercept)' if len(self.intercept_) == 1 else 'intercept'})"

    def _map(self, z):
        logits = np.array(logits_of_all(z))
        logits[:, -len(self.intercept_) :] += self.intercept_
        return logits


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
        self.C = C
        self.n_knots = n_knots
        self.max_iter = max_iter
        self.tol = tol
        self.from_logits = from_logits

    def _prepare(self, z, weight):
        p = expit(z)
        inner = quantile(p, None, weight, n_bins=self.n_knots - 1, min_samples=1).edges[1:-1]
        knots = np.unique([p.min(), *inner, p.max()])
        self.knots_ = np.array([0.0, 1.0]) if len(knots) == 1 else knots

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
    _saved_parameters: tuple[str, ...] = ("slope", "intercept")
    _formula = "σ(slope z + intercept)"

    def _temperature(self, z, codes, weight):
        return 1.0

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
    _formula = "σ(z + coef[0] log σ(z) - coef[1] log σ(-z) + intercept)"

    def _temperature(self, z, codes, weight):
        return 1.0

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


class VectorScaling(PenalizedScaling):
    """Vector scaling: one slope and one intercept for each class, on log-probabilities.

    c(p) = softmax(a ⊙ log p + b), penalised by (‖T a - 1‖² + ‖b‖²) / (2 C). With T = 1 the map is
    shrunk towards the identity, with the maximum likelihood temperature towards this.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty, as in
        :class:`~sklearn.linear_model.LogisticRegression`; that of [2]_ is 1 / (2 n_classes).
    structured : bool, default=False
        Whether T is the maximum likelihood temperature, as in structured vector scaling [2]_; else
        it is 1.
    max_iter : int, default=1000
        The largest number of iterations.
    tol : float, default=1e-8
        Gradient tolerance, in units of the curvature's root.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    temperature_ : float
        T.
    slope_, intercept_ : ndarray of shape (n_classes,)
        a and b.
    n_iter_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    TemperatureScaling : one slope for all classes.
    MatrixScaling : slopes for all pairs of classes.

    References
    ----------
    .. [1] Guo et al., On calibration of modern neural networks, ICML 2017.
    .. [2] Berta, Holzmüller, Jordan & Bach, Structured matrix scaling for multi-class calibration,
       arXiv:2511.03685, 2025.

    Examples
    --------
    >>> from skcal.recalibration import VectorScaling
    >>> p = [[0.8, 0.2], [0.8, 0.2], [0.2, 0.8], [0.2, 0.8]] * 2
    >>> y = [0, 1, 1, 0, 0, 1, 1, 1]
    >>> VectorScaling(C=1e-9).fit(p, y).predict_proba(p).round(3)[0]
    array([0.8, 0.2])
    >>> fitted = VectorScaling(C=1e-9, structured=True).fit(p, y)
    >>> float(round(fitted.temperature_, 3)), fitted.predict_proba(p).round(3)[0]
    (2.714, array([0.625, 0.375]))
    """

    _parameter_constraints: dict = {
        **PenalizedScaling._parameter_constraints,
        "structured": ["boolean"],
    }

    _saved_parameters: tuple[str, ...] = ("temperature", "slope", "intercept")
    _formula = "softmax(slope ⊙ z + intercept)"

    def __init__(self, C=1.0, structured=False, max_iter=1000, tol=1e-8, from_logits=False):
        self.C = C
        self.structured = structured
        self.max_iter = max_iter
        self.tol = tol
        self.from_logits = from_logits

    def _formula_text(self):
        return self._formula

    def _temperature(self, z, codes, weight):
        return best_temperature(z, codes, weight) if self.structured else 1.0

    def _design(self, z, offset):
        return ClassByClass(offset), (2, offset.shape[1])

    def _keep(self, coefficients):
        slope, self.intercept_ = coefficients
        self.slope_ = (1 + slope) / self.temperature_

    def _map(self, z):
        return self.slope_ * logits_of_all(z) + self.intercept_


class MatrixScaling(PenalizedScaling):
    """Matrix scaling: plain or structured logistic regression on transformed probabilities.

    The plain map is c(p) = softmax(Vᵀf(p) + b), penalised by ‖V‖² / (2 C). The penalty shrinks it
    towards the frequencies of the classes, whatever p. For a single column with f(p) = logit(p)
    this is Platt scaling. The structured map is c(p) = softmax(log p / T + Vᵀf(p) + b), with T the
    maximum likelihood temperature and V and b penalised by (‖V‖² + ‖b‖²) / (2 C). This penalty
    shrinks it towards temperature scaling, which is better with few samples. With two classes only
    the logit of the second is mapped.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty, as in
        :class:`~sklearn.linear_model.LogisticRegression`.
    structured : bool, default=False
        Whether a temperature stands beside the matrix, to which the penalty shrinks [2]_.
    coordinates : {"square-root", "probability", "log", "log-ratio"}, default=None
        f(p): √p, p, log p or log p minus its mean. None: "log", and "square-root" if structured.
        With logarithms the structured map is that of [2]_, or Dirichlet calibration [3]_. Bounded
        coordinates are better conditioned, and had lower risks on real predictions of deep
        networks.
    C_off_diagonal, C_intercept : float > 0, default=None
        With ``structured``, the inverse strengths of the penalty of V off the diagonal and of b
        [2]_ [3]_; None: C.
    max_iter : int, default=1000
        The largest number of iterations.
    tol : float, default=1e-6
        With ``structured``, the gradient tolerance in units of the curvature's root.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    temperature_ : float
        T; with ``structured`` only.
    present_ : ndarray of int
        Column numbers of the classes with training samples; without ``structured`` only.
    coef_ : ndarray of shape (n_coordinates, n_logits)
        V; ``n_logits`` is 1 for two classes, else their number, without ``structured`` of those
        present. All 0 where one class alone is present, which is then predicted.
    intercept_ : ndarray of shape (n_logits,)
        b.
    n_iter_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Raises
    ------
    ValueError
        In ``fit``, if ``C_off_diagonal`` or ``C_intercept`` is given without ``structured=True``.

    See Also
    --------
    VectorScaling : one slope for each class; for hundreds of classes.
    DirichletCalibration : shrunk off the diagonal alone.

    Notes
    -----
    The plain map predicts a class without training samples with probability 0. Its fit uses Newton
    steps, which tolerate the bad scale of logarithms of small probabilities, with Cholesky
    decompositions up to 30 classes. An iteration of the structured fit takes O(n C²). Both take
    some ten seconds for 10,000 samples of 100 classes, which hardly determine so many coefficients.

    References
    ----------
    .. [1] Guo et al., On calibration of modern neural networks, ICML 2017.
    .. [2] Berta, Holzmüller, Jordan & Bach, Structured matrix scaling for multi-class calibration,
       arXiv:2511.03685, 2025.
    .. [3] Kull et al., Beyond temperature scaling: obtaining well-calibrated multi-class
       probabilities with Dirichlet calibration, NeurIPS 2019.

    Examples
    --------
    >>> from skcal.recalibration import MatrixScaling
    >>> p = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]] * 4
    >>> y = [0, 1, 2, 0, 1, 2, 0, 0, 2, 0, 1, 2]
    >>> MatrixScaling().fit(p, y).predict_proba(p)[1].round(2)
    array([0.31, 0.55, 0.14])
    >>> MatrixScaling(structured=True).fit(p, y).predict_proba(p)[1].round(2)
    array([0.13, 0.8 , 0.07])
    """

    _parameter_constraints: dict = {
        **PenalizedScaling._parameter_constraints,
        "structured": ["boolean"],
        "coordinates": [StrOptions(set(COORDINATES)), None],
        "C_off_diagonal": [_POSITIVE, None],
        "C_intercept": [_POSITIVE, None],
    }

    _formula = "softmax(z / temperature + f @ coef + intercept)"

    def __init__(
        self,
        C=1.0,
        structured=False,
        coordinates=None,
        C_off_diagonal=None,
        C_intercept=None,
        max_iter=1000,
        tol=1e-6,
        from_logits=False,
    ):
        self.C = C
        self.structured = structured
        self.coordinates = coordinates
        self.C_off_diagonal = C_off_diagonal
        self.C_intercept = C_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.from_logits = from_logits

    @property
    def _saved_parameters(self):  # type: ignore[override]
        return ("temperature" if self.structured else "present", "coef", "intercept")

    def _fit(self, z, codes, weight):
        if self.structured:
            super()._fit(z, codes, weight)
            return
        for name in ("C_off_diagonal", "C_intercept"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} belongs to the structured penalty. Pass "
                    "structured=True, too, or leave it out."
                )
        features, self.present_ = self._features(z), np.unique(codes)
        self.coef_, self.intercept_, self.n_iter_ = np.zeros((features.shape[1], 1)), np.zeros(1), 0
        if len(self.present_) > 1:
            few = len(self.classes_) <= _CHOLESKY_MAX_CLASSES
            solver = "newton-cholesky" if few else "newton-cg"
            logistic = LogisticRegression(C=self.C, solver=solver, max_iter=self.max_iter)
            logistic.fit(features, codes, sample_weight=weight)
            self.coef_ = np.ascontiguousarray(logistic.coef_.T)
            self.intercept_ = logistic.intercept_
            self.n_iter_ = int(np.max(logistic.n_iter_))

    def _inverse_penalty(self, shape):
        inverse = np.full(shape, self.C)
        if self.C_off_diagonal is not None and shape[1] > 1:
            inverse[:-1][~np.eye(shape[1], dtype=bool)] = self.C_off_diagonal
        if self.C_intercept is not None:
            inverse[-1] = self.C_intercept
        return inverse

    def _coordinates(self):
        """The name of f."""
        return self.coordinates or ("square-root" if self.structured else "log")

    def _features(self, z):
        return coordinates_of_logarithms(self._coordinates(), z)

    def _map(self, z):
        if self.structured:
            return super()._map(z)
        logits = np.full((len(z), len(self.classes_)), -np.inf)
        of_present = self._features(z) @ self.coef_ + self.intercept_
        logits[:, self.present_] = (
            logits_of_all(of_present) if len(self.present_) == 2 else of_present
        )
        return logits

    def _features_text(self):
        return _COORDINATES_AS_TEXT[self._coordinates()][0 if self.n_features_in_ == 1 else 1]

    def _formula_text(self):
        if self.structured:
            return super()._formula_text()
        logits = "f @ coef + intercept"
        logits = f"(0, {logits})" if len(self.present_) == 2 else logits
        p = "softmax(z)" if self.n_features_in_ == 1 else "exp(z)"
        of_features = f"f = {self._features_text()}, p = {p}"
        return f"softmax({logits}) of the classes present, 0 of others, {of_features}"


class DirichletCalibration(PenalizedScaling):
    """Dirichlet calibration: a matrix on log-probabilities, shrunk off the diagonal.

    The map is c(p) = softmax(W log p + b), penalised by Σ_{i≠j}
    W_ij² / (2 C) + ‖b‖² / (2 C_intercept). A weak penalty Σ (W_ii - 1)² / (2 C_diagonal) gives
    separable outcomes an optimum. With two classes it is Beta calibration, and only C penalises the
    slopes' distance from the identity.

    Parameters
    ----------
    C : float > 0, default=1.0
        Inverse strength of the penalty of W off the diagonal.
    C_intercept : float > 0, default=None
        Inverse strength of the penalty of b; None: C.
    C_diagonal : float > 0, default=100.0
        Inverse strength of the penalty of the diagonal.
    max_iter : int, default=1000
        The largest number of iterations.
    tol : float, default=1e-6
        Gradient tolerance, in units of the curvature's root.
    from_logits : bool, default=False
        Whether X holds logits instead of probabilities.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_classes), for two classes (2, 1)
        The transpose of W - 1; for two classes, of the second one's logit.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        b.
    n_iter_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    MatrixScaling : ``structured=True`` shrinks towards one temperature, in bounded coordinates.
    VectorScaling : one slope for each class; for hundreds of classes.

    Notes
    -----
    An iteration takes O(n C²), a fit some 20 s for 10,000 samples of 100 classes.

    References
    ----------
    .. [1] Kull et al., Beyond temperature scaling: obtaining well-calibrated multi-class
       probabilities with Dirichlet calibration, NeurIPS 2019.

    Examples
    --------
    >>> from skcal.recalibration import DirichletCalibration
    >>> p = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]] * 4
    >>> fitted = DirichletCalibration(C=0.1).fit(p, [0, 1, 2, 0, 1, 2, 0, 0, 2, 0, 1, 2])
    >>> fitted.predict_proba(p)[1].round(2)
    array([0.2 , 0.78, 0.02])
    """

    _parameter_constraints: dict = {
        **PenalizedScaling._parameter_constraints,
        "C_intercept": [_POSITIVE, None],
        "C_diagonal": [_POSITIVE],
    }

    _formula = "softmax(z + z @ coef + intercept)"

    def __init__(
        self,
        C=1.0,
        C_intercept=None,
        C_diagonal=100.0,
        max_iter=1000,
        tol=1e-6,
        from_logits=False,
    ):
        self.C = C
        self.C_intercept = C_intercept
        self.C_diagonal = C_diagonal
        self.max_iter = max_iter
        self.tol = tol
        self.from_logits = from_logits

    def _temperature(self, z, codes, weight):
        return 1.0

    def _features(self, z):
        if z.shape[1] == 1:
            return np.hstack([np.logaddexp(0, z), -np.logaddexp(0, -z)]) * [-1.0, 1.0]
        return z

    def _features_text(self):
        return "log(p)" if self.n_features_in_ == 1 else "z"

    def _inverse_penalty(self, shape):
        inverse = np.full(shape, self.C)
        if shape[1] > 1:
            np.fill_diagonal(inverse, self.C_diagonal)
        if self.C_intercept is not None:
            inverse[-1] = self.C_intercept
        return inverse
