"""Numbers are formatted as Excel shows them in a cell with the same number format."""

from __future__ import annotations

import pytest

from artifacts.extract.number_formats import BUILT_IN, NumberFormat, general

SHOWN = (
    ("0%", 0.125, "13%"),
    ("0.0%", -0.125, "-12.5%"),
    ("0.00", 2.675, "2.68"),
    ("#,##0.00", 1234567.891, "1,234,567.89"),
    ("#,##0", 0, "0"),
    ("#,###", 0, ""),
    ("#.##", 0.5, ".5"),
    ("00000", 42, "00042"),
    ("000-0000", 5551234, "555-1234"),
    ("#,##0,", 1234567, "1,235"),
    ('0.0,,"M"', 12345678, "12.3M"),
    ("[$€-407] #,##0.00", 1234.5, "€ 1,234.50"),
    ('#,##0.00\\ "zł"', 1234.5, "1,234.50 zł"),
    ("[$¥-804]#,##0.00;[Red]([$¥-804]#,##0.00)", -1234.5, "(¥1,234.50)"),
    ('"$"#,##0.00_);("$"#,##0.00)', 3, "$3.00 "),
    ("0;-0;;@", 0, ""),
    (";;;", 7, "7"),
    ('[>=1000]0,"k";0', 12000, "12k"),
    ('[>=1000]0,"k";0', -5, "-5"),
    ('[=1]"yes";[=0]"no";0.0', 0, "no"),
    ('[=1]"yes";[=0]"no";0.0', 2, "2.0"),
    ('[<0]"below";"above"', -3, "below"),
    ("0.00E+00", 123456, "1.23E+05"),
    ("##0.0E+0", 123456, "123.5E+3"),
    ("0.00E+00", 0.000999999, "1.00E-03"),
    ("# ?/?", 1.5, "1 1/2"),
    ("# ??/??", 3.14159265, "3 1/7"),
    ("?/8", 0.3, "2/8"),
    ("# ?/#1", 1.5, "1 1/2"),
    ("?/²", 0.5, "1/2"),
    ("dd.mm.yyyy", 46348, "22.11.2026"),
    ("d mmmm yyyy", 46348, "22 November 2026"),
    ("dddd", 46348, "Sunday"),
    ('yyyy"年"m"月"d"日" aaaa', 46348, "2026年11月22日 星期日"),
    ("h:mm AM/PM", 0.75, "6:00 PM"),
    ("h:mm:ss", 0.999999, "0:00:00"),
    ("mm:ss.00", 0.00070949, "01:01.30"),
    ("[h]:mm", 1.25, "30:00"),
    ("[h]:mm", -0.5, "-12:00"),
    ("yyyy-mm-dd hh:mm", 46348.5, "2026-11-22 12:00"),
    ("[$-F800]dddd, mmmm dd, yyyy", 46348, "2026-11-22"),
    ("yyyy-mm-dd", 60, "1900-02-29"),
    ("yyyy-mm-dd", -1, "-1"),
    ("@", 12.5, "12.5"),
    ("General", 1 / 3, "0.333333333"),
    ('"n = "General', -2, "-n = 2"),
    ("", 7, "7"),
)


@pytest.mark.parametrize(("code", "value", "shown"), SHOWN)
def test_number_is_rendered_by_its_format(code: str, value: float, shown: str) -> None:
    assert NumberFormat(code).number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.1 + 0.2, "0.3"),
        (1234.5, "1234.5"),
        (8613800138000.0, "8613800138000"),
        (1e20, "1E+20"),
        (1.5e-7, "1.5E-07"),
        (-0.25, "-0.25"),
        (99999.999999999, "100000"),
    ],
)
def test_number_without_a_format_is_shortened_but_keeps_all_integer_digits(value: float, shown: str) -> None:
    assert general(value) == shown


@pytest.mark.parametrize("code", ["0", "0.00", "#,##0.0", "0%", "0.000%", '#,##0.00 "kg"', "0000.0", "0.0,"])
def test_fast_formatting_equals_rendering_token_by_token(code: str) -> None:
    """Most numbers are formatted by Python's own functions, which are faster."""
    values = [whole + part / 1000 for whole in (0, 1, 9, 99, 12345, 999999) for part in range(0, 1000, 5)]
    short, long = NumberFormat(code), NumberFormat(f"[>=0]{code};{code}")
    assert [short.number(value) for value in values] == [long.number(value) for value in values]


def test_text_uses_the_format_section_for_texts() -> None:
    assert [NumberFormat(code).words("x") for code in ("0;-0;0;@ kg", '"<"@">"', "0")] == ["x kg", "<x>", "x"]


def test_1904_date_system_begins_in_1904() -> None:
    assert NumberFormat("yyyy-mm-dd", from_1904=True).number(0) == "1904-01-01"


@pytest.mark.parametrize(
    "code",
    ["0" * 65_536, "[" * 255, '"' * 255, ";" * 255, "0." + "0" * 250, "," * 255, "%" * 255, "0E+" + "0" * 250,
     "?/" + "9" * 250, "[h" * 100, "y" * 255, "\\", "_", "*", "/", "#/", "E+", "0,,,,.%%%E-0", "a" * 255],
)  # fmt: skip
@pytest.mark.parametrize("value", [0.0, -1.5, 1e308, -1e308, 5e-324, 46348.5])
def test_hostile_format_yields_text_of_limited_length(code: str, value: float) -> None:
    assert len(NumberFormat(code).number(value)) < 5_000


def test_every_built_in_format_yields_text() -> None:
    assert all(NumberFormat(code).number(0.5) for code in BUILT_IN.values())
