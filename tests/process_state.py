"""What all threads of a process share, and what must be as before when skcal returns."""

import copy
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
    return {
        "filters": [id(warnings.filters), *warnings.filters],
        "showwarning": (warnings.showwarning, warnings._showwarnmsg_impl),
        "numpy": np.geterr(),
        "scikit-learn": sklearn.get_config(),
        "matplotlib": drawing,
        "threads": [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()],
    }
