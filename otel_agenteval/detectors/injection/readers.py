"""Words and patterns that recognize text addressed to an AI, in many languages.

Most patterns match text that :func:`~.normalise.folded` returns: lower case, without Latin accents. Before folding, :func:`marked`
replaces upper-case names such as ``AI`` and ``LLM`` with ``aiagent``, because ``ai`` is a frequent word in French and Italian.
"""

from __future__ import annotations

import re
import unicodedata

from ..texts import has_any

_SHORT_NAME = re.compile(
    r"[AKILИШ](?<![A-Za-z0-9_.].)(?:(?<=A)\.I\.|(?:(?<=[AK])I|(?<=I)A|(?<=И)И|(?<=Ш)І|(?<=L)LM)s?)(?![A-Za-z0-9_])"
)  # the search is several times faster if the pattern starts with one character
_SHORT_NAMES = ("AI", "A.I", "KI", "IA", "LLM", "ИИ", "ШІ")


def marked(text: str) -> str:
    """Replace abbreviations for machines, such as ``AI`` and ``LLM``, with ``aiagent``."""
    return _SHORT_NAME.sub("aiagent", text) if has_any(text, _SHORT_NAMES) else text


def any_of(*alternatives: str) -> re.Pattern[str]:
    """Return a pattern for alternatives in folded text. Latin, Greek, and Cyrillic ones match only at the start of a word."""
    words = "|".join(part for part in alternatives if _begins_a_word(part))
    signs = "|".join(part for part in alternatives if not _begins_a_word(part))
    parts = ([f"(?<![a-z0-9_\u00c0-\u058f])(?:{words})"] if words else []) + ([signs] if signs else [])
    return re.compile(unicodedata.normalize("NFKC", "|".join(parts)))


def _begins_a_word(part: str) -> bool:
    return all(ord(sign) < 0x590 or 0x2000 <= ord(sign) < 0x2100 for sign in part)


# --- addressees ----------------------------------------------------------------------------------------------------

