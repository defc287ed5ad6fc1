"""Words that say what stands behind them, in the languages that agents mostly speak. All are patterns for text in small letters."""

from __future__ import annotations

PHONE = (
    r"(?<![a-z])(?:tele)?phones?\b|\btel\b|\bt[ée]l[ée]?(?:phone)?\b|telefon\w{0,8}|tel[ée]fono|telefone|puhelin\w{0,4}|\bmobiles?\b|mobil(?:e|nummer|telefon\w*|nr)?\b|m[óo]viles|m[óo]vil|celular|cellulare|\bcell\b|"
    r"\bportable\b|handy(?:nummer)?|rufnummer|fax|msisdn|whats ?app|\bsms\b|\bsignal\b|\bgsm\b|kom[óo]rk\w+|\btel\. kom|erreichbar|joignable|\bcep\b|"
    r"电话|電話|手机|手機|携帯|連絡先|联系方式|전화|휴대폰|핸드폰|연락처|번호는|телефон\w{0,3}|\bтел\b|моб\w*|номер[а]? (?:його|її|её|его)|\b(?:його|її|её|его) номер|"
    r"هاتف|جوال|موبايل|الجوال|محمول|טלפון|נייד|מוביל|फ़?ोन|फोन|मोबाइल|điện thoại|\bđt\b|\bsđt\b|nomor (?:hp|telepon|wa|sopir)|\bhp\b|telepon|โทร|เบอร์|"
    r"\b(?:her|his|their|private|personal|direct|home|private) (?:number|line)|number is\b|\bcall(?:ed|ing)?\b|\bdial\b|\bring\b|\btext (?:him|her|them)|ll[áa]ma\w*|appel\w+ (?:le|au)|chiam\w+|rufen sie|ligue|bel(?:len)?\b|zadzwo\w+|ring (?:på|til)|arayın|звони\w*|"
    r"\u260e|\U0001f4de|\U0001f4f1|\u2706|\u2121"
)
"""A telephone number follows."""
NOT_PHONE = (
    r"\border\b|orders?\b|bestell\w*|auftrag\w*|commande|pedido|ordine|encomenda|zam[óo]wieni\w*|zakaz|заказ\w*|замовлен\w*|sipari[şs]\w*|pesanan|đơn|订单|訂單|注文|주문|طلب|הזמנ|ऑर्डर|"
    r"track\w*|sendung\w*|suivi|seguimiento|spedizione|rastrei\w+|przesy[łl]k\w*|трек\w*|kargo|resi\b|vận đơn|运单|快递|追跡|운송장|شحن|"
    r"invoice|rechnung\w*|facture|factura|fattura|fatura|faktur\w*|сч[её]т\w*|рахун\w*|发票|請求|청구|ticket|vorgang\w*|aktenzeichen|case\b|\bref\b|reference|referenz|r[ée]f[ée]rence|referencia|riferimento|"
    r"\bid\b|\bids\b|serial|serien\w*|isbn|issn|\bean\b|\bupc\b|\bsku\b|\bgtin\b|\bimei\b|iccid|\bpnr\b|epoch|timestamp|unix|version|build|commit|\bsha|hash|checksum|\bport\b|error|code\b|\bnip\b|regon|krs|\bkvk\b|\bbtw\b|siret|siren|\brcs\b|vat\b|\bust|"
    r"e-ticket|policy|contract|vertrag\w*|kunden-?n\w+|customer (?:no|number)|member|confirmation|booking|buchung\w*|r[ée]servation|reserva|prenotazione|linha digit|boleto|part\b|model|article|artikel|item|batch|lot\b|chassis|\bvin\b|"
    r"编号|单号|番号:|승인|영수증|אסמכתא|مرجع|mã |nomor (?:pesanan|resi)|revenue|umsatz|budget|usd|eur|\$|€|£|¥|range|bytes|limit|doi\b"
)
"""Another number follows."""
COMPANY_LINE = (
    r"hotline|help ?line|help ?desk|support|customer (?:service|care|support)|service ?(?:center|centre|desk)|kunden(?:service|dienst|betreuung|hotline)|service-?nummer|sperr|notruf|servicio (?:al|de atenci[óo]n)|atenci[óo]n al cliente|"
    r"service client|assistance|assistenza|servizio clienti|sac\b|atendimento|klantenservice|infolini\w*|obsług\w+ klienta|kundtj[äa]nst|kundeservice|asiakaspalvelu|горяч\w+ лини\w*|поддержк\w*|підтримк\w*|гаряч\w+ ліні\w*|m[üu]şteri hizmetleri|"
    r"客服|热线|熱線|サポート|お客様|フリーダイヤル|カスタマー|고객센터|고객\s?지원|الدعم|خدمة العملاء|שירות לקוחות|मदद|हेल्पलाइन|कस्टमर|chăm sóc khách hàng|tổng đài|layanan pelanggan|toll-?free|switchboard|reception|front desk|rezeption|standard t|emergency|"
    r"police|polizei|hospital|clinic|embassy|botschaft|consulate|restaurant|hotel|museum|office\b|b[üu]ro\b|zentrale|centralita|\bour (?:team|number|line|store|shop)|(?:call|contact|reach) us|rufen sie uns|ll[áa]menos|appelez-nous|for example|e\.g\.|sample|z\. ?b\.|ejemplo|par exemple|esempio|exemplo|example|fictional|fictitious|dummy|format"
)
"""The number of an organisation, or of nobody."""
CARD = r"card|karte|carte|tarjeta|carta|cart[ãa]o|kaart|kart[aąęy]?|карт\w+|картк\w+|visa|master|amex|american express|maestro|\bpan\b|卡号|银行卡|信用卡|カード|카드|بطاقة|כרטיס|कार्ड|thẻ|kartu|kort\w*|kortti|deposit|credit|debit|paid|cvv|cvc|refund"
"""A payment card follows."""
NOT_CARD = r"imei|order|track|bestell|sendung|serial|iccid|\bsim\b|invoice|reference|meter|barcode|gtin|\bid\b|test|testkarte|prueba|demo|sandbox|luhn|example|beispiel|sample|ejemplo|esempio|exemplo|exemple|dummy|fake|单号|订单|注文|주문|заказ"
BIRTH = (
    r"date of birth|birth ?date|\bd\.?o\.?b\b|geburtsdatum|geb\. am|date de naissance|fecha de nacimiento|data di nascita|data de nascimento|geboortedatum|data urodzenia|дата рождения|дата народження|doğum tarihi|تاريخ الميلاد|"
    r"תאריך לידה|जन्म ?(?:तिथि|तारीख)|生年月日|出生日期|생년월일|ngày sinh|tanggal lahir|födelsedatum|fødselsdato|syntymäaika|วันเกิด"
)
"""The day on which a person was born follows; "was born on" also stands in encyclopaedias."""
BANK_ACCOUNT = r"sort code|routing (?:number|no)|\baba\b|bankleitzahl|\bblz\b|\bbsb\b|\bifsc\b|\bclabe\b|\bcbu\b|расч[её]тн\w+ сч[её]т|銀行口座|口座番号|银行账号|银行卡|계좌|ag[êe]ncia"
"""The account is one of a bank."""
ACCOUNT_NUMBER = r"account(?: number| no\.?)?|konto(?:nummer)?|compte|cuenta|conto|conta|rekening(?:nummer)?|rachunk\w*|сч[её]т|рахунок|口座番号|账号|帐号|계좌(?:번호)?|clabe|cbu|clave"
RESIDES = (
    r"\blives? (?:at|in|on)|\bliving at|\breside[sd]? (?:at|in|on)|home address|residential address|private address|\bwohn(?:t|haft|en|anschrift)\b|privatadresse|\bhabite\b|domicili[ée]e?s? (?:au|à)|demeurant|\bvive en\b|domicilio|\breside en|reside en|\babita\b|residente (?:in|a)\b|residenza|"
    r"\bmora (?:na|no|em)\b|reside (?:na|no|em)|\bwoont\b|woonachtig|mieszka|zamieszk\w+|прожива\w+|живёт|живет|мешкає|проживає|oturuyor|ikamet|ev adresi|住址|家庭住址|住在|住所|自宅|お住まい|자택|거주|يسكن|يقيم|عنوان (?:المنزل|السكن)|מתגורר\w?|גר(?:ה)? ב|रहत[ेाी]|घर का पता|sống tại|nhà riêng|tinggal di|alamat rumah|\bbor (?:på|i)\b|\basuu\b|hemadress"
)
"""The address of a person follows."""
SAMPLE_WANTED = r"sample|example|fake|mock|dummy|test ?data|fixture|seed|placeholder|lorem|synthetic|fictional|fictitious|template|persona|made[- ]up|beispiel|muster|testdaten|ejemplo|prueba|ficti|exemple|esempio|exemplo|voorbeeld|przykład|пример|приклад|örnek|例|サンプル|テスト|示例|测试|예시|샘플|مثال|דוגמ|उदाहरण|ví dụ|contoh|story|scene|novel|dialogue|screenplay"
"""The user wants data of nobody."""
