"""Partition functions (SEMANTICS 9, 10); accuses src/ops/partition.c."""

import cases
import numpy as np
import pytest

import anytensor as at


@pytest.mark.parametrize("case", cases.PARTITION, ids=str)
def test_partition(fw, case):
    cases.check(fw, case)


def test_where_counts_are_not_read_a_longer_total_drops_its_tail_and_a_shorter_one_is_a_cut(fw):
    """Id n stands in the tail: every later segment function drops it."""
    if fw.reads_counts:
        pytest.skip("another total is an error: test_errors.py")
    counts = fw.array([2, 0, 1], "int64")
    assert fw.numpy(at.partition_ids(counts, 6)).tolist() == [0, 0, 2, 3, 3, 3]
    assert fw.numpy(at.partition_ids(counts, 2)).tolist() == [0, 0]
    assert fw.numpy(at.partition_ids(counts, 0)).tolist() == []
    x = fw.array([1.0, 2.0, 4.0, 8.0, np.nan], "float32")
    assert fw.numpy(at.partition_sum(x, counts, 5)).tolist() == [3.0, 0.0, 4.0]
    assert fw.numpy(at.partition_softmax(x, counts, 5))[3:].tolist() == [0.0, 0.0]
    none = fw.array([0, 0], "int64")
    assert fw.numpy(at.partition_ids(none, 3)).tolist() == [2, 2, 2]


def test_the_size_may_be_called_as_release_1_1_0_of_the_reference_called_it(fw):
    logits, counts = fw.array([1.0, 1.0, 2.0], "float32"), fw.array([2, 1], "int32")
    assert fw.numpy(at.partition_softmax(logits, counts, sum_partitions=3)).tolist() == [0.5, 0.5, 1.0]
    with pytest.raises(TypeError, match="multiple values for argument 'sum_partitions'"):
        at.partition_softmax(logits, counts, 3, sum_partitions=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'sum_partitions'"):
        at.partition_sum(logits, counts, sum_partitions=3)
