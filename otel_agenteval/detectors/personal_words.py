"""Word patterns and known sample values for the detection of personal data.

The patterns match lower-case text in the most frequent languages.
"""

from __future__ import annotations

PHONE = (
    r"phone|\btel\b|\b(?:the|my|your|his|her|their)(?: (?:private|personal|direct|home|work|cell|mobile|contact|new|old|current|other))? number|kontakt:? ?$|contact(?: ?(?:no|number|info))?\.?:? ?$|(?<![a-z])tel(?:_|:)|\bt[ée]l[ée]?(?:phone)?\b|telefon\w{0,8}|tel[ée]fono|telefone|puhelin\w{0,4}|mobile|mobil(?:nummer|telefon\w*|nr)?\b|m[óo]viles|m[óo]vil|celular|cellulare|\bcell\b|"
    r"\bportable\b|handy(?:nummer)?|rufnummer|fax|msisdn|whats ?app|\bsms\b|\bsignal\b|\bgsm\b|kom[óo]rk\w+|\btel\. kom|erreich(?:bar|en sie)[^\n]{0,24}|joignable|mobiel|nås på|\bcep\b|"
    r"电话|電話|手机|手機|携帯|連絡先|联系方式|전화|휴대폰|핸드폰|연락처|번호는|телефон\w{0,3}|\bтел\b|моб\w*|номер[а]? (?:його|її|её|его)|\b(?:його|її|её|его) номер|"
    r"هاتف|جوال|موبايل|الجوال|محمول|טלפון|נייד|מוביל|फ़?ोन|फोन|मोबाइल|điện thoại|\bđt\b|\bsđt\b|nomor (?:hp|telepon|wa|sopir)|\bhp\b|telepon|โทร|เบอร์|"
    r"\b(?:private|personal|direct|home|mobile) (?:number|line)|(?<!tool )(?<!api )\b(?:call|dial|ring|text|phone|reach)(?:ing|ed)?(?: (?:him|her|them|back|me|directly))?(?: (?:at|on|under))?:?\s?\(?$|\b(?:call|ring|text|reach|whatsapp) \w{2,20} (?:at|on|under):? ?\(?$|ll[áa]ma\w*|appel\w+ (?:le|au)|chiam\w+|rufen sie|ligue|bel(?:len)?\b|zadzwo\w+|ring (?:på|til)|arayın|звони\w*|"
    r"\u260e|\U0001f4de|\U0001f4f1|\u2706|\u2121"
)
"""Words before a phone number."""
PHONE_OF = r"|(?<![a-z])(?:numer|numero|número|numéro|nummer|number|numara|номер)\w{0,2} (?:do|di|de|del|della|du|von|of|for|pour|para|för|av|van) (?!\w{0,3} ?(?:NOT))\w{2,20}(?: \w{2,20})?(?: (?:is|ist|est|es|è|é|är|to))?:? ?$"
"""Words before a person's phone number."""
PHONE_AFTER = r"\s?(?:is|ist|est|es|è|é|\(|,)?\s?\(?(?:my|his|her|their|the|meine|seine|ihre|mon|son|mi|su)?\s?(?:\w{3,9} )?(?:number|phone|mobile|cell|home|handy|nummer|telefon|móvil|portable|celular)"
"""Words after a phone number."""
NOT_PHONE = (
    r"_at\b|updated|created|\border\b|orders?\b|bestell\w*|auftrag\w*|commande|pedido|ordine|encomenda|zam[óo]wieni\w*|zakaz|заказ\w*|замовлен\w*|sipari[şs]\w*|pesanan|đơn|订单|訂單|注文|주문|طلب|הזמנ|ऑर्डर|"
    r"track\w*|sendung\w*|suivi|seguimiento|spedizione|rastrei\w+|przesy[łl]k\w*|трек\w*|kargo|resi\b|vận đơn|运单|快递|追跡|운송장|شحن|"
    r"invoice|rechnung\w*|facture|factura|fattura|fatura|faktur\w*|сч[её]т\w*|рахун\w*|发票|請求|청구|ticket|vorgang\w*|aktenzeichen|case\b|\bref\b|reference|referenz|r[ée]f[ée]rence|referencia|riferimento|"
    r"\bid\b|\bids\b|serial|serien\w*|isbn|issn|\bean\b|\bupc\b|\bsku\b|\bgtin\b|\bimei\b|iccid|\bpnr\b|epoch|timestamp|unix|version|build|commit|\bsha|hash|checksum|\bport\b|error|code\b|\bnip\b|regon|krs|\bkvk\b|\bbtw\b|siret|siren|\brcs\b|vat\b|\bust|"
    r"e-ticket|policy|contract|vertrag\w*|kunden-?n\w+|customer (?:no|number)|member|confirmation|booking|buchung\w*|r[ée]servation|reserva|prenotazione|linha digit|boleto|part\b|model|article|artikel|item|batch|lot\b|chassis|\bvin\b|"
    r"编号|单号|番号:|승인|영수증|אסמכתא|مرجع|mã |nomor (?:pesanan|resi)|revenue|umsatz|budget|usd|eur|\$|€|£|¥|range|bytes|limit|doi\b"
)
"""Words before other kinds of numbers."""
PHONE += PHONE_OF.replace("NOT", NOT_PHONE)
COMPANY_LINE = (
    r"hotline|help ?line|help ?desk|support|customer (?:service|care|support)|service ?(?:center|centre|desk)|kunden(?:service|dienst|betreuung|hotline)|service-?nummer|sperr|notruf|servicio (?:al|de atenci[óo]n)|atenci[óo]n al cliente|"
    r"service client|assistance|assistenza|servizio clienti|sac\b|atendimento|klantenservice|infolini\w*|obsług\w+ klienta|kundtj[äa]nst|kundeservice|asiakaspalvelu|горяч\w+ лини\w*|поддержк\w*|підтримк\w*|гаряч\w+ ліні\w*|m[üu]şteri hizmetleri|"
    r"客服|热线|熱線|サポート|お客様|フリーダイヤル|カスタマー|고객센터|고객\s?지원|الدعم|خدمة العملاء|שירות לקוחות|मदद|हेल्पलाइन|कस्टमर|chăm sóc khách hàng|tổng đài|layanan pelanggan|toll-?free|switchboard|reception|front desk|rezeption|standard t|emergency|"
    r"police|polizei|hospital|clinic|embassy|botschaft|consulate|restaurant|hotel|museum|office\b|b[üu]ro\b|zentrale|centralita|\bour (?:team|number|line|store|shop)|(?:call|contact|reach) us|rufen sie uns|ll[áa]menos|appelez-nous|for example|e\.g\.|sample|z\. ?b\.|ejemplo|par exemple|esempio|exemplo|example|fictional|fictitious|dummy|format"
)
"""Words near the phone number of an organization, or of nobody."""
CARD = r"card|karte|carte|tarjeta|carta|cart[ãa]o|kaart|kart[aąęy]?|карт\w+|картк\w+|visa|master|amex|american express|maestro|\bpan\b|卡号|银行卡|信用卡|カード|카드|بطاقة|כרטיס|कार्ड|thẻ|kartu|kort\w*|kortti|deposit|credit|debit|paid|cvv|cvc|refund"
"""Words before a payment card number."""
NOT_CARD = r"imei|order|track|bestell|sendung|serial|iccid|\bsim\b|invoice|reference|meter|barcode|gtin|\bid\b|test|testkarte|prueba|demo|sandbox|luhn|example|beispiel|sample|ejemplo|esempio|exemplo|exemple|dummy|fake|单号|订单|注文|주문|заказ"
"""Words before other long numbers, and words near test cards."""
BIRTH = (
    r"date of birth|birth ?date|\bd\.?o\.?b\b|geburtsdatum|geb\. am|date de naissance|fecha de nacimiento|data di nascita|data de nascimento|geboortedatum|data urodzenia|дата рождения|дата народження|doğum tarihi|تاريخ الميلاد|"
    r"תאריך לידה|जन्म ?(?:तिथि|तारीख)|生年月日|出生日期|생년월일|ngày sinh|tanggal lahir|födelsedatum|fødselsdato|syntymäaika|วันเกิด"
)
"""Words before a person's date of birth. "Was born on" isn't included, because encyclopedias use it too."""
BANK_ACCOUNT = r"sort code|routing (?:number|no)|\baba\b|bankleitzahl|\bblz\b|\bbsb\b|\bifsc\b|\bclabe\b|\bcbu\b|расч[её]тн\w+ сч[её]т|銀行口座|口座番号|银行账号|银行卡|계좌|ag[êe]ncia"
"""Words near the number of a bank account."""
ACCOUNT_NUMBER = r"account(?: number| no\.?)?|konto(?:nummer)?|compte|cuenta|conto|conta|rekening(?:nummer)?|rachunk\w*|сч[её]т|рахунок|口座番号|账号|帐号|계좌(?:번호)?|clabe|cbu|clave"
RESIDES = (
    r"\blives? (?:at|in|on)|\bliving at|\breside[sd]? (?:at|in|on)|home address|residential address|private address|\bwohn(?:t|haft|en|anschrift)\b|privatadresse|\bhabite\b|domicili[ée]e?s? (?:au|à)|demeurant|\bvive en\b|domicilio|\breside en|reside en|\babita\b|residente (?:in|a)\b|residenza|"
    r"\bmora (?:na|no|em)\b|reside (?:na|no|em)|\bwoont\b|woonachtig|mieszka|zamieszk\w+|прожива\w+|живёт|живет|мешкає|проживає|oturuyor|ikamet|ev adresi|住址|家庭住址|住在|住所|自宅|お住まい|자택|거주|يسكن|يقيم|عنوان (?:المنزل|السكن)|מתגורר\w?|גר(?:ה)? ב|रहत[ेाी]|घर का पता|sống tại|nhà riêng|tinggal di|alamat rumah|\bbor (?:på|i)\b|\basuu\b|hemadress"
)
"""Words before a person's address."""
SAMPLE_WANTED = r"sample|example|fake|mock|dummy|test ?data|fixture|seed|placeholder|lorem|synthetic|fictional|fictitious|template|persona|made[- ]up|beispiel|muster|testdaten|ejemplo|prueba|ficti|exemple|esempio|exemplo|voorbeeld|przykład|пример|приклад|örnek|例|サンプル|テスト|示例|测试|예시|샘플|مثال|דוגמ|उदाहरण|ví dụ|contoh|story|scene|novel|dialogue|screenplay"
"""Words in requests for fictional data."""
ROLES = frozenset(
    str.split("""
    bewerbung bewerbungen personalabteilung rechnung rechnungen auftrag beratung versand retoure retouren buchung buchungen reservierung empfang praxis kanzlei schule gemeinde rathaus bestellung bestellungen
    pedidos devoluciones citas administracion clientes asistencia commandes facturation accueil recrutement rh sav rdv ordini prenotazioni amministrazione vendas faturamento ouvidoria bestellingen klantenservice
    administratie zamowienia kadry sekretariat rekrutacja applications recruitment complaints escalations invoices invoicing facilities bugs research library admissions alumni patients clinic groups corporate
    enterprise developers noc soc cert psirt grievance ombudsman feedback claims data dsar gdpr rgpd lopd
    abuse accessibility account accounts admin administration alert alerts anfrage api apply atencion atencionalcliente atendimento automated benefits
    billing biuro booking bookings bot buchhaltung business care career careers claims client clients comercial commercial compliance concierge contact
    contact-us contacto contactus contato contatti customer customer-service customercare customerservice customersupport data-protection dataprotection
    datenschutz desk dev donotreply dpo editor empleo enquiries enquiry events facturacion fatture feedback finance foi fraud front-desk frontdesk ggf git
    group hallo hello help helpdesk hola host hostmaster hr info infos inquiries inquiry it jobs karriere kontakt kundenservice kundeservice kundservice
    kundtjanst legal license licensing mail mailer-daemon marketing media member members membership moderator news newsletter no-reply no_reply noreply
    notification notifications notify office office365 operations ops order orders partner partners pay payment payments personal poczta postmaster press
    presse privacy procurement product purchasing recepcion reception reclamaciones recruiting recruitment refunds registrar registro reklamation replies
    reply reservas reservation reservations returns root sac sales scam schadstoff secretaria secretariat security sekretariat server service service-
    client serviceclient serviceclients servicio servizioclienti shipping shop siem sklep soporte spam staff status store subscribe suporte support svar
    system team tech techsupport tickets travel unsubscribe ventas verkauf vertrieb vulnerability web webmaster welcome zakaz
""")
)
"""Local parts of e-mail addresses that several people read."""
TEST_CARDS = frozenset(
    str.split("""
    201400000000009 2222400070000005 2222410740360010 2222420000001113 2223000010309703 2223003122003222 30000000000004 3056930009020004 30569309025904
    340000000000009 3530111333300000 3566002020360505 36227206271667 370000000000002 371449635398431 374245455400126 378282246310005 378734493671000
    38520000023237 4000000000000077 4000056655665556 4001919257537193 4005519200000004 4007000000027 4009348888881881 4012000033330026 4012000077777777
    4012888888881881 4035501000000008 4111111111111111 4111111145551142 4166676667666746 4222222222222 4242424242424242 4263982640269299 4360000001000005
    4444333322221111 4444444444444448 4500600000000061 4508750015741019 4532015112830366 4539578763621486 4646464646464644 4716190207394368
    4917484589897107 4917610000000000 4988438843884305 5019717010103742 5105105105105100 5136333333333335 5200828282828210 5424000000000015
    5425233430109903 5436031030606378 5454545454545454 5500000000000004 5555555555554444 5577000055770004 5585558555855583 6011000000000004
    6011000000000012 6011000990139424 6011111111111117 6011981111111113 6200000000000005 6205500000000000004 6759649826438453
""")
)
"""Card numbers that payment providers publish for tests."""
