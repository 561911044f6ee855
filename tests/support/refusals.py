"""Calls that are refused, with an error of ours whose message says why."""

import pytest

from fairsieve.errors import InvalidInputError


def refused(message, call, /, *arguments, **options):
    """Require that a call is refused, in words that match a message."""
    with pytest.raises(InvalidInputError, match=message):
        call(*arguments, **options)
