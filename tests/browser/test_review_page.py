"""Check labels on the page as a person does: by keyboard and by mouse, with answers that stay, and save them."""

import csv
import json
import time

import pytest
from tests.browser.conftest import Page
from tests.support.people import people, write_csv

from fairsieve import tabular

ROLES = {"label": "income", "sensitive": "sex"}
HOSTILE = "</script><img src=x onerror=alert(1)><!-- {{ 7 * 7 }}"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table with hostile names and cells, and the page of twenty rows to check."""
    folder = tmp_path_factory.mktemp("review")
    table = people(500)
    table[HOSTILE] = [f"{HOSTILE}{value}" for value in table.pop("job")]
    table["name"] = [f'=HYPERLINK("x{i}"),"{HOSTILE}' for i in range(500)]
    path = write_csv(folder / "people.csv", table)
    tabular.review(path, **ROLES, rows=20, id_column="name").save(folder / "review.html")
    return folder


@pytest.fixture(scope="module")
def page(driver, place):
    downloads = {"behavior": "allow", "downloadPath": str(place / "downloads")}
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", downloads)
    found = Page(driver, place / "review.html").open()
    found.run("localStorage.clear(); sessionStorage.clear()")
    return found.open()


def press(page, keys):
    page.find("body").send_keys(keys)


def text(page, selector):
    return page.run("return document.querySelector(arguments[0])?.textContent", selector)


def saved(page, place):
    """The lines of the file that the page saves."""
    path = place / "downloads" / "review.csv"
    path.unlink(missing_ok=True)
    press(page, "s")
    until = time.monotonic() + 20
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < until, page.console()
        time.sleep(0.02)
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_text_stays_text_and_nothing_is_requested(page):
    assert page.console() == []
    assert page.requests() == []
    assert page.run("return document.images.length") == 0
    assert page.run("return document.scripts.length") == 2
    assert HOSTILE in text(page, "dl")
    assert HOSTILE in text(page, ".head p")


def test_twenty_answers_by_keyboard_are_saved_and_trained_with(page, place):
    given = page.run("return sheet.items.map((item) => sheet.choices[item.given])")
    page.open()
    for i in range(20):
        press(page, "u" if i == 7 else "w" if i % 4 == 1 else "r")
    assert text(page, "#count") == "All 20 answered · 5 wrong · 1 unsure"
    lines = saved(page, place)
    other = {"high": "low", "low": "high"}
    expected = ["unsure" if i == 7 else other[one] if i % 4 == 1 else one for i, one in enumerate(given)]
    assert [line["verified_label"] for line in lines] == expected
    assert all(line["id"].startswith("'=HYPERLINK") for line in lines)
    answers = place / "downloads" / "review.csv"
    found = tabular.train(place / "people.csv", **ROLES, verified=answers).run.verified
    assert (found["wrong"], found["unsure"]) == ((5, 19), 1)


def test_answers_stay_and_can_be_changed(page, place):
    page.open()
    assert text(page, "#count").startswith("All 20 answered")
    press(page, "\ue014")  # the arrow to the right
    press(page, "\ue003")  # Backspace
    assert text(page, "#count").startswith("19 of 20 answered")
    page.find(".answers .unsure").click()
    assert text(page, "#count") == "All 20 answered · 4 wrong · 2 unsure"
    assert [line["verified_label"] for line in saved(page, place)].count("unsure") == 2


def test_the_table_view_has_the_same_answers(page):
    press(page, "t")
    values = page.run("return [...document.querySelectorAll('tbody select')].map((one) => one.value)")
    assert (len(values), values.count("2")) == (20, 2)
    page.run(
        "const one = document.querySelector('tbody select'); one.value = ''; one.dispatchEvent(new Event('change'))"
    )
    assert text(page, "#count").startswith("19 of 20 answered")
    page.find("tbody th button").click()
    assert page.run("return document.getElementById('table').hidden")
    assert page.run("return document.querySelectorAll('.answers [aria-pressed=true]').length") == 0


def test_the_suggestion_is_hidden_until_the_answer_is_given(page):
    press(page, "r")
    page.run("place = 0; answer(null); draw()")
    assert "Suggested" not in text(page, ".labels")
    assert text(page, ".reasons") is None
    press(page, "t")
    assert page.run(
        "return [...document.querySelectorAll('tbody tr')].map((row) => row.cells[2].textContent !== '')"
    ) == (page.run("return answers.map((one) => one !== null)"))
    press(page, "t")
    page.run("answer(0); move(-100)")
    assert text(page, ".labels").count("Suggested") == 1
    assert text(page, ".reasons")
    page.run("answer(null, 0)")
    press(page, "h")  # whoever wants it sees it before
    assert text(page, ".labels").count("Suggested") == 1
    press(page, "h")
    assert "Suggested" not in text(page, ".labels")


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_wider_than_the_screen(page, width):
    page.show(width=width)
    assert page.run("return document.documentElement.scrollWidth") <= width
    page.show()


def test_labels_of_many_are_chosen_by_number(driver, tmp_path):
    table = people(400)
    table["income"] = [("a", "b", "c")[(i * 7) % 3] if i % 5 else "a" for i in range(400)]
    path = write_csv(tmp_path / "people.csv", table)
    tabular.review(path, label="income", sensitive="sex", rows=3).save(tmp_path / "review.html")
    page = Page(driver, tmp_path / "review.html").open()
    given = page.run("return sheet.items[0].given")
    press(page, "1")  # not before W
    assert text(page, "#count").startswith("0 of 3")
    press(page, "w")
    assert "press the number" in text(page, "#message")
    press(page, "2")
    others = [code for code in range(3) if code != given]
    assert page.run("return answers[0]") == others[1]


def test_two_tabs_keep_the_answers_of_both(driver, tmp_path):
    """Each shows what the other answers, and what either saves has all."""
    path = write_csv(tmp_path / "people.csv", people(400))
    tabular.review(path, label="income", sensitive="sex", rows=6).save(tmp_path / "review.html")
    page = Page(driver, tmp_path / "review.html").open()
    first = driver.current_window_handle
    driver.switch_to.new_window("tab")
    second = driver.current_window_handle
    try:
        page.open()
        press(page, "r")
        press(page, "u")
        driver.switch_to.window(first)
        page.wait_for("return document.getElementById('count').textContent.startsWith('2 of 6')")
        page.run("answer(sheet.items[4].given, 4)")
        page.run("answer(null, 1)")
        driver.switch_to.window(second)
        page.wait_for("return answers[4] !== null && answers[1] === null")
        press(page, "w")
        kept = page.run("return answers")
        page.open()
        page.wait_for(f"return JSON.stringify(answers) === JSON.stringify({json.dumps(kept)})")
        assert sum(one is not None for one in kept) == 3
    finally:
        driver.switch_to.window(second)
        driver.close()
        driver.switch_to.window(first)
