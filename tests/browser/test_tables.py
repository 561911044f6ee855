"""Tables on the page sort and filter, by mouse and by keyboard."""

import pytest
from tests.support.sample_document import VALUES, results, suspects

from fairsieve.report.page import Document, Section


@pytest.fixture
def tables(make_page):
    return make_page(Document("Tables", "No charts.", [Section("one", "One", [results(), suspects()])]))


def test_numbers_sort_as_numbers_both_ways(tables):
    button = tables.find("#table-suspects thead th:nth-child(1) button")
    numbers = [float(text) for text in tables.column("suspects", 0)]
    assert numbers != sorted(numbers)
    button.click()
    assert [float(text) for text in tables.column("suspects", 0)] == sorted(numbers)
    assert button.find_element("xpath", "..").get_attribute("aria-sort") == "ascending"
    button.click()
    assert [float(text) for text in tables.column("suspects", 0)] == sorted(numbers, reverse=True)
    assert button.find_element("xpath", "..").get_attribute("aria-sort") == "descending"


def test_values_sort_where_texts_would_not(tables):
    tables.find("#table-table1 thead th:nth-child(2) button").click()
    assert tables.column("table1", 0)[0] == "FB"
    tables.find("#table-table1 thead th:nth-child(1) button").click()
    assert tables.column("table1", 0) == sorted(VALUES, key=str.lower)
    assert len(tables.driver.find_elements("css selector", "#table-table1 [aria-sort]")) == 1


def test_tab_reaches_a_sort_button_and_enter_sorts(tables):
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    focus = tables.find("#table-suspects input")
    focus.click()
    for _ in range(5):
        if tables.run("return document.activeElement.matches('thead button')"):
            break
        tables.driver.switch_to.active_element.send_keys(keys.TAB)
    tables.driver.switch_to.active_element.send_keys(keys.ENTER)
    numbers = [float(text) for text in tables.column("suspects", 0)]
    assert numbers == sorted(numbers)


def test_filtering_keeps_the_rows_with_every_word(tables):
    field = tables.find("#table-suspects input")
    field.send_keys("woman <=50K 10.89")
    assert tables.column("suspects", 2) == []
    field.clear()
    field.send_keys("WOMAN 12.00")
    assert tables.column("suspects", 2) == ["12.00"]
    assert tables.find("#table-suspects output").text == "1 of 30 rows"
    field.clear()
    field.send_keys(" ")
    assert len(tables.column("suspects", 0)) == 30


def test_a_tap_on_an_entry_tells_its_note(tables):
    note = tables.find("#table-table1 .note")
    assert not note.is_displayed()
    tables.find("#table-table1 [title]").click()
    assert note.text == "FR-Train: needs a clean validation set"
