"""The option --only, to share the time of a long run."""

import pytest


@pytest.fixture
def only(request):
    return request.config.getoption("--only")
