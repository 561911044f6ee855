"""Colours can be read, in both themes and by every eye; names keep theirs."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairsieve.report.page import SYMBOLS, THEMES, Figure, Panel, Series, looks_of
from fairsieve_reproduction.methods.registry import METHODS

# Machado, Oliveira and Fernandes (2009), severity 1: how those see who lack one kind of cone.
EYES = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}  # fmt: skip
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
themes = pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)


def light(colour):
    """Linear red, green and blue."""
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """The contrast ratio of WCAG 2."""
    dark, bright = sorted(float(TO_XYZ[1] @ light(colour)) for colour in (one, other))
    return (bright + 0.05) / (dark + 0.05)


def lab(colour, eye):
    """CIELAB of a colour as an eye sees it."""
    seen = np.clip(np.asarray(eye) @ light(colour), 0, 1)
    ratios = TO_XYZ @ seen / (TO_XYZ @ np.ones(3))
    f = np.where(ratios > 0.008856, np.cbrt(ratios), 7.787 * ratios + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@themes
def test_words_have_contrast_aa(theme):
    surfaces = (theme.background, theme.panel)
    pairs = [(words, ground) for words in (theme.ink, theme.muted, theme.link) for ground in surfaces]
    pairs += [theme.holds, theme.fails, theme.unknown]
    pairs += [(theme.ink, shade) for shade in theme.apart]
    for words, ground in pairs:
        assert contrast(words, ground) >= 4.5, (words, ground)


@themes
def test_lines_and_points_stand_out(theme):
    for name, colour in theme.hues.items():
        assert contrast(colour, theme.background) >= 3, name


@themes
@pytest.mark.parametrize("eye", EYES.values(), ids=EYES)
def test_no_two_hues_are_alike_to_any_eye(theme, eye):
    for one, other in itertools.combinations(theme.hues.values(), 2):
        assert np.linalg.norm(lab(one, eye) - lab(other, eye)) > 10, (one, other)


@themes
def test_shades_grow_apart_from_the_background(theme):
    ratios = [contrast(shade, theme.background) for shade in theme.apart[1:]]
    assert ratios == sorted(ratios)


def test_both_themes_have_the_same_hues():
    assert list(THEMES["light"].hues) == list(THEMES["dark"].hues)


def test_no_two_methods_have_the_same_look_title_or_short_name():
    for field in ("look", "title", "short"):
        assert len({getattr(method, field) for method in METHODS.values()}) == len(METHODS)


@given(st.lists(st.text(max_size=8), max_size=len(SYMBOLS) * 6))
def test_names_have_looks_of_their_own(names):
    found = looks_of(names)
    assert list(found) == list(dict.fromkeys(names))
    assert len(set(found.values())) == len(found)


@given(st.text(max_size=8), st.lists(st.sampled_from(list(METHODS)), max_size=3))
def test_a_series_keeps_its_look_beside_others(name, methods):
    series = [Series(name, [0], [0.0])]
    series += [Series(METHODS[method].short, [0], [0.0], look=METHODS[method].look) for method in methods]
    looks = Figure("figure", "caption", [Panel("title", "x", "y", series)]).looks()
    assert all(looks[METHODS[method].short] == METHODS[method].look for method in methods)
