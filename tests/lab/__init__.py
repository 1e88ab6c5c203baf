"""Tests of the lab, most of them in real ones."""

import pytest

pytest.register_assert_rewrite("tests.lab.running")
