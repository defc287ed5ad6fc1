"""Words near personal data and known sample values, from ``data/personal``.

The patterns match lower-case text in the most frequent languages.
"""

from __future__ import annotations

from functools import cache

from .lists import alternation, word_set

_PHONE_OF = r"(?<![a-z])(?:numer|numero|número|numéro|nummer|number|numara|номер)\w{0,2} (?:do|di|de|del|della|du|von|of|for|pour|para|för|av|van) (?!\w{0,3} ?(?:NOT))\w{2,20}(?: \w{2,20})?(?: (?:is|ist|est|es|è|é|är|to))?:? ?$"
"""Words before a person's phone number."""
PHONE_AFTER = r"\s?(?:is|ist|est|es|è|é|\(|,)?\s?\(?(?:my|his|her|their|the|meine|seine|ihre|mon|son|mi|su)?\s?(?:\w{3,9} )?(?:number|phone|mobile|cell|home|handy|nummer|telefon|móvil|portable|celular)"
"""Words after a phone number."""


def words(section: str) -> str:
    """Return the pattern of a section of ``data/personal/words.txt``.

    - ``phone`` stands before a phone number, ``company_line`` near the number of an organization or of nobody, and ``not_phone``
      before other kinds of numbers.
    - ``card`` stands before a payment card number, and ``not_card`` before other long numbers and near test cards.
    - ``birth`` stands before a date of birth. "Was born on" isn't included, because encyclopedias use it too.
    - ``bank_account`` stands near the number of a bank account, and ``account_number`` before any account number.
    - ``resides`` stands before a person's address, and ``sample_wanted`` in requests for fictional data.
    """
    return alternation("personal/words.txt", section)


@cache
def phone_words() -> str:
    """Return the pattern of words before a phone number, with those before a person's number."""
    return f"{words('phone')}|{_PHONE_OF.replace('NOT', words('not_phone'))}"


def roles() -> frozenset[str]:
    """Return the local parts of e-mail addresses that several people read."""
    return word_set("personal/samples.txt", "roles")


def sample_cards() -> frozenset[str]:
    """Return the card numbers that payment providers publish for tests."""
    return word_set("personal/samples.txt", "test_cards")
