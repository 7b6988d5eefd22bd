"""What modules refuse is rows, of calls and of what their errors say; here they are tried."""

import re
from collections.abc import Callable, Iterable

import pytest


def refused(rows: Iterable[tuple]) -> Callable:
    """The test that each call of the rows raises a ``ValueError`` that says all its patterns.

    Two as a rule: what was expected, and what came.
    """

    @pytest.mark.parametrize(("call", "said"), [(call, said) for call, *said in rows])
    def test(call, said):
        with pytest.raises(ValueError, match=said[0]) as caught:
            call()
        lacking = [one for one in said if not re.search(one, str(caught.value))]
        assert not lacking, f"{caught.value} does not say {lacking}"

    return test
