"""List the substrings that every match of the patterns in ``calls`` contains.

Texts and sentences without any of them are skipped.
"""

from __future__ import annotations

CALL_PIECES: tuple[str, ...] = (
    "computer", "crawler", "νοημοσ", "自动", "自動", "aiagent", "ai ", "ai-", "llm", "gpt", "claude", "gemini", "copilot", "bot", "robo",
    "language model", "summar", "automat", "assist", "asist", "asyst", "agent", "model", "virtu", "digital", "artific", "kunstlich",
    "lenguaje", "langage", "linguagem", "maschinell", "entity", "system", "machine", "reader", "software", "program", "whoever", "yapay",
    "zeka", "tekoal", "kielimal", "intelig", "inteligen", "intellig", "tro ly", "mo hinh", "tri tue", "kecerdasan", "umel", "before",
    "avant de", "antes de", "prima di", "bevor", "voordat", "zanim", "summary", "reply", "response", "answer", "new message", "нейро",
    "модел", "интеллект", "інтелект", "бот", "ассистент", "асистент", "помощник", "помічник", "агент", "перед", "систем", "ذكاء", "الذكاء",
    "نموذج", "المساعد", "البوت", "الفرز", "الآلي", "قبل", "בינה", "מודל", "צ'אט", "בוט", "עוזר", "לפני", "एआई", "कृत्रिम", "मॉडल", "बॉट",
    "सहायक", "देने से पहले", "人工", "言語モデル", "大模型", "智", "模型", "机器", "機器", "助手", "助理", "アシスタント", "ボット", "エージェント", "回", "答", "인공", "모델",
    "챗봇", "봇", "어시", "비서", "에이전트", "답변", "ปัญญา", "บอท", "เอไอ", "โมเดล", "ผู้ช่วย", "システム", "系统",
)  # fmt: skip
ASIDE_PIECES: tuple[str, ...] = (
    "your ", "you now", "you will", "you, the", "hereby", " task", "real ", "do not ", "don't ", "instead of", "whoever", "whatever",
    "everything", "when", " with", "the user has", "called", "ignor", "disregard", "forget", "scrap", "drop", "overrid", "discard",
    "abandon", "stop ", "vergiss", "vergess", "missacht", "verwirf", "oubli", "neglig", "olvid", "desatiend", "descart", "dimentic",
    "scart", "trascur", "esque", "desconsid", "negeer", "vergeet", "zapom", "zignor", "kenara", "unut", "gormezden", "dikkate", "забуд",
    "отмен", "игнор", "ігнор", "bo qua", "quen", "abaikan", "lupakan", "glom", "bortse", "unohda", "valita", "nicht mehr", "no longer",
    "not apply", "suspend", "تجاهل", "انس", "התעל", "שכח", "छोड", "भूल", "अनदेखा", "無視", "忘", "捨て", "忽略", "不用管", "无视", "무시", "잊", "버리",
    "ลืม", "เพิกเฉย",
)  # fmt: skip
FREE_PIECES: tuple[str, ...] = (
    "unrestrict", "without", "no filter", "no limit", "no rest", "content polic", "freely", "anything now", "none of your", "free of",
    "free from", " mode", "ohne", "sans ", "sin ", "senza", "sem ", "zonder", "bez ", "без ", "kisit", "sinir", "khong", "bebas", "tanpa",
    "utan ", "قيود", "ללא", "בלי", "बिना", "制限", "無制限", "制約", "限制", "제한", "ข้อจำกัด",
)  # fmt: skip
IN_ASCII: dict[tuple[str, ...], tuple[str, ...]] = {
    pieces: tuple(piece for piece in pieces if piece.isascii()) for pieces in (CALL_PIECES, ASIDE_PIECES, FREE_PIECES)
}
"""The same substrings for ASCII texts."""
