"""Define the vocabulary of texts that address a machine, in all languages together.

All words have the form of :func:`~.normalise.folded`. ``aiagent`` stands for ``AI``, ``KI``, ``IA`` … in upper case.
:func:`marked` inserts it before folding, because ``ai`` is a frequent word in Italian, French and Vietnamese.
"""

from __future__ import annotations

import re
import unicodedata

from .pieces import Quick, quick

_SHORT_NAME = re.compile(r"(?<![A-Za-z0-9_.])(?:A\.I\.|(?:AI|KI|IA|ИИ|ШІ|LLM)s?)(?![A-Za-z0-9_])")


def marked(text: str) -> str:
    """Replace short names of artificial intelligence with ``aiagent``."""
    return _SHORT_NAME.sub("aiagent", text)


def any_of(*alternatives: str) -> Quick:
    """Return one pattern for all alternatives, in the normal form of folded texts.

    Latin and Cyrillic alternatives match only at the start of a word.
    """
    words = "|".join(part for part in alternatives if _begins_a_word(part))
    signs = "|".join(part for part in alternatives if not _begins_a_word(part))
    parts = ([f"(?<![a-z0-9_\u00c0-\u058f])(?:{words})"] if words else []) + ([signs] if signs else [])
    return Quick(re.compile(unicodedata.normalize("NFKC", "|".join(parts))))


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
"""Names that only machines have."""
NAMES = (
    r"(?:ai )?assistants?\b|agents?\b|models?\b|assistent\w{0,3}|agenten?\b|modell?\b|asistente?s?\b|agentes?\b|modelo\b|modello\b|modele\b|asystenci?e?\b|asistan\b|asisten\b|asystent\w*|asistent\w{0,3}",
    r"ассистент\w{0,2}|помощник\w{0,2}|агент\w{0,2}|модель\b|асистент\w{0,2}|помічник\w{0,2}|agente\b|tro ly\b|mo hinh\b",
    r"(?:أيها |عزيزي )?المساعد|النموذج|עוזר|המודל|לעוזר|सहायक|助手|助理|모델|에이전트|비서(?=[ ,:님])|ผู้ช่วย",
)
"""Names that people and things can have too. They count only in direct address."""
HUMANS = quick(
    r"(?:estate|user|insurance|travel|support|letting|service|call|sales|ticket|field|shipping|duty|booking|customs|admin\w*|executive|medical|dental|teaching|research|personal|legal|shop|store) (?:agents?|assistants?)\b"
    r"|(?:agents?|assistants?) (?:on duty|of the|in our|at our|immobilier|maternel|medical|de direction|d'accueil|social|administrat)|assistante? (?:maternel|de direction|social)\w*|\bour (?:\w+ ){0,2}(?:chat)?(?:bots?|assistants?|agents?|models?)\b(?! reading)|秘書|役員"
    r"|(?:notre|nuestr[oa]|nostr[oa]|unser\w*|nossa?o?|onze?|nasz\w*|var|наш\w*|my|their|his|her|its) (?:\w+ )?(?:chat)?(?:bot|assist|asist|asyst|agent|model|бот|ассист)\w*|asistente (?:de|del) |assistente (?:administrat|social|di |del)|assistent(?:in|en)? (?:der|des|van|von)\b",
)
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
"""Phrases for not saying something."""
SENDS = any_of(
    r"resend|re-send|read out|speak out|lahet\w+|stel\b|αποστείλε|στείλε|steile",
    r"(?:send|forward|bounce|upload|transmit|e-?mail|exfiltrate|leak|paste|post|export|share|cc|bcc|dump|pass|hand)\b|leite\b|schick\w*|sende\b|ubermittl\w+|teile\b|exportier\w*|transfer\w*|envo(?:ie|yer|yez)\b|transmet\w*|partage\w*|envi[ae]\w*|reenvi\w*|manda\w*|compart\w+|invia\w*|inoltr\w+|condivid\w+|encaminh\w+|mande\b",
    r"stuur\w*|doorstuur\w*|verzend\w*|deel\b|wysl\w+|wyslij|przesl\w+|udostepnij|gonder\w*|ilet\b|paylas\w*|перешл\w+|отправ\w+|пошли|вышли|поделись|надішл\w+|перешли|gui\b|chuyen tiep|chia se|kirim\w*|teruskan|bagikan|skicka|vidarebefordra|dela\b|posli|odesli|preposli|laheta|sdil\w+",
    r"أرسل|ارسل|حوّ?ل|شارك|שלח|העבר|שתפ|भेज|साझा|फॉरवर्ड|送信|転送|送[りっれ]|お送り|共有|发送|发到|发给|转发|上传|傳送|發送|전송|보내|전달|공유|ส่ง|แชร์",
)
ADDRESS = re.compile(r"https?://|www\.|[\w.+-]@[\w-]+\.|(?<![\w-])[\w-]+\.(?:com|net|org|example|io|ru|cn|co|app|dev)\b")
LOOT = any_of(
    r"conversation|chat (?:history|log)s?|histor(?:y|ique|ial|ico)|messages?\b|e-?mails?\b|inbox|invoices|contacts?\b|contact list|address book|credentials?|passwords?|pass(?:wort|wd)\w*|api.?keys?|tokens?\b|secrets?\b|\w+_(?:token|key)|environment variables|\.env\b|files?\b|calend\w+|everything|gesprach\w*|verlauf|nachrichten|rechnungen|kontakte|adressbuch|daten\b",
    r"conversation|carnet|donnees|mots? de passe|contacts|contrasen\w*|datos|contactos|correos|rubrica|dati\b|contatti|chat\b|senha|dados|contatos|wachtwoord|gegevens|berichten|hasl\w+|kontakt\w*|dane\b|listesi\w*|mesaj\w*|sifre\w*|parola|переписк\w+|парол\w+|контакт\w*|данны\w+|дані|лист(?:ування|и)|mat khau|danh ba|tin nhan|percakapan|sandi|kontak|losenord|kontakter|hesl\w+|kontakt",
    r"كلمات? المرور|بيانات|رسائل|محادث|جهات|סיסמ|היומן|הודעות|अनुशंसा|पासवर्ड|संदेश|会話|履歴|名簿|パスワード|連絡先|聊天|密码|密碼|联系人|数据|资料|대화|비밀번호|연락처|รหัสผ่าน|ข้อมูล",
)
SETS_ASIDE = any_of(
    r"ha(?:z|ga) caso omiso|no ha(?:gas|ga) caso|ne tiens? (?:pas|plus) compte|fais abstraction|lass\w* .{0,30}ausser acht|non tenere conto|lascia perdere|nao leve em conta|laat .{0,20}buiten beschouwing|pomin\b|nie zwracaj uwagi|не обращай внимания|не зважай|jangan hiraukan|unohda|αγνόησε|αγνοησε|ξέχνα|ξεχνα|neber v uvahu",
    r"ignor\w*|disregard|forget|scrap|drop|override|discard|abandon|stop (?:using|following)|vergiss|vergesst|missacht\w*|verwirf|oublie\w*|neglige|olvid\w+|desatiend\w+|descart\w+|dimentic\w+|scart\w+|trascur\w+|esque[cç]\w+|desconsider\w+|negeer|vergeet|zapomn\w+|zignoruj|bir kenara|unut\w*|gormezden|dikkate alma\w*|забуд\w+|отмен\w+|игнорируй\w*|ігноруй\w*|забуд\w*|bo qua|quen\b|abaikan|lupakan|ignorera|glom\b|bortse|zapomen|unohda|alita valita",
    r"zahl\w* nicht mehr|no longer (?:appl|valid|count)\w*|not apply|suspended|تجاهل|انس\b|התעלמ|התעלם|שכח|छोड|भूल|अनदेखा|無視|忘れ|捨て|忽略|忘记|忘掉|不用管|无视|無視|무시|잊|버리|ลืม|เพิกเฉย",
)
GIVEN_ORDERS = any_of(
    r"(?:your|the) (?:configuration|system settings)|tu (?:configuracion|programacion)|ta (?:configuration|programmation)|deine (?:konfiguration|programmierung)|la tua (?:configurazione|programmazione)|(?:sua|tua) (?:configuracao|programacao)|twoj\w+ (?:konfiguracj|ustawien)\w*|(?:твою|твои) (?:настройк|конфигурац)\w+|προηγούμενες οδηγίες|προηγουμενες οδηγιες",
    r"(?:told|asked|instructed|ordered|gave|given) you|you (?:were|have been|'ve been) (?:told|asked|given|instructed|taught)|(?:your|the) (?:developer|operator|creator|vendor|maker|provider|designer|programmer)s?(?:'s)?\b|your (?:system )?(?:rules|guidelines|instructions|programming|restrictions|prompt|setup|safety|training|orders)|safety checks|whatever they (?:told|said)",
    r"(?:man|wer|sie) dir\b|dir (?:vorher|bisher|zuvor|aufgetragen|gesagt)|dein\w* (?:entwickler|regeln|vorgaben|anweisungen|betreiber|hersteller|auftrag)|t'(?:a|ont|as) (?:demande|dit|ordonne)|(?:ton|tes|vos|votre) (?:concepteur|developpeur|regles|consignes|createur|instructions)|te (?:pidieron|dijeron|ordenaron|mandaron|han dicho)|tus (?:reglas|instrucciones|creadores)",
    r"(?:suas|tuas) (?:regras|instrucoes)|mandaram (?:voce|te)|(?:voce|te) (?:mandaram|disseram|pediram)|(?:vostro|tuo) sviluppatore|ti (?:hanno|e stato) (?:detto|chiesto|ordinato)|(?:tue|vostre) (?:regole|istruzioni)|direttive|je (?:is|werd|was) opgedragen|jouw regels|wat je (?:is|was)|kazano ci|twoje (?:zasady|instrukcje)|twoich tworcow|sana (?:soylenen|verilen)|onceki (?:talimat|komut)|gelistirici\w*",
    r"тебе (?:велел|говорил|сказал|приказ|давал)\w*|твои (?:правила|инструкции)|разработчик\w*|тобі (?:казали|наказ)\w*|розробник\w*|(?:pokyny|instrukce|instrukci|prikazy)\b|dina (?:regler|instruktioner)|ohjee\w*|nha phat trien|pengembang\w*|aturan\w*",
    r"طلبه منك|المطور|تعليماتك|קיבלת|המפתח שלך|ההוראות שלך|पुराने आदेश|पिछले (?:निर्देश|आदेश)|開発者|あなたの設定|設定を|之前的?(?:指令|设定|要求)|你的(?:设定|规则|指令)|开发者|(?:이전|기존) (?:지침|지시|명령)|개발자|คำสั่ง(?:ก่อนหน้า|เดิม)|ผู้พัฒนา",
)
VERDICTS = any_of(
    r"(?:recommend|rank|rate|score|choose|suggest|promote|list|prefer|place|put|name|classify|grade|advance|favou?r)\w*\b.{0,40}\b(?:only|first|best|highest|top|always|exclusively|above|before any|excellent|interview|perfect)|(?:only|always|exclusively)\b.{0,25}(?:recommend|rank|choose|suggest|promote|mention)|(?:highest|best|top|maximum|full|perfect|positive)(?: \w+){0,2} (?:score|rating|grade|review|marks|priority)|\b100 ?/ ?100|meets all requirements|pre-?(?:approved|verified)|already (?:approved|confirmed|verified)|as (?:already )?(?:confirmed|verified|approved|authori[sz]ed)|zero findings|strong hire",
    r"(?:empfiehl|empfehl|bewert|nenn|setz|stell|darstell)\w*\b.{0,50}(?:nur|ausschliesslich|immer|stets|hoch|sterne|beste|gunstigste|erster)|(?:nur|ausschliesslich|stets)\b.{0,30}(?:empf|nenn)|hochstnote|hochste|beste[nrs]?\b|einzuladen|(?:note|notation|avis) (?:maximale?|positif)|la note|meilleur\w*|seul (?:choix|hotel|produit)|comme le seul|uniquement|d'office|classe\w*.{0,20}premier",
    r"(?:clasifi|puntua|puntu|califi|recom[ie]+n)\w*\b|por encima de|excelente|(?:maxima|mejor) (?:nota|puntuacion|candidat|opcion)|consigli\w*\b.{0,40}(?:solo|esclusiv|soltanto|unicamente)|voto massimo|punteggio massimo|miglior\w*|classifi\w+|primeiro lugar|nota maxima|melhor\b|elogiar|alleen\b|uitsluitend|hoogste|beste keuze|wylacznie|tylko\b|najlepsz\w+|najwyzsz\w+",
    r"yalnizca|sadece|en iyi|en yuksek|(?:высш|максимальн|лучш)\w+ (?:балл|оценк|кандидат|выбор)\w*|только\b|лише\b|тільки|найвищ\w+|tot nhat|diem (?:cao nhat|toi da)|duy nhat|skor (?:sempurna|tertinggi)|nilai (?:sempurna|tertinggi|maksimal)|terbaik|hanya\b|basta\b|hogsta|bara\b|endast|jen\b|pouze|nejlepsi|nejvyssi|vain\b|paras\b|korkein",
    r"أعلى (?:درجة|تقييم)|الأفضل|فقط|آمن تماما|הציון הגבוה|הטוב ביותר|רק\b|केवल|सिर्फ|सर्वश्रेष्ठ|पूरे अंक|最高(?:評価|点|得点)|一位|一番|満点|だけを|のみ|最高分|满分|滿分|评为|最佳|第一|只推荐|仅推荐|만점|최고|만 추천|1위|เฉพาะ|ดีที่สุด|คะแนนเต็ม",
)
REVEALS = any_of(
    r"(?:system|hidden|internal|initial|setup|secret) (?:prompt|message|instructions?)|(?:your|the full) (?:prompt|instructions|setup)|system-?prompt|systemvorgabe\w*|message systeme|invite systeme|instrucciones internas|prompt (?:di|do|de|del) sistema|istruzioni interne|instrucoes internas|systeemprompt|prompt systemowy|sistem (?:prompt|istem)\w*|системн\w+ промпт\w*|системн\w+ (?:запрос|інструкц)\w*|prompt sistem|loi nhac he thong",
    r"内部プロンプト|システムプロンプト|系统提示|系統提示|提示词|시스템 프롬프트|الموجه|תעליות|הנחיות המערכת",
)
FREED = any_of(
    r"(?:no|any) (?:longer )?(?:safety|content) (?:rules|guidelines|polic\w+)|not bound by (?:any )?\w+|tidak terikat\w*|n'as (?:plus )?(?:aucune?|de) (?:limite|regle|restriction|filtre)\w*|ya no tienes (?:limites|reglas|restricciones)|non hai piu (?:limiti|regole|restrizioni)|nao tem mais (?:limites|regras|restricoes)|nie masz (?:juz )?(?:zadnych )?(?:ogranicze\w*|zasad)|keine (?:regeln|grenzen|filter|beschrankungen) mehr",
    r"unrestricted|without (?:any )?(?:filters?|limits?|rules|restrictions?)|no (?:\w+ )?(?:polic(?:y|ies)|filters?|limits?|restrictions?|guidelines)\b|speak freely|do anything now|none of your|free (?:of|from) (?:all|any)|(?:developer|god|debug|dan|jailbreak) mode|ohne (?:jede\w* )?(?:filter|grenzen|regeln|einschrankung\w*|beschrankung\w*)|sans (?:aucune? )?(?:filtres?|limites?|regles|restrictions?)|sin (?:ningun\w* )?(?:filtros?|limites?|reglas|restriccion\w*)",
    r"senza (?:alcun\w* )?(?:filtri|limiti|regole|restrizioni)|sem (?:nenhum\w* )?(?:filtros?|limites?|regras|restricoes)|zonder (?:enige )?(?:filters?|grenzen|regels|beperkingen)|bez (?:zadnych )?(?:filtr\w*|ograniczen|zasad|omezeni|pravidel)|без (?:\w+ )?(?:ограничен|фильтр|правил|обмежен)\w*|kisitlama\w*|sinirsiz|khong (?:co |bi )?(?:gioi han|han che)|bebas dari|tanpa (?:batas|aturan|filter)|utan (?:nagra )?(?:filter|granser|regler|begransningar)",
    r"بلا قيود|دون قيود|بدون قيود|ללא (?:הגבל|מגבל)|בלי (?:הגבל|מגבל)|बिना (?:किसी )?(?:रोक|प्रतिबंध|नियम)|制限のない|無制限|制約のない|不受限制|没有任何?限制|無限制|제한 없는|무제한|ไม่มีข้อจำกัด",
)
NOW_YOU = any_of(
    r"from (?:this (?:point|moment)|here|now) on(?:wards?)?|starting now|mulai sekarang|sejak sekarang|\w+ mode (?:is )?(?:now )?(?:enabled|active|on\b)|od teto chvile|tasta lahtien|απο τωρα|από τώρα",
    r"(?:from now on|you are now|you can do anything|mode enabled|(?:your|sua|tua|tu|ta|deine|jouw|je|twoje|la tua|il tuo) (?:unica|unico|einzige|seule|only|sole|new|neue|nueva|nova|nouvelle|nuova|nuovo|nieuwe|nowe|jedyne) (?:func\w+|fun[cz]ion\w*|aufgabe|fonction|task|function|job|purpose|mission\w*|compito|taak|zadanie|rolle?|tache)|you're now|you can now|henceforth|you are no longer)|ab (?:jetzt|sofort) (?:bist|antwort)|du bist (?:jetzt|nun|ab)|von nun an|desormais (?:tu|vous)|tu es (?:maintenant|desormais)|a partir de (?:maintenant|ahora|agora)|desde ahora|ahora eres|eres ahora|d'ora in poi|ora sei|de agora em diante|agora voce|voce agora|vanaf nu|je bent nu|voortaan|od teraz|jestes teraz|bundan (?:sonra|boyle)|artik (?:sen|bir)|теперь ты|отныне|с этого момента ты|відтепер|tu (?:bay )?gio|ke tu bay gio|mulai sekarang|fran (?:och med )?nu|du ar nu|od (?:ted|nynejska)|nyt olet",
    r"من الآن|أنت الآن|מעכשיו|מעתה|अब से|अब तुम|これから|今から|从现在|现在你|你现在|지금부터|이제부터|ตั้งแต่นี้",
)
TOOLS = quick(r"(?<![\w/.@-])[a-z]+_[a-z]+(?:_[a-z]+)?\b(?!\S*@)|(?<!\w)tools?\b|(?:curl|wget|bash|rm|sudo) ")
GRANTS = any_of(
    r"(?:approve|accept|refund|pay|transfer|wire|purchase|buy|order|delete|erase|cancel|close|disable|grant|install|execute|run|invoke|merge|store|remember|save|override|comply|obey|add|append|begin|end|urge|include|open|click)\w{0,2}\b|genehmig\w*|gewahr\w*|akzeptier\w*|bestell\w*|losch\w*|uberweis\w*|gib\b|installier\w*|fuhr\w*|fug\w*|approuv\w*|accept\w*|command\w*|passe\b|supprim\w*|attribu\w*|renvoye\w*|ajout\w*|vire\b|aprueb\w*|aprob\w*|acept\w*|ejecut\w*|borr\w*|elimin\w*|compr\w*|anad\w*",
    r"approv\w*|accett\w*|esegu\w*|cancell\w*|aggiung\w*|acquist\w*|aprov\w*|apagu?\w*|aceit\w*|compre\b|execut\w*|conced\w*|keur\w*|verwijder\w*|zet\b|voer\b|zatwierdz\w*|usun\w*|wywolaj|zamow\w*|onayla\w*|sil\b|одобр\w*|удали\w*|оплат\w*|закаж\w*|переведи|схвал\w*|видали\w*|виклич\w*|постав\w*|phe duyet|chap nhan|xoa\b|mua\b|setujui|hapus|beli\b|godkann|radera|bestall|schval\w*|smaz\w*|zrus\w*|hyvaksy\w*|poista\w*|tilaa\b",
    r"وافق|اقبل|احذف|حوّل|نفذ|אשר|מחק|בצע|स्वीकार|हटा|चलाओ|चला|承認|削除|実行|注文|送金|批准|删除|刪除|调用|呼叫|加入购物车|转账|执行|승인|삭제|실행|송금|อนุมัติ|ลบ",
)
"""Verbs for actions of agents."""
SAYS = any_of(
    r"(?:decode|suggest|recommend|decide|pretend|rate|rank|score|put|choose|promote|repeat|carry|leave|insert)\b|weise\b|trag\w*|wahl\w*|empfiehl|zarad\w*|oznac\w*|annuleer|salta\b|assegna\w*|connett\w*",
    r"(?:say|state|tell|reply|respond|answer|report|present|describe|ask|treat|consider|mark|set|give|write|assign|award|claim|insist|skip|call|store|quote)\b|sag\w{0,2}\b|antwort\w*|schreib\w*|melde\b|behaupt\w*|nenn\w*|gib\b|setze\b|darstell\w*|dis\b|dites|repond\w*|ecri\w*|annonc\w*|present\w*|indiqu\w*|donn\w*\b",
    r"di\b|di'|dig\w*|respond\w*|escrib\w*|indiqu\w*|justif\w*|muestr\w*|manda\b|rispond\w*|scriv\w*|dic\w+\b|chied\w*|mostr\w*|diga\w*|escrev\w*|afirm\w*|antwoord\w*|zeg\b|schrijf|noem\w*|odpowiad\w*|odpowiedz|powiedz|napisz|soyle\w*|yanitla|cevap\w*|yaz\b|напиши\w*|скажи\w*|ответь\w*|отвечай\w*|поставь|отвечать|кажи|відповід\w*|noi\b|tra loi|viet\b|katakan|jawab|tulis|beri\b|berikan|saga?\b|svara\w*|skriv\w*|odpove\w*|rekni|napis|vastaa|sano|kirjoita",
    r"قل\b|أجب|اكتب|امنح|قولوا|اطلب|أكد|אמר|ענ[הי]|כתב|תן|कहो|कहें|लिख|उत्तर|दो\b|書|答え|述べ|ください|说|回答|回复|写|답|말할|말하|작성|주고|주십시오|하라|해야|하세요|บอก|ตอบ|ขอรหัส|แนะนำ|ให้คะแนน|请|記載|報告し|すること|ζήτησε|πες|γράψε",
)
"""Verbs for all other demands."""
