"""Words in every script: huggingface/evaluate 256, google/adk-python 3111 and 4122, lm-evaluation-harness 157.

Their ROUGE is 0 for equal texts in Hindi, Thai or Japanese, because it drops or joins the letters.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core.turn import Document, Retrieval
from otel_agenteval.evaluation.first_fault import first_fault
from otel_agenteval.metrics.lib.tokens import long_words, tokens_of

F1: dict[str, Any] = {"measure": "f1"}
OVERLAPS: list[tuple[str, dict[str, Any]]] = [
    *[("code_rouge", {"variant": variant, **F1}) for variant in ("rouge1", "rougeL")],
    *[(name, {}) for name in ("code_rouge_n", "code_meteor", "code_bleu", "code_gleu", "code_text_f1", "trusys:bleu")],
]
SHORT = [*OVERLAPS[:4], ("code_text_f1", {})]
"""Metrics that are high for texts with one word more. The others count pairs."""


def overlap(metric: tuple[str, dict[str, Any]], output: str, truth: str) -> float:
    score = oa.get_metric(metric[0], **metric[1]).evaluate(oa.Turn(output=output, ground_truth=truth))
    assert score.value is not None
    return score.value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[("किताब", "कातिब"), ("দিন", "দান"), ("பாடு", "பாடி"), ("పాలు", "పలు"), ("කට", "කාට"), ("كَتَبَ", "كُتِبَ"), ("סֵפֶר", "סַפָּר")],
        *[("ดี", "ดู"), ("กิน", "กัน"), ("เก่า", "เก้า"), ("ກິນ", "ກັນ"), ("ទឹក", "ទូក"), ("ကောင်း", "ကိုင်း")],
        *[("👍", "👎"), ("👍🏽", "👍🏿"), ("👨‍👩‍👧", "👨‍👩‍👦"), ("❤️‍🔥", "❤️‍🩹"), ("🇩🇪", "🇩🇰"), ("!", "?")],
    ],
)
def test_words_that_differ_in_their_marks_are_different(one: str, other: str) -> None:
    assert [overlap(metric, one, other) for metric in OVERLAPS] == pytest.approx([0] * len(OVERLAPS), abs=1e-6)
    assert overlap(("code_text_f1", {"tokenizer": "word"}), one, one) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("我喜欢北京的秋天", "我很喜欢北京的秋天"),
        ("東京は日本の首都です", "東京は日本の大きな首都です"),
        ("ฉันชอบกินข้าวผัดที่กรุงเทพ", "ฉันชอบกินข้าวผัดมากที่กรุงเทพ"),
        ("ຂ້ອຍມັກກິນເຂົ້າຢູ່ວຽງຈັນ", "ຂ້ອຍມັກກິນເຂົ້າຫຼາຍຢູ່ວຽງຈັນ"),
        ("ខ្ញុំស្រលាញ់ភាសាខ្មែរ", "ខ្ញុំស្រលាញ់ភាសាខ្មែរណាស់"),
        ("ကျွန်တော်မြန်မာစကားပြောတယ်", "ကျွန်တော်မြန်မာစကားကောင်းကောင်းပြောတယ်"),
        ("나는 서울의 가을을 좋아한다", "나는 서울의 가을을 매우 좋아한다"),
        ("पूर्व प्रधानमन्त्री शिंजो आबे", "पूर्व प्रधानमन्त्री आबे"),
        ("iPhone 15的价格是999美元", "iPhone 15 Pro的价格是999美元"),
    ],
)
def test_texts_with_one_word_more_are_similar(one: str, other: str) -> None:
    assert all(overlap(metric, one, other) > 0.75 for metric in SHORT)
    equal = [overlap(metric, one, one) for metric in [*OVERLAPS, ("code_rouge_n", {"n": 2})]]
    assert equal == pytest.approx([1] * len(equal), abs=0.01)
    assert overlap(OVERLAPS[0], "पूर्व प्रधानमन्त्री शिंजो आबे", "पूर्व प्रधानमन्त्री आबे") == pytest.approx(6 / 7)


@pytest.mark.parametrize("tokenizer", ["ms", "word", "whitespace"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[(text, unicodedata.normalize("NFD", text)) for text in ("crème brûlée", "Tiếng Việt", "서울의 가을", "がぎぐ", "क़लम")],
        *[("价格１２３元ＡＢＣ", "价格123元ABC"), ("ガンダム", "ｶﾞﾝﾀﾞﾑ"), ("مرحبا", "ﻣﺮﺣﺒﺎ"), ("मां 1 ok", "मां １ ok")],
        *[("می‌خواهم", "میخواهم"), ("مرحبا بك", "\u200fمرحبا بك\u200f"), ("ok ❤️ 1️⃣", "ok ❤ 1"), ("ភាសា\u200bខ្មែរ", "ភាសាខ្មែរ"), ("co\u00adop", "coop")],
    ],
)  # fmt: skip
def test_encodings_of_a_text_have_the_same_words(tokenizer: Any, one: str, other: str) -> None:
    assert tokens_of(one, tokenizer) == tokens_of(other, tokenizer) != []


def test_syllables_and_words_of_mixed_texts() -> None:
    for text, words in {
        "ขอบคุณมากราคา100บาท": "ขอบ คุณ มา ก รา คา 100 บาท",
        "ភាសាខ្មែរ": "ភា សា ខ្មែរ",
        "မြန်မာ အင်္ဂလိပ် ဗုဒ္ဓ": "မြန် မာ အင်္ဂ လိပ် ဗုဒ္ဓ",
        "東京タワーは333m": "東 京 タ ワ ー は 333m",
        "İstanbul'da snake_case": "i̇stanbul da snake case",
        "ශ්‍රී ලංකා": "ශ්රී ලංකා",
    }.items():
        assert tokens_of(text, "word") == words.split(), text
    assert long_words("Der user_id 我喜 किताब है", 3) == {"der", "user_id", "我", "喜", "किताब"}


def test_other_metrics_keep_marks_with_their_letters() -> None:
    count = oa.get_metric("code_word_count", exact=3).evaluate(oa.Turn(output="किताब हिन्दी में"))
    assert (count.value, count.detail) == (1, {"word_count": 3})
    retrieval = Retrieval(documents=[Document(content="首都是北京市，人口两千万。")])
    assert first_fault(oa.Turn(output="上海", ground_truth="北京市", retrievals=[retrieval]), []) is None
