"""What all threads of a process share, and what must be as before when skcal returns."""

import copy
import os
import random
import signal
import sys
import warnings

import numpy as np
import sklearn
from threadpoolctl import threadpool_info


def process_state():
    """Values that compare equal while nothing of it has changed."""
    try:
        from matplotlib import rcParams

        drawing = copy.deepcopy(dict(rcParams))
    except ImportError:
        drawing = {}
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    return {
        "filters": list(warnings.filters),
        "showwarning": (warnings.showwarning, warnings._showwarnmsg_impl),
        "numpy": (np.geterr(), np.get_printoptions()),
        "random": (kind, keys.tobytes(), rest, random.getstate()),
        "scikit-learn": sklearn.get_config(),
        "matplotlib": drawing,
        "threads": [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()],
        "streams": [id(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)],
        "system": (os.getcwd(), dict(os.environ), signal.getsignal(signal.SIGINT)),
    }
