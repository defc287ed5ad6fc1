"""Words near personal data and known sample values, from ``data/personal``.

The patterns match lower-case text in the most frequent languages.
"""

from __future__ import annotations

from .lists import alternation, word_set


def words(section: str) -> str:
    """Return the pattern of a section of ``data/personal/words.txt``.

    - ``phone`` stands before a phone number, and ``company_line`` near the number of an organization or of nobody.
    - ``card`` stands before a payment card number.
    - ``birth`` stands before a date of birth. "Was born on" isn't included, because encyclopedias use it too.
    - ``bank_account`` stands near the number of a bank account, and ``account_number`` before any account number.
    - ``resides`` stands before a person's address, and ``sample_wanted`` in requests for fictional data.
    """
    return alternation("personal/words.txt", section)


def roles() -> frozenset[str]:
    """Return the local parts of e-mail addresses that several people read."""
    return word_set("personal/samples.txt", "roles")


def sample_cards() -> frozenset[str]:
    """Return the card numbers that payment providers publish for tests."""
    return word_set("personal/samples.txt", "test_cards")
