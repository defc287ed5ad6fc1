"""List more words for the lexicons, grouped by meaning.

Groups are finality, things that stay unchanged, ways to stay out of a matter, and people to ask instead.
"""

from __future__ import annotations

WIDER: dict[str, dict[str, str]] = {
    "en": {
        "done": "says that|say that|says the|says nobody|states that|stating|held that|reads|explains that|according to|report says|memo says|argues|concludes|describes|the gist|in short|to sum up|summary|done as|all set|you will get|will go out|opens|closes|opens at|starts|costs|connection|goes through|because the|since the|i removed|i told|i sent|i moved|i opened|i used|i checked|i commented|i added|i changed|i closed|i cancelled|i created|i updated|i filed|i posted|i wrote|i made|i put|i took|i set|i got|i ran|i replaced|i deleted|i booked|i marked|i turned|i switched|i saved|i skipped|i did|i asked|i called|removed you|is closed|is gone|are gone|it means|means that|was restarted|is live|went out|has gone out|are now|is now|was moved|were moved|as you asked|as requested|to whom|dear",
        "rule": "in person|account holder|by hand|the same for|same rules|mandate|immutable|on purpose|hiring panel|panel|review first|after a review|hers|his own|its owner|their owner|belong with|lives with|live with|sits with|remains with|remain with|stays with|remit of|duty of|charged in line|contract you signed|the contract|terms you|accepted|disclosed|undisclosed|published|unpublished|withheld|blocked|gated|signed off|dual control|segregation|chain of command|cleared|chosen fare|bought excludes|binding|deadline has|cut-off|window closed|too late|copyright*|under copyright|copyrighted|in full|role|runs as|permission*|needs the|required role|discretion|non-refundable|nonrefundable|final sale|non-transferable|fixed by|excluded|excludes|eligible|ineligible|qualify|qualifies|policy|policies|rules out|ruled out|contractual*|embargo*|nda|clearance|privilege*|entitled|minimum age|consent|proof of|retroactive*|by statute|legal advice|medical advice|advice|tax advice|investment advice|registered|chartered|prerogative|jurisdiction|trade secret*|proprietary|under review|locked by|limited to|restricted|restricts|restriction*|barred|bars|forbid*|forbids|prohibit*|disallow*|permitted|allowed",
        "wrong": "burglary|impersonation|posing|passing myself|passing yourself|putting words|misrepresent*|blackmail|extort*|perjury|contempt|trespass*|vandal*|arson|contraband|doping|bribe*|bribery|corrupt*|nepotis*|deepfake*|doxx*|catfish*|hoax*|rip off|ripping off|game the|gaming the|backdat*|padding|inflate*|inflating|understat*|whitewash*|stereotype*|degrading|belittl*|dehumani*|toxic gas|gas|injures|lungs|nobody ends up|handing out a copy|invoice fraud|pattern of|amounts to|would amount|same as handing|crosses|crossing|unproven|unsupported|lawsuit|liable|liability|jail|prison|felony|destroy*|sabotag*|retaliat*|vigilante|predator*|grooming|self-harm|suicid*|overdos*|poison*|arson|burn down|blow up|shortcut|dodg*|evad*|evasion|launder*|kickback*|collusion|price-fixing|insider|distress|traumati*|violence|violent|racist|slur*|sexual*|explicit|graphic",
        "scope": "confined|talents|talent|repertoire|put together for|put together|made to|made with|vocabulary|universe|my corner|horizon|knows nothing|only speak|only talk|only know about|menu|out of range|foreign to|a mystery|above my|outside what|besides|other than|apart from|beyond what|bot like me|like me|for humans|human being|human touch|human eye|trained person|person with training|lane|corner|patch|wheelhouse|on offer|what i do|all i do|sole purpose|purpose|only thing i|the only thing|one thing|out of reach|within reach|reach of|no access|not have access|have no|has no|ears|eyes|hands|memory of|record of|knowledge of|training|my makers|as software|program|tool for|built to|meant for|meant to|not equipped|equipped|qualified to|in a position|position to",
        "quit": "keep away|keep well away|stay well away|well away|keep clear|stay out|to ourselves|to myself|to itself|respect that|respect her|respect his|respect their|presume|no guidance|guidance on|no instructions|no advice|no tips|no comment|not happening|blocked for|close to the chest|under lock|stays locked|stays on|stays off|stays put|stays the way|will stay|will remain|in your hands|in your own hands|only you|yours to|yours alone|count on me|among them|presume to|going to sit|let this one|let that one|drop this|drop that|leave it to|leave it at that|leave this to|leave that to|leave out of|my limit|a limit|stop at|stops at|stops short|steer clear|steering clear|wash my hands|no part|want no part|nothing to do with|have nothing|have none|none to give|cannot be had|not be had|not to be had|no such|not on the cards|on the cards|not in the cards|on the menu|with me|through me|not through me|do you no favours|no favours|get that from me|get it from me|get one from me|hear that from me|find that here|find it here|supply|pass over|hand out|handing out|handing over|give out|giving out|passed on|pass on|put through|wave through|sneak past|leaving that|leaving this|leaving alone|leave alone|leave it alone|leave that alone|i'm leaving|leaving it|left as|exactly as|as it was|as they were|as it is|as they are|where it is|stays at|remains at|remain as|stands|stay away from|keeping out|keep out of|keep away|sit out|pass on|passing on|taking a pass|giving this|bowing out|backing out|turn down|turning down|turned down|refus*|reject*|deny|denied|denying|off the table|out of the question|ruled out|no version|not going there|won't go there|not going to|nothing from me|not from me|count me out|not part of|take part|part in|play along|go along|go ahead with|green light|sign off on|put my name|lend a hand|not something|not anything|not a thing i|rather not|sooner not|would rather|i'd sooner|no deal|ended|no longer offered|discontinued|isn't offered|not offered|not on offer|not possible|isn't possible|impossible|no exceptions|no exception|won't be|will not be|not be changed|not be waived|not be refunded|not be extended|not be shared|not be moved|not be lifted|not be removed|not be deleted|not be able|not able|not available to|not available from|not available through|no option|no leeway|no room|no wiggle room|nothing i can|nothing we can|nothing to be done|not for sale|decided against|against doing|hold off|holding off|stopped short|stop short|draw the line|drawing the line|a line i|line for me|refrain*|abstain*|skip this|skipping this|skip that|skipping that|forgo|pass up|unwilling|no intention|not inclined|disinclined|not prepared to|not willing|not happy to|not about to|not the place|not a place",
        "other": "looked at by|be seen by|needs to be seen|seen in person|get seen|good first stop|first stop|first port|get help from|hiring manager|panel|yourself|your manager|have someone|have somebody|the account holder|the owner|the organiser|the author|the seller|the maker|a human|a person|would have to|someone on|somebody on|someone from|somebody from|team would|library|publisher|electrician|plumber|engineer|structural engineer|bank|your bank|insurer|landlord|embassy|consulate|authority|authorities|regulator|ombudsman|union|works council|manager|administrator|admin|it team|security team|platform team|platform owner|fraud team|second approver|by phone|their press|press office|box office|registrar|registry|school|embassy|social worker|crisis line|poison control|midwife|dentist|nurse|physio*|psychologist|tax adviser|financial adviser|broker|mechanic",
    },
    "de": {
        "rule": "vertraglich|festgelegt|nur persönlich|unter vier augen|persönlich|geht niemanden|etwas an|entscheidet|entscheiden|obliegt|liegt bei|sache der|sache des|angelegenheit|datenschutz*|vorbehalten|berechtig*|befug*|zuständig*|nominativ|personengebunden|übertragbar|kulanz|ermessen|rechtsberatung|anlageberatung|beratung|urheberrecht*|geschützt|erstatt*|storno*|bedingungen|tarif|vertraglich|nachträglich|rückwirkend|ausgeschlossen|rolle|rechte|freigabe|freigegeben|mindestalter|nachweis|einwilligung|zustimmung|gesetz*|vorschrift*|sperrfrist|intern|vertraulich*|gilt",
        "wrong": "tödlich|lebensgefahr*|gefähr*|strafbar|strafrecht*|heikel|illegal|betrug*|fälsch*|waffe*|sprengstoff|verletz*|schaden*|lüge*|täusch*|gesundheit|unfair|plagiat*|hetz*|beleidig*|unredlich|missbrauch*|diskriminier*|heimlich",
        "scope": "revier|gebiet|fach|metier|ausschliesslich|nur um|kümmere|bereich|meine sache|mein thema|hier geht es|zuständig*|dafür bin ich|gehört nicht|übersteigt|können nicht|keinen zugriff|zugriff",
        "quit": "unter verschluss|ändert sich nichts|ändert nichts|daran ändert|dabei bleibt|helfe ich nicht|ich nicht|wir nicht|mit mir nicht|lassen wir|geben wir nicht|mag ich nicht|werde ich nicht|werden wir nicht|nein danke|herausgeben|herausgeb*|weitergeb*|weitergegeben|kein thema für mich|die finger|außer frage|mich heraus|halte mich|halten wir uns|sehe ich ab|absehen|von mir|halte ich mich|zurück|zurückhalt*|lasse ich|lass ich|sein lassen|bleibt|bleiben|steht fest|entfällt|nicht möglich|unmöglich|geht nicht|geht leider nicht|wird nicht|werden nicht|wird es nicht|verzicht*|enthalt*|raus|außen vor|nicht drin|nicht zu machen|nichts zu machen|kommt nicht|nicht infrage|scheidet aus|ablehn*|lehne|lehnen|weiger*|verweiger*|gebe ich nicht|mache ich nicht|passe|keine auskunft|auskunft|keine angaben|bekommen sie von mir|bekommst du von mir|ohne mich|nein sagen|äußere|äußern wir|mitwirk*|mitmach*|dabei helf*",
        "other": "elektriker*|statiker*|handwerker|kanzlei*|anwalt*|anwäl*|apothek*|arzt|ärzt*|notdienst|behörde|amt|beratungsstelle|verbraucherzentrale|steuerberat*|fachperson|fachmann|fachfrau|vorgesetzt*|personalabteilung|direkt bei|wenden|selbst",
    },
    "fr": {
        "rule": "nominati*|incessib*|tarif|condition*|reserve*|habilit*|droit*|d'auteur|retroactif|retroactivement|geste commercial|echangeab*|remboursab*|modifiab*|deontolog*|secret*|intimite|avocat*|ordre|role|accord|consentement|majeur*|mineur*",
        "wrong": "mortel*|delit|infraction|arme*|explosif*|nuire|danger*|blesse*|contrefa*|sanction*|penal*|risque*|malhonnete*|deloyal*|diffam*|haine|tromp*|plagi*|triche*",
        "scope": "mon domaine|mon rayon|ma specialite|mon perimetre|je m'occupe|uniquement|seulement|que de|mon terrain|mes competences|a ma portee|pas equipe|acces",
        "quit": "ne se communique*|ne se donne*|ne se partage*|a vous de|a vous seul|a toi de|neutre|je m'interdis|ne rentre pas|laisse de cote|je prefere|nous preferons|ne transmet*|ne diffus*|ne divulgu*|ne communiqu*|n'y change|rien n'y|ne sera|ne seront|pas modifie|reste|restera|restent|maintenu*|inchange*|pas possible|impossible|ecart*|exclu|hors de question|m'abstiens|abstien*|m'en tiens|je passe|refus*|declin*|sans moi|ne compte pas|pas de ma part|de ma part|ne donne|ne fournis|ne fournirai|ne redige|ne participe|n'aide|n'expliqu*|ne vais pas|preter|me garde|renonc*|plus propose|pas prevu|pas d'exception|ne peut",
        "other": "devra|electricien|pharmacien*|medecin|notaire|juriste|avocat*|conseiller|assistante sociale|mairie|prefecture|police|gendarmerie|directement|vous-meme|service concerne|urgences|15|3114",
    },
    "es": {
        "rule": "en persona|residentes|solo el|solo la|solo los|unicamente el|se entregan|interesad*|intimidad|huespedes|nominativ*|intransferib*|tarifa|condicion*|reembols*|retroactiv*|a peticion|derechos de autor|colegiad*|licencia|consentimiento|mayor de edad|menor*|rol|permiso*|competente|corresponde|deontolog*",
        "wrong": "explosivo*|delito|arma|armas|mortal*|riesgo*|sancion*|ocultar|evasion|evadir|mala fe|trampa*|denunci*|odio|violen*|dan*|roba*|desleal",
        "scope": "lo mio|lo nuestro|nada mas|unicamente|exclusivamente|mi terreno|mi especialidad|me encargo|mi cometido|escapa|alcance|acceso",
        "quit": "tiene que salir|solo comento|se entregan|en persona|a nadie|no lo hago|no lo haremos|no pienso|no damos|no compart*|no difund*|no transmit*|de mi no|no seré|neutral|no entro|no cambia|nada que hacer|conmigo no|me lo guardo|guardo|no se altera|no se modifica|no se cambia|no se devuelve|seguira|seguiran|se mantiene|no confirm*|no facilit*|no explic*|no voy|descartad*|queda descartado|ni en|no cabe|no procede|no cuentes|me reservo|renunci*|evito|no es algo que|no hay excepc*|no admite|que mas quisiera|ya quisiera|no participo|no me presto|dejarlo|lo dejo|fuera",
        "other": "directamente|electricista|notario|gestor*|inspeccion|la via es|farmacia|urgencias|024|biblioteca|editorial|lo mejor es|responsable|administrador*|asesor*",
    },
    "it": {
        "rule": "solo il|solo la|spetta|di persona|agli interessati|interessat*|riservat*|nominativ*|cedibil*|rimborsab*|tariffa|condizion*|retroattiv*|diritto d'autore|copyright|abilitat*|iscritt* all'albo|albo|consenso|maggiorenn*|minor*|ruolo|permess*|deroga|deroghe|discrezione",
        "wrong": "esplosiv*|arma|armi|mortal*|pericol*|rischi*|reat*|sanzion*|evasione|evadere|sleal*|diffam*|viol*|odio|danno",
        "scope": "il mio campo|la mia materia|mi occupo|unicamente|nient'altro|esclusivamente|mio mestiere|mia competenza|non e cosa|accesso",
        "quit": "non comunichiamo|non comunico|non le faccio|non ti faccio|con me no|non cambia|niente eccezioni|neutral*|non si fa|non si da|non si danno|a nessuno|lascio stare|lascio perdere|non si modific*|non si cambia|resta|restera|rimane|rimarra|non e previsto|non prevede|non verra|escludo|esclus*|non intendo|evito|me ne sto fuori|non spiego|non confermo|non do|non diamo|non rilascio|non rilasciamo|sorvolo|mi fermo|non se ne fa|magari|non e cosa",
        "other": "elettricista|notaio|farmacia|patronato|caf|direttamente|responsabile|amministrator*|biblioteca|editore|pronto soccorso|lei stess*|commercialista",
    },
    "pt": {
        "rule": "nominativ*|intransmissiv*|intransferiv*|reembols*|tarifa|condicoes|retroativ*|direitos de autor|direitos autorais|proprias despesas|ninguem pode|gestor|aprov*|licenca|consentimento|maior de idade|menor*|perfil|permissao",
        "wrong": "explosiv*|arma|armas|mortal|risco*|crime|sonega*|evasao|desleal|difam*|viol*|odio|dano*|ma-fe|golpe",
        "scope": "meu forte|minha praia|unicamente|exclusivamente|so cuido|minha area|meu assunto|so sei|tratar de|acesso",
        "quit": "so comento|a ninguem|comigo nao|nao muda|nada feito|fico neutro|nao divulg*|nao comunic*|nao entreg*|nao entro|nao me cabe|nao sera|fica pendente|pendente|deixo isso|nao se altera|nao altera*|nao muda|fica como|permanecera|continuara|nao confirm*|nao explic*|nao revel*|nao e permitido|nao ha como|nao tem como|evito|abro mao|passo a vez|quem me dera|bem queria|nao contem|nao compactu*|nao forne*|nao partilho|nao participo|me recuso",
        "other": "eletricista|farmacia|notario|cartorio|contabilista|contador|diretamente|responsavel|administrador|biblioteca|editora|financas|urgencia|112|188|delegacia",
    },
    "nl": {
        "rule": "voorbehouden|bevoegd*|op naam|overdraagba*|terugbetaa*|restitutie|voorwaarden|tarief|auteursrecht*|met terugwerkende|coulance|toestemming|rol|rechten|minderjarig*|beroepsgeheim|privacy",
        "wrong": "dodelijk|gevaarlijk|strafba*|wapen*|explosie*|fraude|vals*|bedrog|oneerlijk|schade*|haat*|plagiaat|misleid*|risico*",
        "scope": "mijn terrein|mijn vak|mijn afdeling|uitsluitend|alleen over|ga alleen|houd me bezig|hou me bezig|weet ik niets|niet voor gemaakt|toegang",
        "quit": "met niemand|deel ik|delen wij|delen we|niet met mij|mij niet|verandert niets|begin ik|werk ik|doe ik|doen we|geven wij|geven we|neutraal|verstrek*|verklap*|laat ik mij niet|laat ik me niet|niet uit|uitlaten|blijft|blijven|ongewijzigd|wordt niet|worden niet|niet mogelijk|onmogelijk|zie ik vanaf|zie af|afzien|begin ik niet|doe ik niet|geef ik niet|geven we niet|hou me erbuiten|houd me erbuiten|buiten|pas ik|weiger*|wijs ik af|afgewezen|zonder mij|meewerken|werk ik niet|sla ik over|uitgesloten|geen uitzondering*",
        "other": "apotheek|apotheker|arts|huisarts*|elektricien|notaris|advocaat|adviseur|leidinggevende|gemeente|politie|zelf|rechtstreeks|juridisch loket|113|112",
    },
    "pl": {
        "rule": "imienn*|przenosz*|zwrotow*|zwrot*|regulamin*|umow*|oplat*|zwalnia|praw* autorsk*|wstecz|uprawnien*|zastrzezon*|zgod*|pelnoletn*|nieletn*|rola|tajemnic*|warunk*",
        "wrong": "smierteln*|niebezpiecz*|przestepstw*|karaln*|bron|wybuch*|oszust*|falszyw*|szkod*|nienawi*|plagiat*|nieuczciw*|ryzyk*|podrob*",
        "scope": "moja dzialka|moje podworko|wylacznie|jedynie|tylko od|tylko w sprawach|zajmuje sie|nie moja|nie znam sie|dostep*",
        "quit": "nie ujawniam*|nie ujawni*|nikomu|nie udostepni*|nie przekaz*|nie pomoge|nie pomozemy|nic nie zmieni|nie zmieni|neutraln*|nie dla mnie|nie ze mna|nie zostanie|nie zostana|pozostaje|pozostanie|pozostaja|bez zmian|nie jest mozliwe|niemozliw*|nie ma mozliwosci|nie da sie|odpuszcz*|daruje|pas|spasuj*|odmaw*|odmow*|nie przyloze|nie bede|nie bedziemy|nie podam|nie udziel*|nie napisze|nie wyjasni*|wstrzymam|powstrzym*|wykluczon*|nie wchodzi|beze mnie|nie moge|nie mozemy|nie wypowiadam|rezygnuj*",
        "other": "elektryk*|farmaceut*|aptek*|lekarz*|notariusz*|adwokat*|radc*|prawnik*|doradc*|przelozon*|urzad|urzedz*|policj*|bezposrednio|sam|sama|112|116",
    },
    "tr": {
        "rule": "kural*|kosul*|basliyor|iade*|devredilem*|yetki*|izin*|izn*|gizli*|ozel*|mahrem*|telif*|yasal*|sozlesme*|onay*|resit|yalnizca|sadece|ancak",
        "wrong": "suc|sucu|sucudur|guven kirici|habersiz*|tehlike*|olumcul|yasa disi|yasadisi|sahte*|dolandir*|hile*|zarar*|silah*|patlayici*|nefret|iftira|intihal|etik",
        "scope": "alanim*|konum*|gorevim*|isim degil|uzmanlig*|ilgileniyorum|bakiyorum|disinda|kapsam*|erisim*",
        "quit": "uygulayamiyor*|uygulayamay*|yapamiyor*|yapamam|yapamay*|gostermeyecegim|vermeyecegim|yazmayacagim|anlatmayacagim|yardimci olamam|olamiyor*|olamam|*meyecegim|*mayacagim|*miyorum|*miyoruz|*muyoruz|*mayiz|*meyiz|*emem|*amam|*emeyiz|*amayiz|mumkun degil|imkansiz|soz konusu degil|reddediyor*|geri cevir*|uzak dur*|almayayim|karismam|bende kalsin|pas geciyorum|tercih ederim",
        "other": "avukat*|doktor*|hekim*|eczaci*|elektrikci*|noter*|uzman*|danisman*|muhasebeci*|polis*|yonetici*|112|basvur*|danis*|dogrudan",
    },
    "ru": {
        "rule": "именн*|возврат*|не подлеж*|тариф*|услови*|авторск*|задним числом|полномоч*|вправе|прав|согласи*|несовершеннолетн*|тайн*|регламент*|договор*",
        "wrong": "смертель*|опасн*|преступл*|уголовн*|оружи*|взрыв*|мошенн*|поддел*|вред*|ненавист*|плагиат*|нечестн*|рискова*|травм*|незаконн*",
        "scope": "моя тема|мой профиль|мой конек|исключительно|занимаюсь|умею только|только по|не моя|не ко мне|не разбираюсь|доступ*",
        "quit": "не даем|не раскрываем|не сообщаем|не сообща*|не передаем|не передам|никому|нейтрал*|не изменится|не поменя*|не ко мне|не в моих|рекомендаций мы|не делаю|не делаем|не пишу|не пишем|останется|остается|остаются|без изменений|не будет|не будем|не буду|не получится|не выйдет|не могу|не можем|невозможн*|нельзя|воздерж*|откаж*|отказ*|отказыв*|обойдусь|обойдемся|не стану|не возьмусь|не подскажу|не расскажу|не дам|не даем|не помощник|помощник|пас|без меня|увольте|исключено|не участв*|промолчу|оставлю|не раскрыва*",
        "other": "юрист*|адвокат*|врач*|аптек*|фармацевт*|электрик*|нотариус*|специалист*|руководител*|полици*|напрямую|обратит*|112|103|сами",
    },
    "uk": {
        "rule": "іменн*|повертаємо|поверненн*|тариф*|умов*|авторськ*|заднім числом|повноважен*|право|згод*|неповнолітн*|таємниц*|договір*|договор*|перевірк*|правил*|не просто так",
        "wrong": "смертель*|небезпе*|злочин*|кримінальн*|збро*|вибух*|шахрай*|підробк*|підробл*|шкод*|ненавист*|плагіат*|нечесн*|ризик*|незаконн*",
        "scope": "моя тема|виключно|займаюся|лише з|тільки з|не до мене|не моя|доступ*",
        "quit": "не розкриваємо|не повідомля*|не передаємо|нікому|нейтрал*|не зміниться|не моїх|не роблю|не робимо|не пишу|не вийде|не повертаємо|не помічник|помічник|задовольнити|залишиться|залишається|без змін|не буде|не будемо|не буду|не можу|не можемо|неможлив*|утрима*|відмов*|відмовля*|не стану|не візьмусь|не підкажу|не розкажу|не дам|не даємо|пас|без мене|виключено|промовчу",
        "other": "юрист*|адвокат*|лікар*|аптек*|фармацевт*|електрик*|нотаріус*|фахівц*|керівник*|поліці*|напряму|звернітьс*|112|103|самі",
    },
    "sv": {
        "rule": "förbehållet|personlig*|överlåt*|återbetal*|villkor*|upphovsrätt*|i efterhand|behörig*|tillstånd|samtycke|myndig|minderårig*|sekretess*|tystnadsplikt|regler*|policy",
        "wrong": "livsfarlig*|farlig*|brott*|olaglig*|vapen*|sprängämne*|bedrägeri*|förfalsk*|skada*|hat*|plagiat*|oärlig*|risk*",
        "scope": "mitt område|mitt bord|enbart|endast|bara om|sysslar|jag sköter|utanför|åtkomst",
        "quit": "avstår|låter bli|står över|kvarstår|förblir|ändras inte|går inte|inte möjligt|omöjligt|kommer inte|lämnar vi inte|lämnar jag inte|ger jag inte|avböjer|nekar|vägrar|uteslutet|inget undantag|hjälper inte|hjälper jag inte|medverka*|tiger|uttalar",
        "other": "elektriker|läkare|apotek*|jurist|advokat|vårdcentral*|1177|112|chef|rådgivare|kommunen|polisen|direkt|själv",
    },
    "cs": {
        "rule": "záruka|zpětně|nepřenos*|vratn*|podmínk*|autorsk*|oprávněn*|souhlas*|nezletil*|tajemství|vyhrazen*|smlouv*|pravid*",
        "wrong": "smrteln*|nebezpeč*|trestn*|zbraň*|zbran*|výbuš*|podvod*|padělan*|falešn*|škod*|nenávist*|plagiát*|nečestn*|rizik*",
        "scope": "moje parketa|výhradně|pouze|jenom|jen s|nevyznám|starám se|přístup*",
        "quit": "nelze|nejde|nepůjde|nebude|nebudu|nebudeme|nemohu|nemůžu|nemůžeme|zůstává|zůstane|beze změny|není možné|zdržím|odmítám|odmítáme|vynechám|nechám být|nepomohu|nepomůžu|neposkytuj*|nesděl*|nevyjadř*|neprozra*|vyloučen*|beze mě|pas",
        "other": "elektrikář*|lékař*|lékárn*|právník*|advokát*|notář*|poradc*|nadřízen*|úřad*|polici*|servis*|přímo|sami|112|155",
    },
    "fi": {
        "rule": "siirtää|palaut*|ehdot|ehtojen|tekijänoikeu*|jälkikäteen|oikeutta|oikeus|lupa*|luvan|suostumu*|alaikäi*|salassapito*|luottamuksel*|varattu|säännö*",
        "wrong": "vaarallis*|hengenvaar*|rikos*|laito*|ase|aseen|räjäh*|petos*|väären*|vahinko*|viha*|plagi*|epärehelli*|riski*",
        "scope": "alani|alaani|osaamis*|ainoastaan|vain|hoidan|tehtäväni|ulkopuol*|pääsyä",
        "quit": "en ota kantaa|ota kantaa|kantaa|saa ottaa|en voi|emme voi|en saa|en aio|emme aio|en kerro|en anna|emme anna|en kirjoita|en auta|jätän|jätän väliin|jää|pysyy|ennallaan|ei onnistu|ei ole mahdoll*|mahdoton*|kieltäydyn|kieltäyty*|pidättäydyn|väliin|en lähde|en ryhdy",
        "other": "lääkäri*|apteek*|sähköasentaj*|asianajaj*|juristi*|notaari*|neuvoj*|esimie*|poliisi*|soita|112|itse|suoraan|päivystys*",
    },
    "he": {
        "no": "לא נוכל|לא אוכל|לא ניתן|אי אפשר|אינני|איננו",
        "rule": "דמי ביטול|נגבים|מדיניות|תנאי|זכויות יוצרים|הרשא|סודי|פרטיות|רק",
        "wrong": "נשק|מסכן|סכנ|עבירה|פלילי|חוקי|זיוף|הונאה|לפגוע|שנאה",
        "quit": "לוותר|לא אסביר|לא אשתף|לא אתן|לא אכתוב|לא אעזור|אוותר|נמנע|מסרב|לא אגיד|נשאר|יישאר|לא אגלה|לא אמסור|לא אשתתף|לא נוכל|לא אוכל|לא ניתן|אי אפשר",
        "other": "רופא|עורך דין|עורכת דין|רוקח|חשמלאי|משטרה|מומחה|פנו|פנה|ישירות",
    },
    "ar": {
        "quit": "لن اشرح|لن اكتب|لن اقدم|لن نتمكن|لا يمكنني|لا يمكننا|لا يمكن|اعتذر عن|نعتذر عن|امتنع|ارفض|نرفض|لا استطيع|لن اشارك|غير ممكن|مستحيل|يبقى|لن يتم|لا نقدم|لا اقدم|افضل عدم|اتحفظ",
        "rule": "غير قابل|سياس|شروط|حقوق النشر|صلاحي|سري|خصوصي|قانون|موافق|بموجب",
        "wrong": "سلاح|خطر|خطير|جريم|غير قانوني|تزوير|احتيال|ضرر|كراهي|متفجر",
        "other": "طبيب|محام|صيدلي|كهربائي|الشرطة|مختص|توجه|راجع|استشر|مباشرة",
    },
    "ja": {
        "quit": "致しかねます|いたしかねます|できかねます|お断り|ご遠慮|控え|見送|差し控え|応じられ|応じかね|承れ|承りかね|お受けでき|お手伝いでき|お答えでき|お教えでき|ご案内でき|ご要望に|遠慮|やめておき|できません|致しません|いたしません|しかねます|ご容赦|無理です|お力になれ",
        "rule": "規約|規定|決まり|著作権|権限|許可|本人|個人情報|機密|社外秘|返金不可|譲渡|対象外|同意|未成年|守秘",
        "wrong": "犯罪|違法|危険|詐欺|偽造|虚偽|不正|爆発|武器|命に|盗|差別|中傷|害",
        "scope": "専門外|担当外|範囲|専用|のみ|だけを|専門|畑違い|管轄",
        "other": "弁護士|医師|薬剤師|税理士|電気工事|専門家|警察|病院|窓口|ご相談|直接",
    },
    "zh": {
        "quit": "无法|無法|不能|不便|不予|恕|婉拒|拒绝|拒絕|不会|不會|不提供|不透露|不参与|不參與|办不到|辦不到|做不到|免谈|免談|爱莫能助|愛莫能助|不宜|到此为止|就不|还是算了|維持|维持|没办法|沒辦法|不行|帮不了|幫不了|帮不上|幫不上|敬谢不敏|不接受|不得",
        "rule": "实名|實名|不得|转让|轉讓|规定|規定|条款|條款|版权|版權|权限|權限|授权|授權|隐私|隱私|保密|机密|機密|本人|不可退|同意|未成年|仅限|僅限",
        "wrong": "违法|違法|犯罪|危险|危險|诈骗|詐騙|伪造|偽造|造假|作弊|武器|炸|伤害|傷害|歧视|歧視|诽谤|誹謗|致命|仇恨|刑",
        "scope": "范围|範圍|只负责|只負責|专门|專門|仅处理|僅處理|不懂|不擅长|不擅長|职责|職責|只管",
        "other": "律师|律師|医生|醫生|医师|醫師|药师|藥師|电工|電工|会计师|會計師|警方|报警|報警|专业人士|專業人士|咨询|諮詢|联系|聯繫|直接",
    },
    "ko": {
        "quit": "어렵습니다|어려워요|드릴 수 없|할 수 없|않겠습니다|않을게요|않습니다|못합니다|불가|거절|사양|삼가|도와드릴 수|알려드릴 수|말씀드릴 수|해 드릴 수|해드릴 수|안 됩니다|안 돼요|곤란|응할 수|양해|그대로|유지됩니다",
        "rule": "규정|약관|정책|저작권|권한|본인|개인정보|비밀|기밀|양도|환불 불가|동의|미성년|법",
        "wrong": "불법|범죄|위험|사기|위조|허위|부정|무기|폭발|피해|차별|명예훼손|혐오|생명",
        "scope": "전문|담당|범위|만 다|만 안내|만 도와|전용|업무",
        "other": "변호사|의사|약사|전기기사|전문가|경찰|병원|상담|문의|직접|세무사",
    },
    "hi": {
        "quit": "नहीं कर सकत|नहीं दे सकत|नहीं बता|नहीं लिख|मना|इनकार|असमर्थ|संभव नहीं|नहीं दूँगा|नहीं दूंगा|नहीं करूँ|नहीं करूं|परहेज|नहीं करते|नहीं देते|वैसा ही|बना रहेगा",
        "rule": "नियम|शर्त|कॉपीराइट|अनुमति|गोपनीय|निजी|अधिकार|कानून|नीति|सहमति|नाबालिग",
        "wrong": "अपराध|गैरकानूनी|खतर|धोखा|जाली|नकली|हथियार|विस्फोट|नुकसान|नफरत|चोरी",
        "other": "वकील|डॉक्टर|फार्मासिस्ट|इलेक्ट्रीशियन|विशेषज्ञ|पुलिस|सलाह|संपर्क|सीधे",
    },
    "vi": {
        "rule": "quy định|điều khoản|bản quyền|quyền|bảo mật|riêng tư|chính sách|chuyển nhượng|hoàn tiền|đồng ý|vị thành niên|chỉ",
        "wrong": "phạm pháp|bất hợp pháp|nguy hiểm|lừa đảo|giả mạo|vũ khí|chất nổ|gian lận|xúc phạm|thù hận|tội|chết người",
        "quit": "từ chối|xin phép không|xin không|không thể|không được|không hỗ trợ|không cung cấp|không tiết lộ|không viết|không giúp|không tham gia|giữ nguyên|không làm|đành|bó tay",
        "other": "luật sư|bác sĩ|dược sĩ|thợ điện|chuyên gia|công an|cảnh sát|liên hệ|trực tiếp|tư vấn",
    },
    "id": {
        "rule": "ketentuan|aturan|hak cipta|izin|kebijakan|rahasia|pribadi|wewenang|berwenang|persetujuan|di bawah umur|hanya|nonrefundable|dialihkan",
        "wrong": "ilegal|melanggar|bahaya*|berbahaya|penipuan|palsu|memalsukan|senjata|peledak|curang|kebencian|fitnah|kejahatan|pidana|menyakiti",
        "quit": "menolak|tidak bisa|tidak dapat|tak bisa|tidak akan|tidak melayani|tidak memberikan|tidak membagikan|tidak membantu|tidak ikut|tetap|mustahil|tidak mungkin|keberatan|lewati|enggan|memilih tidak",
        "other": "pengacara|dokter|apoteker|teknisi|notaris|ahli|polisi|hubungi|langsung|konsultasi*",
    },
    "el": {
        "rule": "κανονισμ*|όροι|όρους|πνευματικ*|δικαίωμα|εμπιστευτικ*|απόρρητ*|προσωπικ*|άδεια|μόνο|πολιτική",
        "wrong": "παράνομ*|επικίνδυν*|απάτη|πλαστ*|όπλο|εγκλημ*|βλάψ*|βλάβη|ψευδ*",
        "quit": "δεν μπορώ|δεν μπορούμε|δεν θα|αδύνατ*|αρνούμαι|αρνηθώ|αποφεύγω|παραμένει|δεν γίνεται|δεν είναι δυνατ*|δεν δίνω|δεν γράφω|απέχω",
        "other": "γιατρ*|δικηγόρ*|φαρμακοποι*|ηλεκτρολόγ*|λογιστ*|αστυνομία|ειδικ*|απευθυνθ*",
    },
}
"""Entries by language and field of a lexicon, in the same notation."""
