"""The inputs of ``published_tables.py``, made from the files that two papers published.

Widmann, Lindsten & Zachariah (NeurIPS 2019): CLONE is a clone of ``devmotion/CalibrationPaper`` on
GitHub. Its folder ``experiments/data/PyTorch-CIFAR10`` holds ``labels.csv``, a file of predictions
for each network, and the printed figures in ``errors.csv`` and ``pvalues.csv``.

Gruber & Bach (TMLR 2025): LOGITS is the folder of logits of which the README of
``SebGGruber/Optimizing_Calibration_Estimators`` on GitHub says how to download them. Two files are
read, ``probs_densenet40_c10_logits.p`` and ``probs_resnet110_c100_logits.p``, which came from
``markus93/NN_calibration``. They are pickles: nothing but arrays of numpy is taken from them.

Run

    python tests/studies/published_inputs.py FOLDER --widmann CLONE --gruber-bach LOGITS

and then ``published_tables.py`` with the same FOLDER.
"""

import argparse
import csv
import pickle
from pathlib import Path

import numpy as np
from scipy.special import softmax

WIDMANN = ("resnet18", "densenet121", "vgg16_bn", "googlenet")
GRUBER_BACH = ("densenet40_c10", "resnet110_c100")
ARRAYS = {  # what pickles of arrays need
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("_codecs", "encode"),
}


class ArraysAlone(pickle.Unpickler):
    """A reader of pickles that refuses everything but arrays."""

    def find_class(self, module, name):
        if (module, name) not in ARRAYS:
            raise pickle.UnpicklingError(f"{module}.{name} is no array")
        return super().find_class(module, name)


def networks(clone, folder):
    """Predictions, labels from 0 and the printed figures of Widmann, Lindsten & Zachariah."""
    source = clone / "experiments" / "data" / "PyTorch-CIFAR10"
    labels = np.loadtxt(source / "labels.csv", dtype=np.int8) - 1
    for name in WIDMANN:
        proba = np.loadtxt(source / f"{name}.csv", delimiter=",")
        np.savez_compressed(folder / f"{name}.npz", proba=proba, labels=labels)
    errors, pvalues = (rows_by_model(source / f"{name}.csv") for name in ("errors", "pvalues"))
    with open(folder / "published.csv", "w", encoding="utf-8", newline="") as file:
        lines = [
            {**errors[name], **{f"pvalue_{key}": value for key, value in pvalues[name].items()}}
            for name in WIDMANN
        ]
        writer = csv.DictWriter(file, ["model", *lines[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows({"model": name, **line} for name, line in zip(WIDMANN, lines, strict=True))


def rows_by_model(path):
    """The line of each network, without its name."""
    with open(path, encoding="utf-8", newline="") as file:
        return {line.pop("model"): line for line in csv.DictReader(file)}


def confidences(logits, folder):
    """The confidences of the test sets of Gruber & Bach, in the precision of the logits."""
    for name in GRUBER_BACH:
        with open(logits / f"probs_{name}_logits.p", "rb") as file:
            _, (scores, labels) = ArraysAlone(file).load()
        proba = softmax(scores, axis=1)
        correct = proba.argmax(axis=1) == labels.reshape(-1)
        confidence = proba.max(axis=1).astype(np.float64)
        np.savez_compressed(folder / f"{name}.npz", confidence=confidence, correct=correct)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the inputs are written")
    parser.add_argument("--widmann", type=Path, metavar="CLONE")
    parser.add_argument("--gruber-bach", type=Path, metavar="LOGITS")
    options = parser.parse_args(arguments)
    for given, name, make in (
        (options.widmann, "cifar10", networks),
        (options.gruber_bach, "gruber_bach", confidences),
    ):
        if given is not None:
            (options.folder / name).mkdir(parents=True, exist_ok=True)
            make(given, options.folder / name)


if __name__ == "__main__":
    main()
