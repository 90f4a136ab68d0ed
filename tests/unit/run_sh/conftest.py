"""What the tests of run.sh share."""

import pytest

from tests.unit.run_sh.checkout import Checkout


@pytest.fixture
def course(tmp_path):
    return Checkout(tmp_path)