MACHINES = (
    r"siri\b|alexa\b|reviewer bots?|aiagent(?:-[a-z]\w*|s\b)?|\w+-aiagent|ai[- ](?:assist|agent|model|system|tool|bot|review|cod)\w*|(?:any|dear|hey|hi|hello|an) ai\b|llms?\b|chat-?gpt\b|gpt[-\d]\S*|gpt\b|claude\b|gemini\b|(?:\w+ )?copilots?\b",
    r"(?:chat|ro)?-?bots?(?![a-z0-9_-]|\.\w)|chatbot\w{0,3}|(?:large )?language models?\b|summari[sz]ers?\b|automated (?!tests?|test|builds?|e-?mail|message|reply|response)\w+s?\b",
    r"(?:grading|hiring|ranking|scoring|screening|reviewing|reading|recruiting|triage|moderation|evaluation) (?:models?|systems?|agents?|assistants?|software|bots?)\b",
    r"(?:virtual|digital|automatic|coding|shopping|conversational|voice|chat|browsing|mail|e-?mail|search|language|artificial) (?:\w+ )?(?:assistants?|agents?|helpers?|readers?|screeners?|graders?|reviewers?|tools|models?|intelligences?|evaluators?)\b",
    r"sprachmodell\w*|kunstliche\w* intelligenz\w*|(?:automati|digital|virtuel|maschinel)\w+ (?:assist|agent|leser|system|auswert|pruf|helfer)\w*",
    r"modeles? de langage|intelligences? artificielles?|(?:assistant|agent|systeme|outil|lecteur|robot)s? (?:d'|de )?(?:aiagent|virtuel|conversationnel|automati|intelligent|numerique|de tri)\w*",
    r"modelos? de lenguaje|(?:asistente|agente|sistema|modelo|lector|robot|herramienta)s? (?:de )?(?:aiagent|virtual|automat|conversacional|digital|inteligente|seleccion auto|evaluacion auto)\w*|inteligencias? artificial(?:es)?",
    r"modell\w (?:linguistic\w|di linguaggio)|intelligenz[ae] artificial[ei]|(?:assistent[ei]|agent[ei]|sistem[ai]|strument[oi]) (?:di )?(?:aiagent|virtual|automat|digital|conversazional)\w*",
    r"modelos? de linguagem|(?:assistente|agente|sistema|robo|ferramenta)s? (?:de )?(?:aiagent|virtua|automat|digita|triagem)\w*|robo\b",
    r"taalmodel\w*|kunstmatige intelligentie|model\w* jezykow\w+|sztuczn\w+ inteligencj\w+|(?:wirtualn|automatyczn|cyfrow)\w+ (?:asystent|agent|system)\w*|bocie\b",
    r"yapay zeka\w*|dil model\w*|sanal asistan\w*|нейросет\w+|нейромереж\w+|(?:языков|мовн)\w+ модел\w+|искусственн\w+ интеллект\w*|штучн\w+ інтелект\w*|(?:чат-?)?бот(?:[еуа]|ам|ом|ові)?\b|(?:виртуальн|автоматическ|цифров|віртуальн)\w+ (?:ассистент|помощник|агент|систем|помічник)\w*",
    r"sprakmodell\w*|sprogmodel\w*|artificiell\w* intelligens|kunstig\w* intelligens|umel\w+ inteligenc\w+|jazykov\w+ model\w*|tekoal\w+|kielimalli\w*|mesterseges intelligencia|inteligenta artificiala",
    r"tri tue nhan tao|mo hinh ngon ngu|tro ly (?:aiagent|ao|so)\b|kecerdasan buatan|model bahasa|asisten (?:aiagent|virtual|digital)",
    r"ذكاء (?:ال)?اصطناعي|الذكاء الاصطناعي|نموذج لغوي|النموذج اللغوي|المساعد (?:الذكي|الافتراضي|الرقمي)|البوت|أنظمة الفرز|النظام الآلي|الأنظمة الآلية",
    r"בינה (?:ה)?מלאכותית|מודל (?:ה)?שפה|צ'אטבוט|הבוט|בוט(?= )|एआई|कृत्रिम बुद्धि|भाषा मॉडल|चैटबॉट|बॉट",
    r"人工知能|人工智[能慧]|[语語]言模型|言語モデル|大模型|智[能慧]助[手理]|智能体|[机機]器人|アシスタント|チャットボット|ボット(?!ル)|エージェント|인공지능|언어 모델|챗봇|봇(?=[ ,:은이아에])|어시스턴트",
    r"(?:triage|mail|email|code|coding|shopping|browser|browsing|research|support-ai|review) (?:agents?|copilots?|bots?)(?= only|:|,|\])|(?:ok(?:ay)? )?computer(?= (?:listening|reading))|mo hinh (?:dang )?(?:doc|xu ly|tom tat)\w*|τεχνητη\w* νοημοσυνη\w*|τεχνητής νοημοσύνης|βοηθέ\b|γλωσσικ\w+ μοντέλ\w+",
    r"(?:処理|読み?込?む|要約|閲覧|解析|参照)(?:する|した|している|む)?(?:モデル|システム|ai)|自[动動][^\s,。]{0,5}(?:系统|系統|程序|评审)|(?:模型|代理)(?=必须|必須|应当|需|请)|자동[^\s]{0,4} ?(?:시스템|프로그램)",
    r"ปัญญาประดิษฐ์|แชทบอท|บอท|เอไอ|โมเดลภาษา|ผู้ช่วยเสมือน",
)
NAMES = (
    r"(?:ai )?assistants?\b|agents?\b|models?\b|assistent\w{0,3}|agenten?\b|modell?\b|asistente?s?\b|agentes?\b|modelo\b|modello\b|modele\b|asystenci?e?\b|asistan\b|asisten\b|asystent\w*|asistent\w{0,3}",
    r"ассистент\w{0,2}|помощник\w{0,2}|агент\w{0,2}|модель\b|асистент\w{0,2}|помічник\w{0,2}|agente\b|tro ly\b|mo hinh\b",
    r"(?:أيها |عزيزي )?المساعد|النموذج|עוזר|המודל|לעוזר|सहायक|助手|助理|모델|에이전트|비서(?=[ ,:님])|ผู้ช่วย",
)
"""Names that people and things can have too, such as ``agent``. Such a name counts only if the text addresses it directly."""
READS = any_of(
    r"revis\w+|corrig\w+|correg\w+|califi\w+|clasific\w+|trie[nrsz]?\w{0,2}\b|class\w{0,3}\b|compar\w+|confront\w+|control\w+|vergleich\w*|sortier\w*|pruf\w*|sortuj\w*|porownu\w*|ocenia\w*|porovnav\w*|hodnot\w*|vyhodnot\w*|beoordel\w*|vergelijk\w*|controle\w*|bedom\w*|granska\w*|jamfor\w*|degerlendir\w*|karsilastir\w*|проверя\w+|оценива\w+|сравнива\w+|сортиру\w+|оціню\w+|порівню\w+|сорту\w+|kiem tra|danh gia|so sanh|menilai|memeriksa|membandingkan|arvioi\w*|διαβάζ\w+|επεξεργάζ\w+",
    r"يراجع|يقيّ?م|يفرز|بודק\w*|מדרג\w*|मूल्यांकन|जाँच|審査|採点|評価|比較|评审|评分|审核|筛选|比较|심사|채점|평가|비교|ตรวจ|ประเมิน",
    r"(?:read|process|pars|summari[sz]|evaluat|handl|review|index|crawl|analy[sz]|scan|ingest|screen|grad|sort|assess|work)(?:s|es|ing|e|ed)?\b|les(?:en|t|end)\b|liest|verarbeite\w*|auswert\w*|ausgewertet|bewerte\w*|zusammenfass\w*",
    r"li[ts]\b|lisent|lisant|trait(?:e|ent|ant|ez)\b|analys\w+|resum\w+|evalu\w+|lee[ns]?\b|leyendo|lea[ns]?\b|proces\w+|legge\w*|legg\w+|elabora\w*|riassum\w+|le\b|lendo|ler\b|process\w+|lees\b|leest|verwerkt?\b|samenvat\w*",
    r"czyta\w*|przetwarza\w*|okuyan|isleyen|ozetleyen|чита\w+|обрабатыва\w+|анализиру\w+|обробля\w+|dang doc|doc\b|xu ly|tom tat|membaca|merangkum|memproses|laser\b|behandlar|sammanfattar|cte\b|ctou|zpracova\w+|luet\b|lukee",
    r"يقرأ|تقرأ|يلخص|يعالج|קורא\w*|שמסכמ\w*|מעבד\w*|पढ|सारांश|読[むみんま]|要約|処理|阅读|閱讀|处理|處理|读到|总结|읽|요약|처리|อ่าน|สรุป",
)

