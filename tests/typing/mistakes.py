"""Each line marked `# error` is refused by mypy and by pyright, and no other. Never run."""

import numpy as np

import anytensor as at
from anytensor import native

x, ids = np.ones(3), np.array([0, 0, 1])

at.exp()  # error
at.exp(x, 2)  # error
at.sum(x, axis=0)  # error
at.sum(x, axes="rows")  # error
at.segment_sum(x, ids)  # error
at.segment_sum(x, ids, 2, sorted="yes")  # error
at.segment_sum(x, ids, 2)
at.segment_product(x, ids, 2)  # error
at.inf(like=x) + "text"  # error
native.from_dlpack(x, copy="never")  # error
native.from_dlpack(x).shape = (3,)  # error
at.shape(x).append(1)  # error
at.promote_options(copies=True)  # error
at.get_backend()  # error
