"""
How well calibrated is a classifier of digits?
==============================================

From a classifier to numbers that can be reported: predictions for samples that it was not trained
on, the estimate that the risk chooses with its lower bound, a test, and a figure. A random forest
names 97 % of these digits and claims to name 77 %: accurate, and far from calibrated.
"""

# %%
# Held-out predictions
# --------------------
# Calibration is judged on samples that the classifier has not seen. Out-of-fold predictions use
# every sample once.

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from skcal import CalibrationErrorSearchCV
from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import monte_carlo_test

X, y = load_digits(return_X_y=True)
folds = StratifiedKFold(5, shuffle=True, random_state=0)
classifier = RandomForestClassifier(random_state=0)
proba = cross_val_predict(classifier, X, y, cv=folds, method="predict_proba")

confidence = proba.max(axis=1).mean()
accuracy = accuracy_score(y, proba.argmax(axis=1))
print(f"accuracy {accuracy:.3f}, mean confidence {confidence:.3f}")

# %%
# The estimate
# ------------
# The search cuts the samples into five blocks, fits candidate functions without every pair of them
# and chooses those of the lowest risk. Each block is tested by fits and a choice that have not seen
# it, so that every sample tests. Report the calibration error with its lower bound.

search = CalibrationErrorSearchCV(notion="confidence", random_state=0).fit(proba, y)
print(search.summary())

# %%
# Could it be chance?
# -------------------
# The test redraws outcomes from the predictions, so its level is exact.

result = monte_carlo_test(y, proba, notion="confidence", random_state=0)
print(f"ECE {result.estimate:.3f}, if calibrated {result.null_distribution.mean():.3f} on average")
print(f"p = {result.pvalue:.3f}")

# %%
# The figure
# ----------
# Points above the band: the forest is underconfident nearly everywhere.

display = ReliabilityDisplay.from_predictions(y, proba, name="random forest", random_state=0)
