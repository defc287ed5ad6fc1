"""Read units next to numbers or in field names, and convert between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .reading import _TOKEN, Number, _readings, mixed_numbers, spaced_numbers

_TABLE: dict[str, dict[float, str]] = {
    "length": {
        1000.0: "km kilometer kilometers kilometre kilometres kilomètres kilómetros chilometri quilômetros quilómetros километров км кілометрів "
        "كيلومتر کیلومتر किलोमीटर キロ 公里 千米 กม 킬로미터 kilometrów kilometre",
        1609.344: "mi mile miles meilen milles millas miglia milhas миль 英里",
        1.0: "m meter meters metre metres mètres metros metri метров метр metrów 米 เมตร 미터",
        0.01: "cm centimeter centimeters centimetres zentimeter см 厘米 公分 センチ",
        0.001: "mm millimeter millimeters millimetres мм 毫米",
        0.3048: "ft foot feet fuß pieds pies piedi pés футов", 0.0254: "in inch inches zoll pouces pulgadas pollici polegadas дюймов",
        0.9144: "yd yards",
    },
    "mass": {
        1.0: "kg kilogram kilograms kilo kilos kilogramm кг 公斤 千克 กก 킬로그램", 0.001: "g gram grams gramm grammes gramos г 克 grammi gramas",
        1e-6: "mg milligram milligrams мг", 0.45359237: "磅 ポンド lb lbs pound pounds livres libras libbre pfund фунтов", 0.028349523: "oz ounce ounces",
        1000.0: "t ton tons tonnes tonne tonnen toneladas tonnellate тонн 吨",
    },
    "volume": {
        1.0: "l liter liters litre litres litros litri л литров 升", 0.001: "ml мл 毫升", 3.785411784: "gal gallon gallons",
        0.4731765: "pint pints", 0.2365882: "cup cups", 0.01: "cl", 0.1: "dl", 1000.0: "m3 m³", 0.0295735: "floz",
    },
    "area": {1.0: "m2 m² sqm squaremeters squaremetres quadratmeter qm кв.м 平米 平方米 mq", 0.09290304: "sqft ft2 ft² squarefeet", 10000.0: "ha hectares hectare hektar", 4046.856: "acre acres", 1e6: "km2 km² sqkm squarekilometers squarekilometres kvadratkilometer"},
    "speed": {1.0: "km/h kmh kph", 1.609344: "mph", 3.6: "m/s mps", 1.852: "kn knots kt"},
    "energy": {1.0: "kwh", 1000.0: "mwh", 0.001: "wh", 1 / 3.6: "mj", 0.001163: "kcal", 0.000277778: "kj"},
    "pressure": {1.0: "hpa mbar", 1000.0: "bar", 68.94757: "psi", 10.0: "kpa"},
    "temperature": {1.0: "°c c celsius grad grados degrés degrees ℃ درجة 度", 2.0: "°f f fahrenheit ℉", 3.0: "k kelvin"},
    "bytes": {
        1.0: "b bytes byte size octets", 1e3: "kb ko кб", 1e6: "mb mo мб", 1e9: "gb go гб", 1e12: "tb to",
        1024.0: "kib", 1024.0**2: "mib", 1024.0**3: "gib", 1024.0**4: "tib",
    },
    "rate": {1.0: "bps", 1e3: "kbps kbit/s", 1e6: "mbps mbit/s", 1e9: "gbps gbit/s", 8e6: "mb/s"},
    "time": {
        1e-3: "ms millis milliseconds millisekunden", 1e-6: "µs us micros", 1e-9: "ns nanos",
        1.0: "s sec secs second seconds sekunden sekunde secondes segundos secondi seconden секунд сек 秒 saniye sekunder detik giây ثانية 초",
        60.0: "min mins minute minutes minuten minutos minuti минут мин minut хвилин 分 分钟 分鐘 分間 분 dakika dk minuter menit phút دقيقة دقائق נาที "
        "नाटी मिनट minuuttia perc",
        3600.0: "h hr hrs hour hours stunden stunde std heures heure horas hora ore ora uur часов часа час ч годин години 小时 小時 時間 시간 saat "
        "timmar timer timme jam giờ ساعة ساعات שעות ชั่วโมง घंटे godzin godziny tuntia óra",
        86400.0: "d day days tage tagen tag jours jour días día giorni giorno dias dia dagen dag дней дня день днів дні 天 日 日間 일 gün dni "
        "dagar dage hari ngày يوم أيام ימים วัน दिन nights night nächte nuits nuit noches notti noites nachten ночей ночи 晚 泊 박 gece nocy nætter nätter "
        "päivää nap dní malam",
        604800.0: "week weeks wochen woche semaines semaine semanas semana settimane settimana weken недель недели неделя тижнів 周 週 週間 주 "
        "hafta tygodni tygodnie veckor uger minggu tuần أسابيع שבועות สัปดาห์",
        2629746.0: "month months monate monaten monat mths mies miesiąc мес mois meses mes mesi mese mês maanden maand месяцев месяца месяц місяців 个月 個月 ヶ月 か月 "
        "개월 ay aydır miesięcy miesiące månader måneder bulan tháng أشهر חודשים เดือน महीने",
        31556952.0: "y yr yrs year years jahre jahren jahr ans années an años año anni anno anos ano jaar jaren лет года год років роки 年 年間 년 "
        "yıl lat lata år tahun năm سنة سنوات שנים ปี साल वर्ष yaşında",
    },
}  # fmt: skip
UNITS = {
    word: (dimension, factor) for dimension, table in _TABLE.items() for factor, words in table.items() for word in words.split()
}
_BINARY = {1e3: 1024.0, 1e6: 1024.0**2, 1e9: 1024.0**3, 1e12: 1024.0**4}
_UNIT = re.compile(
    r"[ \u00a0\u202f-]?((?:km|m|[kmg]bit|mb)/[hs]\b|sq\.? ?(?:ft|m|km)\b|square (?:feet|met(?:er|re)s|kilomet(?:er|re)s)\b|°\s?[CF]\b|[℃℉]|(?:km|ft|m)[²³23]|[^\W\d_](?:[^\W\d_]|[\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd\u0e31-\u0e4e\u064b-\u0652])*)",
    re.IGNORECASE,
)
_FIELD = re.compile(r"([A-Za-z_]{1,60})\\?['\"]?\s{0,2}[:=]\s{0,2}['\"]?(?:[$€£]\s?)?$")
_FIELD_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_IN_NAMES = {"size": ("bytes", 1.0), "bytes": ("bytes", 1.0), "celsius": ("temperature", 1.0), "fahrenheit": ("temperature", 2.0)}
_UNCLEAR = frozenset(
    ["in", "to", "b", "d", "h", "l", "m", "t", "y", "an", "go", "mo"]
)  # units only in field names of several words


class Quantity(NamedTuple):
    """A number with a unit. The factor converts to the base unit of the dimension."""

    value: float
    dimension: str
    factor: float


def unit_after(text: str, at: int) -> tuple[str, float] | None:
    """Return ``(dimension, factor)`` of the unit after a number, or None."""
    found = _UNIT.match(text, at)
    if found is None:
        return None
    word = found.group(1).lower().replace(" ", "").replace(".", "")
    unit = UNITS.get(word)
    if unit is None and not word.isascii():  # no space between words
        for length in (3, 2, 1):
            unit = UNITS.get(word[:length]) if not word[:1].isascii() and ord(word[0]) > 0xDFF else None
            if unit is not None:
                return unit
    return unit


def unit_before(text: str, at: int) -> tuple[str, float] | None:
    """Return the unit in the field name before a number (``"distance_km": 12``), or None."""
    found = _FIELD.search(text, max(0, at - 70), at)
    if found is None:
        return None
    words = [word.lower() for word in _FIELD_WORD.findall(found.group(1))]
    for word in reversed(words):
        unit = _IN_NAMES.get(word) or (UNITS.get(word) if len(words) > 1 or word not in _UNCLEAR else None)
        if unit is not None:
            return unit
    return None


_RANGE = re.compile(r"(?:\s?[-–—]\s?| (?:to|or|bis|oder|à|ou|a|o|do|lub|до|или|tot) )[0-9]+")


def _unit_of_range(text: str, at: int) -> tuple[str, float] | None:
    """Return the unit for the first number of a range such as ``3–5 days``."""
    found = _RANGE.match(text, at)
    return unit_after(text, found.end()) if found is not None else None


def quantities_in(text: str, limit: int) -> Iterator[Quantity]:
    """Yield at most ``limit`` numbers of a text that have a unit."""
    for count, found in enumerate(_TOKEN.finditer(text)):
        if count >= limit:
            return
        unit = unit_after(text, found.end()) or _unit_of_range(text, found.end()) or unit_before(text, found.start())
        if unit is not None:
            for readings in _readings(found.group()):
                for value, _ in readings:
                    yield Quantity(value, *unit)
    for number in (*spaced_numbers(text), *mixed_numbers(text)):
        unit = unit_after(text, number.end)
        if unit is not None:
            yield Quantity(number.readings[0][0], *unit)


def holds(number: tuple[float, float], unit: tuple[str, float], given: Iterable[Quantity], bare: Iterable[float]) -> bool:
    """Return True if a given quantity, converted to the number's unit, rounds to the number.

    ``bare`` are given numbers without a unit.
    """
    value, half = number
    dimension, factor = unit
    slack = half * 1.000001
    alike = [each for each in given if each.dimension == dimension]
    if dimension == "temperature":
        return any(abs(_degrees(each, factor) - value) <= slack for each in alike)
    scales = _scales(dimension, factor)
    if any(
        abs(each.value * other / scale - value) <= slack
        for each in alike
        for other in _scales(dimension, each.factor)
        for scale in scales
    ):
        return True
    if half > 0.02 * value or dimension not in _WITHOUT_UNIT:
        return False
    likely = _WITHOUT_UNIT[dimension]
    return any(
        abs(each * other / scale - value) <= slack for scale in scales for each in bare for other in likely if other != scale
    )


_WITHOUT_UNIT = {
    "bytes": (1.0, 1e3, 1024.0),
    "time": (1.0, 1e-3, 60.0),
    "length": tuple(_TABLE["length"]),
    "mass": tuple(_TABLE["mass"]),
}
"""Factors that a number without a unit can have."""


def _scales(dimension: str, factor: float) -> tuple[float, ...]:
    """Return the meanings of a unit: a kilobyte has 1000 or 1024 bytes."""
    return (factor, _BINARY[factor]) if dimension == "bytes" and factor in _BINARY else (factor,)


def _degrees(given: Quantity, unit: float) -> float:
    celsius = {1.0: given.value, 2.0: (given.value - 32) / 1.8, 3.0: given.value - 273.15}[given.factor]
    return {1.0: celsius, 2.0: celsius * 1.8 + 32, 3.0: celsius + 273.15}[unit]


def unit_of(number: Number, text: str) -> tuple[str, float] | None:
    """Return the unit of a number in an answer."""
    return unit_after(text, number.end)