# --- demands -------------------------------------------------------------------------------------------------------

HIDES = any_of(
    r"(?:need not|needn't|doesn't have to|does not need to|has no need to) (?:know|hear|see|learn)|silently|quietly|discreetly|behind (?:the|his|her|their) back|stillschweigend|heimlich|unauffallig|taire\b|discretement|en silence|silencieusement|silenciosamente|discretamente|en silencio|silenziosamente|di nascosto|stilletjes|stiekem|po cichu|dyskretnie|sessizce|gizlice|молча|незаметно|тайком|мовчки|непомітно|am tham|lang le|diam-diam|tyst\b|i hemlighet|potichu|mlcky|tajne|hiljaa|salaa|no senal\w+|non segnal\w+",
    r"(?:do not|don't|never|without|avoid|not|no need to|nor|needn't|won't) (?:\w+ ){0,3}(?:tell|inform|alert|notif|mention|reveal|disclos|show|let|warn|ask|report|highlight|say|bother|log|list|pointing|point|confirm|know|learn|flag|note|compar|explain|question|refer)\w*|say nothing|keep (?:it|this|that|quiet)|leav\w+ \w+ (?:\w+ )?out|leave out|hid(?:e|ing)\b|conceal|omit|secretly|as if nothing",
    r"(?:no|any|skip|without) (?:further |prior )?(?:confirmation|approval|consent|questions)|(?:user|human|customer|reader|person|developer)s? (?:must|should|may|need|does|do) not",
    r"(?:nicht|nichts|ohne|kein\w*)\b.{0,40}(?:erwahn|sag|mitteil|verrat|informier|merken|wissen|frag|bestatig|nenn|protokoll|alternativ)|(?:erwahn|sag|teile|informier|frag|nenn|protokollier|verrat)\w*\b.{0,60}(?:nichts?|kein\w*)\b|verschweig|verheimlich|geheim",
    r"(?:ne |n'|sans ).{0,14}(?:dis|dit|parl|mention|indiqu|inform|prev|revel|signal|avert|dire|demand|en |cite|evoqu|precis)\w*|taisez|tais\b|tait\b|cach(?:e|ez)\b|garde.{0,15}secret|(?:no|sin|ni)\b.{0,12}(?:dig|menci|inform|revel|avis|cuent|comuni|decir|pregunt|pedir|advert|nombr)\w*|ocult\w+",
    r"(?:non|senza)\b.{0,12}(?:dir|dica|fa[rc]|menzion|inform|rivel|avvis|comunic|parl|chied|segnal|citar)\w*|nascond\w+|tac[ei]\w*|(?:nao|sem)\b.{0,12}(?:dig|mencion|inform|revel|avis|cont|comuni|dizer|pedi|pergunt|cit)\w*|escond\w+|omit\w+",
    r"(?:niet|niets|zonder|geen|nooit)\b.{0,30}(?:zeg|vertel|meld|noem|vermeld|vrag|weten|bevestig)\w*|(?:vermeld|vertel|zeg|meld|noem)\w*\b.{0,40}(?:niets?|geen)\b|verzwijg|(?:nie|bez)\b.{0,12}(?:mow|wspom|inform|ujawn|zdradz|powiad|pyta|zgod)\w*|ukryj|zatai?j",
    r"(?:soyleme|bahsetme|soz etme|belirtme|bildirme|sorma|gosterme|haber verme)\w*|gizle\w*|gizli|(?:не|без)\s(?:\w+ ){0,2}(?:говор|упомин|сообщ|указыва|раскрыва|спрашива|знать|надо|подтвержд|предупрежд|уведом|кажи|каза|згаду|повідом|питай|пита|перевір)\w*|скрой|скрыва\w+|приховай|умолчи|замовчи",
    r"(?:dung|khong|chang|ma khong) (?:duoc |can )?(?:noi|nhac|de cap|tiet lo|bao|thong bao|cho|hoi)|giau\b|(?:jangan|tanpa|tidak perlu)\b.{0,12}(?:kata|sebut|tahu|ungkap|sampai|bilang|tanya|catat)\w*|rahasiakan|sembunyikan|(?:inte|utan)\b.{0,20}(?:namn|beratt|sag|avsloj|inform|frag|meddel)\w*|(?:sag|namn|beratta)\w*\b.{0,25}(?:inte|inget)",
    r"(?:ne(?:rik|zmin|uvad|inform|pt)\w+|zataj\w*|zamlc\w*)|bez (?:vedomi|souhlasu|potvrzeni)|(?:ala|alka|alaka)\b.{0,6}(?:kerro|mainitse|paljasta|kysy)\w*|alaka kerro|alaka mainitse|(?:ikke|uden at|uten a)\b.{0,20}(?:naevn|nevn|sig|fortael|fortell|spor)\w*",
    r"(?:لا|دون|بدون|ولا)\s?(?:أن )?(?:تخبر|تذكر|تبلغ|تكشف|تقل|تسأل|إخبار|علم|ذكر|إبلاغ|تشر)|أخف|تخف|(?:אל|בלי|ללא|מבלי|ואל)\s?(?:ש?ת?ספר|תזכיר|תודיע|תגל|לספר|להודיע|תגיד|תאמר|לשאול|תשאל|ליידע|תדווח|לדווח|תציינ)|הסתר|בסוד",
    r"(?:न|मत|बिना|नहीं) ?(?:बता|कह|उल्लेख|पूछ)|(?:बताए|पूछे) बिना|छिपा|गुप्त|(?:言わ|伝え|知らせ|教え|触れ|明かさ|報告し|記載し|述べ|示さ|挙げ)な|(?:知らせ|伝え|確認せ|伏せ)(?:ず|た)|内緒|秘密|隠[しせ]|伏せ",
    r"(?:不要|别|勿|不得|无需|不必|無需|不用)[^。,，]{0,8}(?:告[诉訴知]|提[及到]|透露|通知|说明|說明|询问|指出|征求|记录|解释)|隐瞒|隱瞞|保密|隐藏|悄悄|(?:알리|말하|언급하|밝히|전하|묻|공개하)지 (?:말|마|않)|몰래|비밀|숨기|숨겨|(?:อย่า|ห้าม|โดยไม่)(?:บอก|พูดถึง|เปิดเผย|แจ้ง)",
)
VERDICTS = any_of(
    r"(?:recommend|rank|rate|score|choose|suggest|promote|list|prefer|place|put|name|classify|grade|advance|favou?r)\w*\b.{0,40}\b(?:only|first|best|highest|top|always|exclusively|above|before any|excellent|interview|perfect)|(?:only|always|exclusively)\b.{0,25}(?:recommend|rank|choose|suggest|promote|mention)|(?:highest|best|top|maximum|full|perfect|positive)(?: \w+){0,2} (?:score|rating|grade|review|marks|priority)|\b100 ?/ ?100|meets all requirements|pre-?(?:approved|verified)|already (?:approved|confirmed|verified)|as (?:already )?(?:confirmed|verified|approved|authori[sz]ed)|zero findings|strong hire",
    r"(?:empfiehl|empfehl|bewert|nenn|setz|stell|darstell)\w*\b.{0,50}(?:nur|ausschliesslich|immer|stets|hoch|sterne|beste|gunstigste|erster)|(?:nur|ausschliesslich|stets)\b.{0,30}(?:empf|nenn)|hochstnote|hochste|beste[nrs]?\b|einzuladen|(?:note|notation|avis) (?:maximale?|positif)|la note|meilleur\w*|seul (?:choix|hotel|produit)|comme le seul|uniquement|d'office|classe\w*.{0,20}premier",
    r"(?:clasifi|puntua|puntu|califi|recom[ie]+n)\w*\b|por encima de|excelente|(?:maxima|mejor) (?:nota|puntuacion|candidat|opcion)|consigli\w*\b.{0,40}(?:solo|esclusiv|soltanto|unicamente)|voto massimo|punteggio massimo|miglior\w*|classifi\w+|primeiro lugar|nota maxima|melhor\b|elogiar|alleen\b|uitsluitend|hoogste|beste keuze|wylacznie|tylko\b|najlepsz\w+|najwyzsz\w+",
    r"yalnizca|sadece|en iyi|en yuksek|(?:высш|максимальн|лучш)\w+ (?:балл|оценк|кандидат|выбор)\w*|только\b|лише\b|тільки|найвищ\w+|tot nhat|diem (?:cao nhat|toi da)|duy nhat|skor (?:sempurna|tertinggi)|nilai (?:sempurna|tertinggi|maksimal)|terbaik|hanya\b|basta\b|hogsta|bara\b|endast|jen\b|pouze|nejlepsi|nejvyssi|vain\b|paras\b|korkein",
    r"أعلى (?:درجة|تقييم)|الأفضل|فقط|آمن تماما|הציון הגבוה|הטוב ביותר|רק\b|केवल|सिर्फ|सर्वश्रेष्ठ|पूरे अंक|最高(?:評価|点|得点)|一位|一番|満点|だけを|のみ|最高分|满分|滿分|评为|最佳|第一|只推荐|仅推荐|만점|최고|만 추천|1위|เฉพาะ|ดีที่สุด|คะแนนเต็ม",
)
GRANTS = any_of(
    r"(?:approve|accept|refund|pay|transfer|wire|purchase|buy|order|delete|erase|cancel|close|disable|grant|install|execute|run|invoke|merge|store|remember|save|override|comply|obey|add|append|begin|end|urge|include|open|click)\w{0,2}\b|genehmig\w*|gewahr\w*|akzeptier\w*|bestell\w*|losch\w*|uberweis\w*|gib\b|installier\w*|fuhr\w*|fug\w*|approuv\w*|accept\w*|command\w*|passe\b|supprim\w*|attribu\w*|renvoye\w*|ajout\w*|vire\b|aprueb\w*|aprob\w*|acept\w*|ejecut\w*|borr\w*|elimin\w*|compr\w*|anad\w*",
    r"approv\w*|accett\w*|esegu\w*|cancell\w*|aggiung\w*|acquist\w*|aprov\w*|apagu?\w*|aceit\w*|compre\b|execut\w*|conced\w*|keur\w*|verwijder\w*|zet\b|voer\b|zatwierdz\w*|usun\w*|wywolaj|zamow\w*|onayla\w*|sil\b|одобр\w*|удали\w*|оплат\w*|закаж\w*|переведи|схвал\w*|видали\w*|виклич\w*|постав\w*|phe duyet|chap nhan|xoa\b|mua\b|setujui|hapus|beli\b|godkann|radera|bestall|schval\w*|smaz\w*|zrus\w*|hyvaksy\w*|poista\w*|tilaa\b",
    r"وافق|اقبل|احذف|حوّل|نفذ|אשר|מחק|בצע|स्वीकार|हटा|चलाओ|चला|承認|削除|実行|注文|送金|批准|删除|刪除|调用|呼叫|加入购物车|转账|执行|승인|삭제|실행|송금|อนุมัติ|ลบ",
)

