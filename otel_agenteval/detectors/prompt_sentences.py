"""Separate a system prompt's instructions to the agent from its texts for users.

A sentence is an instruction if it gives the agent a role, mentions the user in the third person, or is about answers, tools, tone,
secrecy, or escalation. A sentence with words such as *never* or *do not* is an instruction too, except in sections with facts
or scripted replies. Quotations aren't instructions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_READ = 600
"""Maximum number of characters to read per sentence."""
_SENTENCE = re.compile(r"(?<=[.!?;؟।])\s+|(?<=[。！？；])|\n+")

_STRONG = re.compile(
    r"""
      \b(?:you\ are|you're|act\ as|your\ (?:role|task|job|goal|purpose|persona|mission|name)\b|you\ (?:must|should|will|shall|may|can|have\ access|only|never|always|work|help|answer|assist|speak|plan|support|handle|write)\b)
    | \b(?:if|when|whenever|unless|until|once|should)\s(?:\w+\s){0,3}(?:users?|customers?|callers?|guests?|clients?|patients?|students?|visitors?|travell?ers?|employees?|candidates?|passengers?|applicants?|buyers?|shoppers?|players?|learners?|someone|somebody|they)\s(?:\w+\s){0,3}?(?:asks?|asked|wants?|insists?|mentions?|threatens?|complains?|requests?|says?|seems?|sounds?|tries|try|refuses?|disputes?|demands?|claims?|reports?|raises?|names?|brings?|uses?|pushes|gets?|becomes?|angry|upset|rude|frustrated|unsure|abusive|silent|writes?|speaks?|has\ (?:tried|asked|given|not))\b
    | \b(?:tell|ask|address|greet|remind|inform|refuse|offer|give|send|route|transfer|redirect|steer|upsell|nudge|verify|authenticate)\s(?:the\s|a\s|any\s|each\s|every\s)?(?:users?|customers?|callers?|guests?|clients?|patients?|students?|visitors?|members?|them|him|her|people)\b
    | \b(?:reveal|disclose|system\ prompt|these\ (?:instructions|rules|guidelines)|this\ prompt|instructions|confidential|codename|code\ name|internal(?:ly)?|escalat\w+|hand\s?off|knowledge\ base|jailbreak|role-?play|persona|tool\ calls?|the\ tools?|call\ the|function|json|markdown|bullet\ points?|emojis?|tone|competitors?|chain\ of\ thought|out\ of\ scope|off-topic|(?:do\ not|don't|never)\ mention|never\ say|do\ not\ say|staff\ only|override|tier\s?[0-9])\b
    | \b(?:answer|respond|reply|speak|write|keep\ (?:answers|replies|responses|it)|summari[sz]e|cite|format|limit\ (?:answers|replies))\s(?:only|always|in|with|briefly|politely|concisely|as|to|using|short|under|below|the|at|no|all|every|sources?|each)\b
    | \b\w+_\w+\b
    | \bdu\ bist\b|\bsie\ sind\ (?:der|die|das|ein)|\bdeine\ (?:aufgabe|rolle)|\bihre\ (?:aufgabe|rolle)|\bdu\ (?:darfst|sollst|musst|hilfst|antwortest)
    | \b(?:antworte[nt]?|erwähne|nenne|verrate|gib|leite|frage|verwende|benutze|weise|sprich|eskaliere|biete|lehne|duze|sieze|bleibe?|beende|behandle|schreibe?)\b(?!.{0,40}\b(?:wir|uns|bitte)\b)
    | \b(?:der|die|den|dem|einen?|jede[nrms]?)\s(?:nutzer\w*|kund\w+|anrufer\w*|benutzer\w*|gäste?n?|patient\w*|mandant\w*|versichert\w*)\b.{0,120}\b(?:fragt|will|verlangt|nennt|droht|niemals|nie|nicht|immer|an|weiter|sagt|möchte)\b | \b(?:wenn|falls|sobald)\ (?:der|die|ein|eine|jemand)\b.{0,120}\b(?:fragt|will|verlangt|nennt|droht|möchte|sagt|bittet|wünscht|erwähnt|meldet|beschwert|besteht|klagt)\b
    | \b(?:vertraulich\w*|anweisungen|interne[rsnm]?|systemprompt|tonfall|werkzeuge?|codename|deckname)\b
    | \b(?:tu\ es|vous\ êtes|ton\ rôle|votre\ rôle|ta\ mission|votre\ mission|tu\ (?:dois|ne|aides|réponds)|vous\ (?:devez|ne\ devez))\b | \b(?:réponds|répondez|ne\ (?:révèle|révélez|mentionne|mentionnez|divulgue|divulguez|dis|dites|donne|donnez|propose|proposez|promets|promettez)|propose|transfère|transférez|utilise|utilisez|reste|vouvoie|tutoie|termine|demande)\b | \bsi\ (?:le|la|l'|l’|un|une|on|quelqu'un)\s?.{0,60}\b(?:demand\w+|veut|parle|insiste|menace|mentionne|dit|signale|se\ plaint|souhaite|exige|évoque)\b | \b(?:confidentiel\w*|consignes|instructions|interne|invite\ système)\b
    | \b(?:eres|usted\ es|tu\ (?:función|tarea|objetivo|papel)|su\ (?:función|tarea)|debes|debe\ (?:responder|usar))\b | \b(?:responde|contesta|no\ (?:reveles|menciones|digas|ofrezcas|prometas|des|compartas|hables)|nunca\ (?:reveles|menciones|digas|ofrezcas|prometas|des|compartas)|usa\ la|utiliza|ofrece|deriva|escala|transfiere|trata)\b | \bsi\ (?:el|la|un|una)\s(?:cliente|usuari\w+|paciente|huésped|viajero|alumn\w|visitante|pasajero|huésped|ciudadan\w|persona).{0,160} | \b(?:confidencial\w*|instrucciones|interno|interna)\b
    | \b(?:sei\ (?:un|una|l'|il|la)|il\ tuo\ (?:compito|ruolo)|devi|non\ (?:rivelare|menzionare|dire|promettere|offrire|nominare|divulgare)|mai\ (?:rivelare|menzionare)|rispondi|usa\ (?:lo|il|la|un)|chiedi|trasferisci|inoltra|mantieni)\b | \bse\ (?:il|la|lo|l'|un|una|qualcuno)\b.{0,60}\b(?:chied\w+|vuole|domand\w+|insist\w+|minacci\w+|dice|menzion\w+|segnal\w+|si\ lament\w+|parla)\b | \b(?:riservat\w+|istruzioni|interno|interna)\b
    | \b(?:você\ é|és\ (?:o|a|um|uma)|tu\ és|sua\ (?:função|tarefa)|a\ tua\ (?:função|tarefa)|deve\ (?:responder|usar)|responda|não\ (?:revele|mencione|diga|prometa|ofereça|divulgue|fale)|nunca\ (?:revele|mencione|diga|prometa|ofereça|divulgue)|use\ a\ ferramenta|transfira|encaminhe|mantenha)\b | \bse\ (?:o|a|um|uma)\s(?:cliente|usuári\w|utilizador\w*|paciente|hóspede).{0,160} | \b(?:confidencia\w+|instruções|interno|interna)\b
    | \b(?:je\ bent|u\ bent|jij\ bent|jouw\ (?:taak|rol)|je\ (?:mag|moet|taak))\b | \b(?:antwoord|noem|onthul|vermeld|verwijs|gebruik|vraag|bied|blijf|spreek)\b(?=.{0,60}\b(?:nooit|altijd|niet|alleen|de\ klant|geen|in|naar)\b) | \bals\ (?:de|een)\s(?:klant|gebruiker|patiënt|beller|gast|huurder).{0,160} | \b(?:vertrouwelijk\w*|instructies|interne?)\b
    | \b(?:jesteś|twoim\ zadaniem|twoja\ rola|odpowiadaj|nie\ (?:ujawniaj|wspominaj|podawaj|obiecuj|mów|proponuj)|nigdy\ nie|zawsze\ (?:odpowiadaj|używaj|pytaj)|używaj|przekaż|poproś|mów)\b | \b(?:jeśli|jeżeli|gdy)\s(?:klient|użytkownik|pacjent|pasażer|rozmówca|gość).{0,160} | \b(?:poufn\w+|instrukcj\w+|wewnętrzn\w+)\b
    | (?:\b(?:ты|вы)\s[—–-])|\b(?:ты|вы)\s(?:\w+\s){0,3}(?:ассистент|помощник|бот|консультант|оператор)|\b(?:твоя|ваша)\s(?:задача|роль)|\b(?:отвечай(?:те)?|никогда\ не|не\ (?:раскрывай|упоминай|сообщай|обещай|говори|предлагай|называй|обсуждай)(?:те)?|используй(?:те)?|переводи(?:те)?|обращайся|спрашивай|предлагай)\b | \bесли\ (?:клиент|пользовател|пациент|гость|пассажир|абонент|покупател).{0,160} | \b(?:конфиденциальн\w*|инструкци\w+|внутренн\w+)\b
    | (?:\b(?:ти|ви)\s[—–-])|\b(?:ти|ви)\s(?:\w+\s){0,3}(?:асистент|помічник|бот)|\b(?:твоє|ваше)\sзавдання|\b(?:відповідай(?:те)?|ніколи\ не|не\ (?:розкривай|згадуй|повідомляй|обіцяй|кажи|пропонуй)(?:те)?|використовуй(?:те)?)\b | \bякщо\ (?:клієнт|користувач|пацієнт|гість|пасажир|покупець).{0,160} | \b(?:конфіденційн\w*|інструкці\w+|внутрішн\w+)\b
    | \b(?:sen\b.{0,80}asistan\w+|asistanısın\w*|görevin|rolün|asla\ .{0,120}(?:ma|me)(?:yın|yin)?\b|yanıtla\w*|cevapla\w*|cevap\ ver\w*|yanıt\ ver\w*|söyleme|açıklama(?:yın)?[.!]|bahsetme|paylaşma|teklif\ etme|yönlendir|kullan[.!])\b | \b(?:müşteri|kullanıcı|hasta|yolcu|misafir)\b.{0,120}\b(?:sorarsa|isterse|derse|ise)\b | \b(?:gizli\w*|talimat\w*|dahili)\b
    | (?:أنت\ (?:ال)?(?:مساعد|وكيل|موظف)|مهمتك|دورك|لا\ (?:تكشف|تذكر|تفصح|تقدم|تعد|تقل|تشارك|تعط)|أجب|استخدم|إذا\ (?:سأل|طلب|كان|قال|ذكر)|سري|سرية|التعليمات|داخلي)
    | (?:את[הה]?\ (?:ה?עוזר|ה?סוכן|נציג)|תפקידך|אל\ ת(?:חשוף|גלה|ציין|זכיר|ציע|אמר|בטיח|שתף)|אסור\ לך|ענה\b|לעולם\ אל|אם\ (?:ה?לקוח|ה?משתמש|ה?מטופל)|סודי|הוראות|פנימי|השתמש)
    | (?:(?:आप|तुम)\ .{0,80}(?:सहायक|असिस्टेंट|एजेंट)|आपका\ काम|आपकी\ भूमिका|कभी\ (?:न|नहीं|मत)|मत\ (?:बता|दो|करो|कह)|न\ बता|न\ करें|उत्तर\ (?:दें|दो)|जवाब\ (?:दें|दो)|यदि\ (?:ग्राहक|उपयोगकर्ता)|अगर\ (?:ग्राहक|उपयोगकर्ता|यूज़र|मरीज)|गोपनीय|निर्देश|आंतरिक)
    | (?:あなた(?:は|の)|(?:ない|ません)でください|してはいけ|ては(?:いけ|なりま)|しないこと|すること(?:。|$)|(?:答え|回答し|応答し|返答し|使用し|使っ|案内し|伝え|確認し|提案し|にし|勧め|報告し|転送し|断っ|保っ|行っ|呼び出し)てください|(?:顧客|お客様|ユーザー|利用者|患者)(?:が|に|から|の).{0,60}(?:場合|とき|たら|れば|言わ)|絶対に|決して|極秘|機密|社外秘|内部|指示|プロンプト|ツール|口調|敬語)
    | (?:(?:你|您)(?:是|的(?:任务|角色|职责|任務|職責))|(?:不要|不得|禁止|切勿|绝不|絕不|请勿|請勿|不可|严禁|嚴禁|别)(?:.{0,30})(?:透露|提及|说|說|承诺|承諾|泄露|洩漏|告诉|告訴|讨论|討論|提供|主动|主動|推荐|推薦|回答|使用|称|给)|(?:如果|若|当|當)(?:用户|客户|用戶|客戶|顾客|顧客|对方|患者|学生)|(?:用户|客户|用戶|客戶|顾客|顧客)(?:.{0,20})(?:时|時|要求|询问|詢問|问|問)|必须|必須|务必|務必|始终|始終|回答(?:时|時|要|用)|回复(?:时|要|用)|只(?:回答|回复|能回答|能用)|内部|內部|机密|機密|保密|指令|提示词|提示詞|工具|语气|語氣)
    | (?:(?:당신|너|귀하)(?:은|는)|당신의\ (?:역할|임무)|(?:하지|말하지|밝히지|공개하지|언급하지|제공하지|알려주지|약속하지|추천하지)\ ?(?:마|말|않)|절대|반드시|항상\ .{0,60}(?:하세요|하라|해야|답|사용)|(?:답변|대답|응답|사용|안내|확인|요청)(?:하세요|하십시오|해야|할\ 것|하라)|(?:사용자|고객|환자|손님)(?:가|이|에게|의).{0,60}(?:경우|때|면|마|않|요청)|기밀|비밀|내부|지시|도구|말투|존댓말)
    | \b(?:bạn\ là|nhiệm\ vụ\ của\ bạn|vai\ trò|không\ (?:được|bao\ giờ|tiết\ lộ|nhắc|đề\ cập|hứa)|tuyệt\ đối|luôn\ (?:trả\ lời|dùng|xưng|hỏi)|trả\ lời\ (?:bằng|ngắn|khách)|nếu\ (?:khách|người\ dùng|bệnh\ nhân)|đừng|nội\ bộ|bí\ mật|hướng\ dẫn\ này|công\ cụ)\b
    | \b(?:kamu\ adalah|anda\ adalah|tugas(?:mu|\ anda)|peran(?:mu|\ anda)|jangan|selalu\ (?:jawab|gunakan|tanya|balas)|jawab(?:lah)?\ (?:dalam|dengan|hanya|singkat)|jika\ (?:pengguna|pelanggan|pasien|tamu|penumpang)|(?:bersifat\ )?rahasia|internal|instruksi|dilarang)\b
    | \b(?:du\ är|din\ (?:uppgift|roll)|svara|avslöja|nämn|lova|hänvisa|använd|erbjud)\b(?=.{0,80}) (?:\s|[.,!]) | \bom\ (?:kunden|användaren|patienten|gästen|en\ kund).{0,160} | \b(?:konfidentiell\w*|instruktioner\w*|interna?|hemlig\w*)\b
    | \b(?:jsi|jste)\s(?:\w+\s){0,3}(?:asistent\w*|pomocník)|\b(?:odpovídej\w*|nikdy\ ne\w+|neprozrazuj\w*|nezmiňuj\w*|nenabízej\w*|vždy\ (?:odpovídej|použij)|používej)\b | \b(?:pokud|když)\s(?:se\s)?(?:zákazník|uživatel|pacient|host).{0,160} | \b(?:důvěrn\w+|interní\w*|pokyny)\b
    | (?:είσαι\ |είστε\ ο|είστε\ η|μην\ (?:αποκαλύ|αναφέρ|πεις|δίν|προτείν|υπόσχ)|ποτέ\ μη|απάντα|απαντάς|να\ απαντ|αν\ ο\ (?:πελάτης|χρήστης)|εμπιστευτικ|οδηγίες|εσωτερικ)
    | \b(?:ești|sunteți\ (?:un|asistent)|nu\ (?:dezvălui|menționa|promite|oferi|spune)\w*|niciodată|răspunde(?:ți)?|folosește|dacă\ (?:clientul|utilizatorul|pacientul).{0,160}|confidențial\w*|instrucțiuni\w*|intern[ăe]?)\b
    | \b(?:olet|älä|vastaa|jos\ (?:asiakas|käyttäjä)|luottamuksel\w+|du\ er|svar\ (?:altid|kun|på)|hvis\ (?:kunden|brugeren|brukeren)|fortrolig\w*|te\ egy|válaszolj|soha\ ne|bizalmas)\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_TO_USER = re.compile(
    r"(?:you|ないでください|てください|vous\ (?:devez|ne)|tu\ (?:dois|ne)|debes|debe\ usar|usa\ |utiliza|devi\b|deve\ usar|je\ (?:mag|moet)|use\ a|gebruik|vraag|verwende|benutze|frage|demande|utilise[zr]?|ask\ |kullan)",
    re.IGNORECASE,
)
"""Pattern for commands that are advice to the user if they occur in sections with facts."""
_WEAK = re.compile(
    r"""(?:^|[;:,]\s|\band\s|\bbut\s)(?:[-*•>\d.)\s]*)(?:never|always|do\ not|don't|don’t|under\ no\ circumstances)\b
      | ^[-*•>\d.)\s]*(?:only|avoid|ensure|make\ sure|refuse|refrain|prefer|use|ask|answer|keep|close|label|collect|push|hide|check|call|offer|give|stay|write|page|mark|comment|treat|route|follow|include|provide|respond|reply|verify|escalate|limit|translate|summari[sz]e|cite|list|act|be|focus|greet|explain|apologi[sz]e|convert|round|show|log|prioriti[sz]e|adapt|maintain|decline|redirect|stop|skip|assume|suggest|recommend|remind|speak|begin|output|produce|generate|review|select|choose|identify|extract|classify|report|hand|transfer|wait|confirm|mention|discuss|reveal|store|update|create|run|execute|search|load|if\ asked|when\ asked|unless\ asked|authori[sz]e|defer|steer|nudge|upsell|quote|format|return\ (?:only|json|a\ list))\s
      | ^[-*•>\d.)\s]*(?:niemals|nie|immer|vermeide\w*|unter\ keinen\ umständen|jamais|toujours|n['’e]\s?\w+(?:e|ez|s)\ (?:pas|jamais)|évite\w*|nunca\ \w+(?:es|as|a|e)\b|siempre\ \w+(?:a|e)\b|evita|mai|non\ \w+(?:are|ere|ire)\b|sempre\ \w+(?:a|i)\b|não\ (?!pode|deve)\w+e\b|nooit|altijd|nigdy|zawsze|nie\ \w+(?:aj|uj|ij|yj|ej)\b|никогда|всегда|не\ \w+(?:й|йте|ьте)\b|ніколи|завжди|asla|her\ zaman|aldrig|alltid|nikdy|vždy)\s""",
    re.VERBOSE | re.IGNORECASE,
)
_ONLY_TURKISH = frozenset("ığş")
_NEGATED_IN_TURKISH = re.compile(r"\w{3,}(?:ma|me|mayın|meyin|mayınız|meyiniz)[.!]?\s*$")
_ROLE = re.compile(
    r"\b(?:you (?:are|can|help|assist|support|handle)|act as|your (?:role|task|job)|du hilfst|tu aides|ayudas|du bist|tu es|vous êtes|eres|sei un|você é|je bent|jesteś|ты|sen|kamu adalah|bạn là|du är|jsi)\b|あなたは|[你您]是|당신은|أنت|אתה",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"https?://\S+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{2,64}|“[^”\n]{8,2000}”|„[^“”\n]{8,2000}[“”]|«[^»\n]{8,2000}»|»[^«\n]{8,2000}«|「[^」\n]{4,2000}」|『[^』\n]{4,2000}』|\"[^\"\n]{8,2000}\"|(?<!\w)'[^'\n]{12,2000}'(?!\w)|(?<!\w)‘[^’\n]{12,2000}’(?!\w)"
)
_REPLY_TEXT = re.compile(
    r"""(?:\b(?:say|greeting|disclaimer|greet\w*|begin|start|end|close|sign\ off|open|reply|respond|notice|message|script|tell\ \w+(?:\ \w+)?|text|footer|signature|word\ for\ word|verbatim|slogan|motto|faq
      | sage?|begrüßung|hinweis|haftungsausschluss|grußformel|wörtlich|dis|message|mentions?|di|saludo|aviso|mensaje|texto|saluto|avviso|saudação|mensagem|begroeting|disclaimer|powitanie|komunikat|приветствие|сообщение|текст|дисклеймер|selamlama|mesaj|hälsning|pozdrav)\b
      |挨拶|文言|次のように|免責|问候语|开场白|免责声明|以下|인사말|문구|안내문|التحية|رسالة|ברכה|הודעה|अभिवादन|संदेश|lời\ chào|salam|sapaan)[^:：.!?。\n]{0,60}[:：]\s*(?=\S.{6})""",
    re.VERBOSE | re.IGNORECASE,
)
_MARKER = re.compile(r"[\s>*•–-]*\(?\d{1,2}[.)]\s+")
"""Pattern for the number of a list item."""
_HEADING = re.compile(
    r"^\s*(?:\#{1,6}\s*\S|\*\*[^*\n]{2,60}\*\*:?\s*$|</?[A-Za-z][^<>\n]{1,60}>\s*$|[^\n.!?。]{2,60}[:：]\s*$|[A-ZÀ-ÞΑ-ΩА-Я][A-ZÀ-ÞΑ-ΩА-Я0-9 /&-]{3,50}\s*$|【[^】]{1,30}】\s*$)"
)
_LABEL = re.compile(r"[\w ]{2,30}[:：]\s+(?=\S)|[\w ]{2,30}：(?=\S)")
"""Pattern for a label such as ``Tone:`` before text on the same line."""
_RULES = re.compile(
    r"\b(?:rules?|instruct|behaviou?r|style|tone|format|role|task|persona|guideline|limits|conduct|do|don'?ts?|never|always|safety|security|scope|tools?|escalat|confident|internal|identity|process|steps|workflow|output|goal|mission|duties|principles|boundar"
    r"|regel|aufgabe|auftrag|stil|verhalten|grundsätz|rolle|ablauf|ton|règles|consignes|rôle|mission|style|limites|reglas|instrucciones|tarea|estilo|tono|función|límites|normas|regole|istruzioni|compito|stile|ruolo|limiti|regras|instruções|tarefa|estilo|papel|regels|taak|stijl|zasady|zadani|styl|reguły|правил|задач|роль|стиль|инструкц|завдан|kural|görev|üslup|talimat|rol|regler|uppgift|pravidl|úkol|säännö|tehtäv|szabály|feladat|aturan|tugas|peran|quy tắc|nhiệm vụ|vai trò)"
    r"|ルール|規則|役割|指示|口調|制約|规则|角色|任务|要求|语气|規則|규칙|역할|지시|말투|قواعد|تعليمات|المهمة|الأسلوب|דור|כללים|הנחיות|תפקיד|סגנון|नियम|निर्देश|भूमिका|κανόνες|ρόλος|οδηγίες|กฎ|บทบาท",
    re.IGNORECASE,
)
"""Pattern for words in headings of sections with instructions."""
_FACTS = re.compile(
    r"""\b(?:facts?|faqs?|leaflets?|manual|article|knowledge|information|about\ us|opening|hours|prices?|pricing|polic(?:y|ies)|terms|disclaimers?|contact|products?|services|shipping|returns?|delivery|catalog\w*|menu|background|public|fakten|wissen|öffnungszeiten|preise|kontakt|informationen|lieferung|rückgabe
      | horaires|tarifs|informations|livraison|retours|horarios?|precios|información|envíos|devoluciones|datos|orari|prezzi|informazioni|spedizion\w+|horários|preços|informações|openingstijden|prijzen|informatie|godziny|cennik|informacje|факты|часы|цены|информация|доставка|saatler\w*|fiyatlar|bilgiler|öppettider|priser)\b
      |営業時間|料金|情報|よくある|案内|营业时间|价格|信息|常见问题|配送|영업시간|가격|정보|ساعات|الأسعار|معلومات|שעות|מחירים|מידע|समय|मूल्य|जानकारी|giờ|giá|thông\ tin""",
    re.VERBOSE | re.IGNORECASE,
)


def gives_a_role(sentence: str) -> bool:
    """Return True if a sentence gives the agent a role, such as ``You are Ava, …``."""
    return _ROLE.search(sentence[:60]) is not None


def sentences(system: str) -> Iterator[tuple[str, bool | None]]:
    """Yield the sentences, headings, and quotations of a prompt. Together, they contain every letter of the prompt.

    The second value of each pair is None for headings, quotations, list numbers, and labels such as ``Prices:``. For a sentence,
    it is True for facts (for example below "FAQ") and scripted replies (for example after "Say:"), and otherwise False.
    """
    of_facts, rules_level = False, 0
    for line in system.splitlines():
        if not line.strip():
            continue
        label = _LABEL.match(line)
        if label is not None and _is_of_facts(label.group()):
            yield label.group(), None
            yield from _pieces_of_line(line[label.end() :], of_facts=True)
            continue
        heading = line if _HEADING.match(line) and not _ROLE.search(line) else ""
        if heading:
            level = len(heading) - len(heading.lstrip("#")) or _LOWEST
            if _RULES.search(heading) is not None:
                of_facts, rules_level = False, level
            elif not 0 < rules_level < level:  # not a topic below a heading of rules
                of_facts = heading[:2] != "</" and (rules_level > 0 or _is_of_facts(heading))
            yield heading, None
        yield from _pieces_of_line(line[len(heading) :], of_facts)


_LOWEST = 7
"""Level of a heading without ``#``, below all other levels."""


def _is_of_facts(heading: str) -> bool:
    return _FACTS.search(heading) is not None or _REPLY_TEXT.search(heading + " xxxxxxx") is not None


def _pieces_of_line(line: str, of_facts: bool) -> Iterator[tuple[str, bool | None]]:
    if (marker := _MARKER.match(line)) is not None:
        yield marker.group(), None
        line = line[marker.end() :]
    match = _REPLY_TEXT.search(line)
    end = match.end() if match is not None else len(line)
    yield from _pieces_beside_quotations(line[:end], of_facts)
    yield from _pieces_beside_quotations(line[end:], of_facts=True)


def _pieces_beside_quotations(text: str, of_facts: bool) -> Iterator[tuple[str, bool | None]]:
    at = 0
    for quoted in _QUOTED.finditer(text):
        yield from _sentences_of(text[at : quoted.start()], of_facts)
        yield quoted.group(), None
        at = quoted.end()
    yield from _sentences_of(text[at:], of_facts)


def _sentences_of(text: str, of_facts: bool) -> Iterator[tuple[str, bool]]:
    for sentence in _SENTENCE.split(text):
        if sentence:
            yield sentence, of_facts


def is_instruction(sentence: str, of_facts: bool = False) -> bool:
    """Return True if a sentence instructs the agent. Set ``of_facts`` for sentences below a heading such as "FAQ" or "Prices"."""
    sentence = sentence[:_READ]
    if of_facts:
        return any(_TO_USER.match(found.group()) is None for found in _STRONG.finditer(sentence))
    if _STRONG.search(sentence) is not None or _WEAK.search(sentence) is not None:
        return True
    return not _ONLY_TURKISH.isdisjoint(sentence) and _NEGATED_IN_TURKISH.search(sentence) is not None
