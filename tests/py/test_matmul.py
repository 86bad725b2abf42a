"""Products of matrices (SEMANTICS 12): values, dtypes, refusals; accuses src/kernels/matmul.c, src/ops/checks.c, the
adapters.
"""

import cases
import numpy as np
import pytest

import anytensor as at


@pytest.mark.parametrize("case", cases.MATMUL, ids=str)
def test_matmul(fw, case):
    cases.check(fw, case)


def test_large_products_are_those_of_numpy(fw):
    random = np.random.default_rng(7)
    x, y = random.normal(size=(2, 130, 200)), random.normal(size=(200, 70))
    got = fw.numpy(at.matmul(fw.array(x, "float32"), fw.array(y, "float32")))
    assert np.abs(got - x @ y).max() < 1e-4 * np.abs(x).max() * 14


def test_what_does_not_go_together_is_refused_by_name(fw):
    x, v = fw.array(np.ones((2, 3)), "float32"), fw.array(np.ones(2), "float32")
    one, two = fw.array(np.ones((2, 1, 1)), "float32"), fw.array(np.ones((3, 1, 1)), "float32")
    for a, b in ((x, x), (x, v), (one, two)):
        with pytest.raises(ValueError, match=r"matmul: argument 'y': expected a shape .* found \("):
            at.matmul(a, b)
    for a, b, name in ((x, 2.0, "y"), (3, x, "x"), (at.sum(x), v, "x"), (1, 2, "x")):
        with pytest.raises(ValueError, match=f"matmul: argument '{name}': expected rank >= 1, found a 0-d"):
            at.matmul(a, b)