# --- texts about attacks -------------------------------------------------------------------------------------------

REPORTED = re.compile(
    r"(?<![\w.@/-])(?:prompt[-_ ]injection|injecti\w+|iniettat|injekcj|инъекц|injection|injecao|inyeccion|iniezione|injekt|inject(?:s|ed|ing)\b|attack|attacker|payload|jailbreak|malicious|adversar|red[- ]team|vulnerab|exploit|"
    r"suspicious|for example|for instance|e\.g\.|such as|examples?\b|phrases?\b|sentences? like|strings? like|texts? like|things like|detects?\b|detection|classifier|regex|pattern:|blocklist|denylist|pytest|assert|test case|unit test|steps to reproduce|postmortem|scenario|"
    r"angreifer|angriff|beispiel|attaque|(?:[ld]es|par un) pirate|pirates? informatique|piratage|exemple|ataque|atacante|ejemplo|exemplo|attacc|aggressor|esempio|aanval|voorbeeld|atak|przyklad|saldir|ornegin|атак|злоумышл|например|зловмис|наприклад|serangan|contoh|tan cong|vi du|angrip|exempel)"
    r"|هجوم|مهاجم|مثال|תוקף|התקפ|לדוגמה|हमल|उदाहरण|攻撃|例えば|インジェクション|攻击|例如|注入|之类|공격|예를 들|인젝션"
)
ATTACK = re.compile(r"prompt[ _-]?injection|jailbreak|attack|malicious|exploit|payload|blocked|abuse|signature", re.IGNORECASE)
ATTACKS = ("injection", "jailbreak", "attack", "malicious", "exploit", "payload", "blocked", "abuse", "signature")
"""Fast pre-check: every match of ``ATTACK`` contains one of these words."""
