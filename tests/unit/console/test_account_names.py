"""Names of new accounts: hostile ones are refused with the reason, ordinary ones pass."""

import pytest

from console.accounts.names import check_name, like
from console.gateway import Unusable

CYRILLIC_A = "\N{CYRILLIC SMALL LETTER A}"
#: Only Cyrillic letters, drawn like the Latin word "ace".
WHOLE_CYRILLIC = f"{CYRILLIC_A}\N{CYRILLIC SMALL LETTER ES}\N{CYRILLIC SMALL LETTER IE}"
ALPHAS = "\N{GREEK SMALL LETTER ALPHA}\N{GREEK CAPITAL LETTER ALPHA}"


@pytest.mark.parametrize(
    "name",
    [
        "ann",
        "ann.lee@example.org",
        "j+r_2-x",
        "m\N{LATIN SMALL LETTER U WITH DIAERESIS}ller",
        "\u5f20\u4e09",
        "\u5f20\u4e09admin2",
        "\u3072\u3089\u30ab\u30ca\u30fc\u4eba\u3005",
        "\ud64d\uae38\ub3d9",
        WHOLE_CYRILLIC,
        "\u05d3\u05d5\u05d3",
        "2026",
    ],
)
def test_names_of_one_script_and_of_scripts_written_together_pass(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (f"{CYRILLIC_A}dmin", "CYRILLIC SMALL LETTER A"),
        (f"admi{ALPHAS[0]}", "GREEK SMALL LETTER ALPHA"),
        (f"{ALPHAS[0]}{CYRILLIC_A}", "mixes scripts"),
        ("\u5f20\N{CYRILLIC SMALL LETTER A}", "mixes scripts"),
        ("\u3072\uae38", "mixes scripts"),
        ("\uff41dmin", "admin"),
        ("\N{LATIN SMALL LIGATURE FI}ona", "fiona"),
        ("e\N{COMBINING ACUTE ACCENT}ve", "\N{LATIN SMALL LETTER E WITH ACUTE}ve"),
        ("\N{MATHEMATICAL BOLD SMALL A}dmin", "admin"),
        ("\N{KELVIN SIGN}im", "Kim"),
        ("ad\N{ZERO WIDTH SPACE}min", "valid username"),
        ("ad\N{SOFT HYPHEN}min", "valid username"),
        ("\N{RIGHT-TO-LEFT OVERRIDE}nimda", "valid username"),
        ("admin\N{HANGUL CHOSEONG FILLER}", "U+115F HANGUL CHOSEONG FILLER"),
        ("admin\N{HANGUL FILLER}", "ordinary characters"),
        ("admin\N{BRAILLE PATTERN BLANK}", "valid username"),
        ("admin\N{VARIATION SELECTOR-16}", "valid username"),
        ("admin\N{MODIFIER LETTER APOSTROPHE}", "MODIFIER LETTER APOSTROPHE"),
        ("admin\N{BENGALI DIGIT FOUR}", "BENGALI DIGIT FOUR"),
        ("admin\N{ROMAN NUMERAL ONE HUNDRED THOUSAND}", "ROMAN NUMERAL"),
        ("ad min", "valid username"),
        ("admin\n", "valid username"),
        ("admin\x00", "valid username"),
        ("", "valid username"),
    ],
)
def test_a_hostile_name_is_refused_with_the_reason(name: str, said: str) -> None:
    with pytest.raises(Unusable) as refusal:
        check_name(name)
    assert said in str(refusal.value.detail)


@pytest.mark.parametrize(
    ("name", "existing"),
    [
        ("Ann", "ann"),
        (
            "\N{LATIN CAPITAL LETTER A WITH DIAERESIS}nne",
            "\N{LATIN SMALL LETTER A WITH DIAERESIS}NNE",
        ),
        ("STRASSE", "stra\N{LATIN SMALL LETTER SHARP S}e"),
        ("adm\N{LATIN SMALL LETTER DOTLESS I}n", "admin"),
        ("ADM\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}N", "admin"),
        ("\N{LATIN SMALL LETTER ALPHA}dmin", "Admin"),
        ("\N{LATIN LETTER SMALL CAPITAL A}dmin", "admin"),
        (WHOLE_CYRILLIC, "ace"),
        ("ace", WHOLE_CYRILLIC),
        (WHOLE_CYRILLIC.upper(), "ace"),
        (ALPHAS[0], ALPHAS[1]),
        ("\N{GREEK CAPITAL LETTER NU}", "\N{GREEK SMALL LETTER NU}"),
        (f"{CYRILLIC_A}dmin", "admin"),
        ("\uff41dmin", "admin"),
    ],
)
def test_a_name_is_compared_by_its_look_and_without_case(name: str, existing: str) -> None:
    assert like(name, ["other", existing]) == existing


@pytest.mark.parametrize(
    ("name", "existing"),
    [
        ("ann", "anna"),
        ("m\N{LATIN SMALL LETTER U WITH DIAERESIS}ller", "muller"),
        ("user1", "userl"),
        ("\u5f20\u4e09", "\u5f20\u4e8c"),
    ],
)
def test_other_names_are_free(name: str, existing: str) -> None:
    assert like(name, [existing]) is None
