"""
Recalibrate, then test the improvement
======================================

Use three disjoint sets. The classifier is trained on the first, recalibrated on the second and
tested on the third. On the samples of the recalibration, every method looks better than it is.
"""

# %%
# Train, recalibrate, test
# ------------------------
# ``FrozenEstimator`` keeps the naive Bayes classifier as it is while maps compete on the second
# set, by the log loss of folds that they were not fitted to.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from skcal import RecalibratedClassifierCV
from skcal.displays import RecalibrationDisplay
from skcal.hypothesis_tests import compare_calibration, monte_carlo_test
from skcal.metrics import expected_calibration_error

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=600, stratify=y, random_state=0)
split = train_test_split(X, y, test_size=500, stratify=y, random_state=0)
X_train, X_validation, y_train, y_validation = split

classifier = GaussianNB().fit(X_train, y_train)
recalibrated = RecalibratedClassifierCV(FrozenEstimator(classifier), random_state=0)
recalibrated.fit(X_validation, y_validation)
print(recalibrated.recalibrator_.summary())
before, after = (one.predict_proba(X_test) for one in (classifier, recalibrated))

# %%
# Is it better, and is it good?
# -----------------------------
# The estimate of the test is the difference of the squared canonical errors, before minus after.
# Better is not yet calibrated: the second test asks that. These samples do not refute it.

result = compare_calibration(y_test, before, after, notion="canonical")
low, high = result.confidence_interval()
print(
    f"squared error saved: {result.estimate:.3f} [{low:.3f}, {high:.3f}], p = {result.pvalue:.1e}"
)
rest = monte_carlo_test(y_test, after, notion="confidence", random_state=0)
print(f"calibrated now? confidence, p = {rest.pvalue:.3f}")
print("         accuracy  log loss    ECE")
for name, proba in (("before", before), ("after", after)):
    accuracy = accuracy_score(y_test, proba.argmax(axis=1))
    ece = expected_calibration_error(y_test, proba, notion="confidence")
    print(f"{name:8s} {accuracy:8.3f}  {log_loss(y_test, proba):8.3f}  {ece:.3f}")

# %%
# Before and after
# ----------------

RecalibrationDisplay.from_predictions(y_test, before, after)
plt.show()
