"""Recall of redaction for personal data and secrets, ordinary text that it keeps, and its speed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_agenteval as oa
from otel_agenteval.core.score import Score
from otel_agenteval.detectors.redaction.find import find_in
from otel_agenteval.evaluation.redaction import KINDS, Redactor, redacted_scores, redacted_text
from tests.support.growth import steep

DATA = Path(__file__).parent / "data" / "redaction"
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
ADVERSARIAL = [
    "4 ", "4111-", "01 ", "+1 ", "1.", "(0", "phone: 1", "@", "a@", "a at a ", "\\u0040", "%2525", "&#64;", "\u0664", "\u6f22", "eyJhbGciOi.", "ghp_a1a1a1a1\n",
    "-----BEGIN PRIVATE KEY-----\n", "A" * 40 + "\n-----END PRIVATE KEY-----\n", 'password=\\"', "a://b:", "cookie: a=b; ", '{"a": 1.5, "b": "x@y"},', "<password>",
    "password ", "'password', '", "use a as the ", "密码是", "key key ", 'mysql "', "curl -u a", "login('a', ", "identified by '", '"name":"password","value":"',
    "<tr><th>password</th></tr>", "| password |\n", "a,password\n", "(a, password) VALUES (", "> password\n> ", "_" * 60 + "password", "phone,a\n",
]  # fmt: skip


def cases(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def parses(text: str) -> bool:
    try:
        return isinstance(json.loads(text), (dict, list))
    except ValueError:
        return False


@pytest.mark.parametrize("half", ["tuned", "unseen", "third"])
def test_what_leaks_of_the_labelled_cases(half: str) -> None:
    wanted = [case for case in cases("positives") if case["half"] == half]
    assert len(wanted) > 80
    leaking = []
    for case in wanted:
        left = redacted_text(case["text"], KINDS)
        if any(leak in left for leak in case["leaks"]):
            leaking.append((case["what"], left))
        assert parses(left) or not parses(case["text"]), left
        assert redacted_text(left, KINDS) == left, case["what"]
    assert len(leaking) <= len(wanted) * 0.04, leaking


@pytest.mark.parametrize("half", ["development", "held_out"])
def test_secrets_and_people_are_found_in_every_place(half: str) -> None:
    wanted = [case for case in cases(half) if "leaks" in case]
    assert len(wanted) > 300
    left = {case["text"]: redacted_text(case["text"], KINDS) for case in wanted}
    assert all(parses(after) or not parses(before) for before, after in left.items())
    leaking = [case["text"] for case in wanted if any(leak in left[case["text"]] for leak in case["leaks"])]
    assert len(leaking) <= len(wanted) * 0.05, leaking


@pytest.mark.parametrize(
    ("file", "half"), [("development", None), ("held_out", None), ("negatives", "tuned"), ("negatives", "unseen")]
)
def test_what_only_looks_like_a_secret_or_a_person_stays(file: str, half: str | None) -> None:
    wanted = [case["text"] for case in cases(file) if "leaks" not in case and (half is None or case["half"] == half)]
    assert len(wanted) > 150
    changed = [(text, left) for text in wanted if (left := redacted_text(text, KINDS)) != text]
    assert len(changed) <= len(wanted) * 0.01, changed


OF_THE_REPORT = [
    ("Driver={ODBC Driver 18 for SQL Server};Server=tcp:db.test,1433;Uid=app;Pwd={Tr0ub4dor;x};Encrypt=yes;", ";x}"),
    ("DRIVER={PostgreSQL};SERVER=db;UID=app;PWD={Tr0ub4dor}", "Tr0ub4dor"),
    ('"ConnectionString": "Server=db;User Id=sa;Password={Tr0ub4dor!};"', "Tr0ub4dor"),
    ("Data Source=db;User ID=sa;Password='Tr0ub4dor;q';", "Tr0ub4dor"), ("Server=db;Uid=app;Pwd=Tr0ub4dor;Database=x", "Tr0ub4dor"),
    ("password=SecretStr('Tr0ub4dor')", "Tr0ub4dor"), ('Settings(api_key=SecretStr("Tr0ub4dor"))', "Tr0ub4dor"),
    ("db_password: SecretStr = SecretStr('Tr0ub4dor')", "Tr0ub4dor"), ("SecretStr('Tr0ub4dor')", "Tr0ub4dor"),
    ("settings = Settings(password=pydantic.SecretStr('correct horse'))", "correct horse"), ("const password = String('Tr0ub4dor')", "Tr0ub4dor"),
    ('password = os.environ.get("DB_PASSWORD", "Tr0ub4dor")', "Tr0ub4dor"), ('password = os.getenv("DB_PASSWORD") or "Tr0ub4dor"', "Tr0ub4dor"),
    ('val password = Secret.of("Tr0ub4dor")', "Tr0ub4dor"), ('String password = new String("Tr0ub4dor");', "Tr0ub4dor"),
    ("const password = process.env.DB_PASSWORD || 'Tr0ub4dor'", "Tr0ub4dor"),
    ('password: process.env.PASSWORD || "Tr0ub4dor",', "Tr0ub4dor"), ("const apiKey = process.env.API_KEY ?? 'Tr0ub4dor';", "Tr0ub4dor"),
    ("password = ENV['DB_PASSWORD'] || 'Tr0ub4dor'", "Tr0ub4dor"), ("password = ENV.fetch('DB_PASSWORD', 'Tr0ub4dor')", "Tr0ub4dor"),
    ("$password = getenv('DB_PASS') ?: 'Tr0ub4dor';", "Tr0ub4dor"), ("$password = $_ENV['DB_PASS'] ?? 'Tr0ub4dor';", "Tr0ub4dor"),
    ("password: process.env.PASSWORD ? process.env.PASSWORD : 'Tr0ub4dor'", "Tr0ub4dor"),
    ("password = cfg.password if cfg else 'Tr0ub4dor'", "Tr0ub4dor"),
    ("Authorization: SSWS 00QCjAl4MlV-WPXM_ltv6KSLZWDsuWgKNNQvBs5xS0", "00QCjAl4MlV"),
    ("curl -H 'Authorization: SSWS 00QCjAl4MlV-WPXM_ltv6KSLZWDsuWgKNNQvBs5xS0' https://x.okta.com", "00QCjAl4MlV"),
    ("okta token SSWS 00QCjAl4MlV-WPXM_ltv6KSLZWDsuWgKNNQvBs5xS0 works", "00QCjAl4MlV"),
    ("use SK5f1e7c9d3b2a4e6f8091a2b3c4d5e6f7 as sid", "SK5f1e7c9d3b2a4e6f8091a2b3c4d5e6f7"),
    ("TWILIO_API_KEY=SK5f1e7c9d3b2a4e6f8091a2b3c4d5e6f7", "SK5f1e7c9d"),
    ("client = Client('AC5f1e7c9d3b2a4e6f8091a2b3c4d5e6f7', '9d3b2a4e6f8091a2b3c4d5e6f75f1e7c')", "d3b2a4e6f8091a2b3c4d5e6f75f1e7c"),
    ("curl -u AC5f1e7c9d3b2a4e6f8091a2b3c4d5e6f7:9d3b2a4e6f8091a2b3c4d5e6f75f1e7c https://api.twilio.com", "d3b2a4e6f8091a2b3c4d5e6f75f1e7c"),
    ("account AC5f1e7c9d3b2a4e6f8091a2b3c4d5e6f7 auth token 9d3b2a4e6f8091a2b3c4d5e6f75f1e7c", "d3b2a4e6f8091a2b3c4d5e6f75f1e7c"),
    ("write to ada.lovelace@\nexample.org today", "ada.lovelace"), ("write to ada.lovelace\n@example.org today", "ada.lovelace"),
    ("write to ada.lovelace@ example.org today", "ada.lovelace"), ("write to ada.lovelace @example.org today", "ada.lovelace"),
    ("write to ada.lovelace @ example.org today", "ada.lovelace"), ("ada.lovelace@\r\n  example.org", "ada.lovelace"),
    ("Mail: ada.lovelace=\r\n@example.org", "ada.lovelace"), ("<span>ada.lovelace</span>@<span>example.org</span>", "ada.lovelace"),
    ("<a>ada.lovelace@<wbr>example.org</a>", "ada.lovelace"), ("ada.lovelace&#8203;@example.org", "ada.lovelace"),
    ("ada.lovelace@\\nexample.org", "ada.lovelace"), ('{"m": "ada.lovelace@\\nexample.org"}', "ada.lovelace"), ("4111,1111,1111,1111", "1111,1111"),
    ("card 4111, 1111, 1111, 1111", "1111, 1111"),
    ("<span>4111</span><span>1111</span><span>1111</span><span>1111</span>", "<span>1111</span><span>1111"),
    ("<span>4111</span> <span>1111</span> <span>1111</span> <span>1111</span>", "<span>1111</span> <span>1111"),
    ("<b>4111</b>-<b>1111</b>-<b>1111</b>-<b>1111</b>", "<b>1111</b>-<b>1111"), ("4111 1111\n1111 1111", "1111 1111"),
    ("4111/1111/1111/1111", "1111/1111"), ("4111_1111_1111_1111", "1111_1111"), ("4111.1111.1111.1111", "1111.1111"),
    ("5500,0000,0000,0004 is my mastercard", "0000,0000"), ("3782 822463 10005", "822463"), ("3782,822463,10005", "822463"),
    ("my card number is 4111,1111,1111,1111, exp 12/27", "1111,1111"), ("Tel. 030 12345678", "12345678"), ("call me: 0171 2345678", "2345678"),
    ("ring me on 020 7946 0958", "7946 0958"), ("my number is 07700 900123", "900123"), ("Telefon: 089/1234567", "1234567"),
    ("06 12 34 56 78", "34 56 78"), ("Appelez-moi au 06 12 34 56 78", "34 56 78"), ("tél 06.12.34.56.78", "34.56.78"),
    ("phone 098-765-4321", "765-4321"), ("携帯は 090-1234-5678 です", "1234-5678"), ("090-1234-5678", "1234-5678"), ("03-1234-5678 に電話", "1234-5678"),
    ("手机 138 1234 5678", "1234 5678"), ("My mobile is 0412 345 678", "345 678"), ("(02) 9876 5432 is the office phone", "9876 5432"),
    ("llámame al 612 345 678", "345 678"), ("mobile 98765 43210", "43210"), ("call 080-1234-5678", "1234-5678"), ("010-1234-5678", "1234-5678"),
    ("(11) 91234-5678", "91234-5678"), ("meu telefone é (11) 91234-5678", "91234-5678"), ("tel: 8 (912) 345-67-89", "345-67-89"),
    ("8 912 345-67-89 звоните", "345-67-89"), ("0664 1234567 ist meine Nummer", "1234567"), ("Handy 0664/1234567", "1234567"),
    ("078 123 45 67", "123 45 67"), ("bel me op 06-12345678", "12345678"), ("mob. 0912 345 6789", "345 6789"),
    ("0401 234 567 on WhatsApp", "234 567"), ("06-12345678", "12345678"), ("Tel 01 23 45 67 89", "23 45 67 89"),
    ("my number is 9876543210", "9876543210"), ("Meine Nummer ist 612345678", "612345678"), ("call 912 345 678 now", "912 345 678"),
    ("llámame al 612 345 678", "612 345 678"),
]  # fmt: skip
"""Values of ODBC, typed secrets, defaults in code, keys of Okta and Twilio, and addresses, cards and numbers in other notations."""
STAYS = [
    "f'DRIVER={{X}};UID={user};PWD={password}'", "<Input password={state1} />", "password = os.environ['DB_PASSWORD'] or getpass('Password: ')",
    "db_password: SecretStr = Field(...)", "token = SecretsManager('eu-west-1')", "password || undefined",
    "authorization: required for all endpoints", "Authorization: Bearer token required", "4096,2048,1024,5120", "sizes: 4000,3000,2000,1008", "x = foo\n@app.get('/')\n",
    "import a.b\n@pytest.fixture", "<b>12</b><b>345</b>", "a <= b\nc", "my number one is 42", "call 123 456", "AC0123456789abcdef0123456789abcdef is the account",
]  # fmt: skip


def test_kinds_of_the_report_are_found() -> None:
    """Report: redaction left 9 of 107 secrets, addresses, cards and numbers."""
    left = {text: redacted_text(text, KINDS) for text, _ in OF_THE_REPORT}
    assert [text for text, leak in OF_THE_REPORT if leak in left[text]] == []
    assert all(redacted_text(after, KINDS) == after for after in left.values())
    assert [(text, after) for text in STAYS if (after := redacted_text(text, KINDS)) != text] == []


def test_a_kind_is_found_by_itself() -> None:
    missed = [
        case["what"]
        for case in cases("positives")
        if any(leak in redacted_text(case["text"], [case["kind"]]) for leak in case["leaks"]) and "svc@" not in str(case["leaks"])
    ]
    assert len(missed) <= 4, missed  # those that hold two kinds


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"card": 4111111111111111, "n": 3}', '{"card": "[CARD_1]", "n": 3}'),
        ("[4111111111111111]", '["[CARD_1]"]'),
        (r'{"t": "{\"pan\": 4111111111111111, \"l\": [4111111111111111]}"}', r'{"t": "{\"pan\": \"[CARD_1]\", \"l\": [\"[CARD_1]\"]}"}'),
        ('Result: {"card": 4111111111111111}', 'Result: {"card": "[CARD_1]"}'),
        ("Sign in: admin / hunter2!x9Kq", "Sign in: admin / [SECRET_1]"),
        (f'{{"m": "a\\n{TOKEN}\\nb"}}', '{"m": "a\\n[SECRET_1]\\nb"}'),
        (r'{"m": "ada\u0040example.org\u0021"}', r'{"m": "[EMAIL_1]\u0021"}'),
        ('{"ada@example.org": {"n": 1.50}}', '{"[EMAIL_1]": {"n": 1.50}}'),
        ("see https://db.test/?u=ada%40example.org&p=1", "see https://db.test/?u=[EMAIL_1]&p=1"),
        ("postgres://app:s3cret@db.test/main", "postgres://app:[SECRET_1]@db.test/main"),
        ("https://a.test/login/Zk4mQ9zRt2xW7pL1vB8n", "https://a.test/login/[SECRET_1]"),
        ("https://a.test/share/9f3a-long-walk-by-the-river", "https://a.test/share/9f3a-long-walk-by-the-river"),
        ("https://a.test/app;sid=Zk4mQ9zRt2xW7pL1", "https://a.test/app;sid=[SECRET_1]"),
        ("ada@example.org and ada\\u0040example.org and ADA@example.org", "[EMAIL_1] and [EMAIL_1] and [EMAIL_1]"),
        ("from [EMAIL_3] to ada@example.org", "from [EMAIL_3] to [EMAIL_4]"),
    ],
)  # fmt: skip
def test_a_marker_is_written_as_its_place_wants_it(text: str, left: str) -> None:
    assert redacted_text(text, KINDS) == left


def test_numbers_and_names_of_values_tell_too() -> None:
    value = {
        "card": 4111111111111111, "phone": 4155552671, "ssn": 123456789, "password": "open sesame", "api_key": "k3y-0123456789",
        "id": 1732234567, "at": 1_732_234_567_123_456_789, "n": 12, "x": 0.4111111111111111, "max_tokens": 512, "ok": True, "token": "hello",
    }  # fmt: skip
    left = Redactor(KINDS).value(value)
    assert left == {
        **value, "card": "[CARD_1]", "phone": "[PHONE_1]", "ssn": "[SSN_1]", "password": "[SECRET_1]", "api_key": "[SECRET_2]",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ({"env": [{"name": "DB_PASSWORD", "value": "swordfish"}]}, {"env": [{"name": "DB_PASSWORD", "value": "[SECRET_1]"}]}),
        ({"value": "swordfish", "Key": "DB_PASSWORD"}, {"value": "[SECRET_1]", "Key": "DB_PASSWORD"}),
        ({"name": "phone", "value": 4155552671}, {"name": "phone", "value": "[PHONE_1]"}),
        ({"name": "DB_HOST", "value": "db-1"}, {"name": "DB_HOST", "value": "db-1"}),
        ({"name": "set_password", "content": "changed"}, {"name": "set_password", "content": "changed"}),
        ({"passwords": ["swordfish", "moonlight"]}, {"passwords": ["[SECRET_1]", "[SECRET_2]"]}),
        ({"args": ["mysql", "-uroot", "-pswordfish"]}, {"args": ["mysql", "-uroot", "-p[SECRET_1]"]}),
        ([["user", "ada"], ["password", "swordfish"]], [["user", "ada"], ["password", "[SECRET_1]"]]),
        (["docker", "run", "-p", "80:80"], ["docker", "run", "-p", "80:80"]),
    ],
)
def test_values_are_read_with_what_stands_beside_them(value: Any, left: Any) -> None:
    assert Redactor(KINDS).value(value) == left


def test_telemetry_of_a_turn_is_no_personal_data() -> None:
    turn = oa.Turn.from_dict({
        "turn_id": "41111111111111111111111111111111-4111111111111111", "trace_id": "41111111111111111111111111111111", "duration_s": 1.4111111111111111,
        "usage": {"input_tokens": 4155552671, "output_tokens": 5}, "input": "Hi.", "llm_calls": [{"span_id": "4111111111111111", "response_id": "resp_4111111111111111"}],
    })  # fmt: skip
    written = turn.to_dict()
    assert Redactor(KINDS).turn(written) == written


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12)
        | st.sampled_from(["ada@example.org", "4111 1111 1111 1111", 4111111111111111, TOKEN, "password=hunter22", "+41 44 668 18 00", "\\u0040", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B"]),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | st.sampled_from(["phone", "password", "a@b.org"]), inner, max_size=4),
        max_leaves=12,
    ),
    st.integers(0, 3), st.booleans(),
)  # fmt: skip
def test_json_stays_json_however_deep_it_is_wrapped(value: Any, wraps: int, ascii_only: bool) -> None:
    text = json.dumps([value], ensure_ascii=ascii_only)
    for _ in range(wraps):
        text = json.dumps({"text": text}, ensure_ascii=ascii_only)
    left: Any = redacted_text(text, KINDS)
    for _ in range(wraps):
        left = json.loads(left)["text"]
    json.loads(left)
    for leak in ("ada@", "4111 1111", "4111111111111111", TOKEN, "hunter22"):
        assert leak not in left


@pytest.mark.parametrize("piece", ADVERSARIAL, ids=range(len(ADVERSARIAL)))
def test_repeated_beginnings_take_linear_time(piece: str) -> None:
    assert steep(lambda text: list(find_in(text, KINDS)), lambda length: (piece * (length // len(piece) + 1))[:length]) is None


@pytest.mark.parametrize(
    "command",
    [
        "sqlldr scott/{}@db",
        "rman target sys/{}@prod",
        "net.exe use Z: //srv/share {}",
    ],
)
def test_commands_without_flags_are_searched_for_secrets(command: str) -> None:
    secret = "Tig3r" + "Paw9"
    text = command.format(secret)
    assert [text[start:end] for start, end, _ in find_in(text, {"secret"})] == [secret]


def test_libphonenumber_tells_numbers_from_figures() -> None:
    assert redacted_text("Ring 55 1234 5678 or 2 3456 7890.", ["phone"]).count("[PHONE_") == 2


def test_words_seen_before_are_redacted_under_another_name() -> None:
    kinds = ("email", "phone", "card", "secret")

    def left(detail: dict[str, Any]) -> dict[str, Any]:
        return redacted_scores([Score("code_a", 1.0, True, detail=detail)], kinds)[0].detail

    for _ in range(2):
        assert left({"method": "Xk4mQ9zRt2", "count": 3, "failed": []}) == {"method": "Xk4mQ9zRt2", "count": 3, "failed": []}
    assert left({"password": "Xk4mQ9zRt2"}) == {"password": "[SECRET_1]"}
    assert left({"method": "Xk4mQ9zRt2", "failed": ["ann@example.com"]})["failed"] == ["[EMAIL_1]"]
