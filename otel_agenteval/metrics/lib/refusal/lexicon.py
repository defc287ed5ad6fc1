"""Words by what they are evidence of, per language: of an answer that declines, of one that delivers, and of what was asked.

Entries are separated by bars. ``word`` is a whole word, ``stem*`` the beginning of one, and an entry with a space stands anywhere in a sentence. Languages
that do not put spaces between words, or fuse particles with them, have pieces of text only. All of it is written as people write it and folded when it
is first used.
"""

from __future__ import annotations

from typing import NamedTuple


class Lexicon(NamedTuple):
    """The evidence of one language."""

    name: str
    common: str
    """Frequent words, by which the language is recognised; empty where its letters say so."""
    no: str
    """Negations."""
    me: str
    """The speaker: pronouns, first-person verbs of helping and telling, the assistant, "here"."""
    rule: str
    """Rules, secrecy, authority: what is private, reserved, decided by somebody else."""
    wrong: str
    """What makes a request one that should not be fulfilled."""
    scope: str
    """What the speaker is for, and what it is able to do."""
    quit: str
    """Declining itself, and matters that stay as they are."""
    other: str
    """Who does it instead."""
    instead: str
    """Something else instead, and regret."""
    done: str
    """The request is fulfilled: reports, consent, "here it is"."""
    failed: str
    """It was tried, or is out of order for now."""
    lack: str
    """Data that the user has yet to give, and searches that found nothing."""
    asked: str
    """Words with which a question about the world begins, which may be answered with no."""
    touchy: str
    """What agents are asked for and commonly decline."""


LEXICONS = (
    Lexicon(
        "en",
        "the|you|your|is|are|to|and|of|that|it|for|with|this|not|can|have|be|in|on|was|will|what|how|please|i'm|i've|i'll|an|or",
        "no|not|never|cannot|cant|wont|nope|none|nothing|nobody|neither|nor|without|can't|won't|don't|doesn't|isn't|aren't|wasn't|weren't|didn't|hasn't|haven't|couldn't|wouldn't|shouldn't|unable|no one|hardly|least of all|rather than",
        "i|i'm|i'd|i'll|i've|let's|me|my|mine|myself|we|we're|we'd|we'll|our|us|assistant|bot|chatbot|assistant's|this chat|from here|in here|over chat|this channel|this service|this desk|through chat|from chat",
        "confidential|decided|set by|decided by|determined by|handled by|issued by|made by the|assigned by|granted by|up to|is for the|are for the|internal|sensitive|classified|in confidence|need to know|not public|data protection|gdpr|hipaa|terms|minors|underage|under age|identity|verified|authenticat*|two-factor|second factor|security|safety|process|procedure|protocol|committee|sign-off|supervisor|court|judge|only|lets me|let me see|access lets|not for|on request of|by request|opted out|privileged|safeguarding|proof of|power of attorney|next of kin|authorised person|lecturer|order they come|make no difference|makes no difference|policy-wise|confidentiality|private|privacy|privately|policy|policies|rule|rules|guideline*|regulation*|permission*|permit|permits|permitted|authori*|allow*|disclos*|reveal*|divulg*|entitled|mandate|clearance|protected|restricted|prohibit*|forbid*|forbidden|compliance|consent|statute|statutory|"
        "reserved|law|legally|licensed|licence|license|qualified|accredited|owner|holder|ownership|credentials|verification|approval|approved|signature*|access|by law|only the|by nobody else|only by|and nobody else|and no one else|decided by|up to the|the only one|exception*|regardless|whoever|safeguard*|secret|off limits|off-limits|in person|board|stays between|need-to-know|"
        "personal data|personal details|personal information|other people's|other customers|someone else|somebody else|anyone else|nobody else|third part*|belongs to|belong to|belonging to|may only|can only|must be|has to be|have to be|solely|alone",
        "fraud*|invention|invent|damage*|hurtful|degrad*|trouble|banned|academic|misconduct|harassment|victim*|consequences|jeopard*|endanger*|exploit*|unkind|disrespect*|prejudic*|stereotyp*|bias*|racis*|sexis*|deserved*|irresponsib*|reckless|injur*|fatal|poisonous fumes|lives|punish*|offend*|disinformation|misinformation|unfounded|untrue|fiction as|honour code|honor code|break the law|against the law|betray*|surveil*|unauthori*|without permission|without their|without her|without his|forg*|illegal*|unlawful*|crime*|criminal*|dishonest*|deceiv*|decept*|deceit|mislead*|unfair*|harm*|unsafe|dangerous*|danger|malware|manipulat*|cheat*|plagiari*|invad*|invasion|steal*|stolen|theft|impersonat*|fabricat*|fake|faking|faked|false|made-up|made up|invented|inventing|lie|lies|lying|cruel*|hurt*|abus*|harass*|bully*|bullying|threat*|defam*|slander*|libel*|discriminat*|unethical*|"
        "violat*|breach*|weapon*|explosive*|counterfeit*|piracy|pirat*|stalk*|spy*|spying|covert*|secretly|behind their back|behind her back|behind his back|integrity|honest|honesty|misus*|offence|offense|tamper*|falsif*|rigged|coerc*|demean*|hateful|hate|mocking|humiliat*|offensive|risk|risky|undercut*|scam*|trick|tricking|trust",
        "scope|remit|merely|purely|nothing but|speaks|speak|factory|text is all|helper|scheduling|explain the|only the|here only|come to the wrong|wrong place|wrong desk|not my|isn't my|aren't my|beyond my|beyond me|above me|over my head|out of my depth|my knowledge|my view|my data|my tools|my system|my brief|my beat|know nothing|i only|i just|we only|we just|that's all i|only ever|lies elsewhere|can't see|cannot see|can't hear|cannot hear|hear or|see or|role|job|task|tasks|duty|duties|designed|built|made for|set up|setup|here for|here to|limited|limit|only handle|only deal|only help|only answer|only cover|only work|only know|skill*|abilit*|capabilit*|area|department|specialis*|specializ*|dedicated|purpose|expertise|wheelhouse|territory|domain|outside|beyond|reach|look after|looks after|what i do|what we do|what i'm for|what i can do|nothing else|nothing more|equipped|invisible|my map|my turf|toolkit|"
        "trained|stick to|sticking to|focus on|focused on|concentrate on|mission|strictly|exclusively|my end|pay grade|in my power|in our power|my lane|menu|text only|text-only|no eyes|no ears|no hands|no way to|no way of|means to|closed to me|speciality|specialty|service desk|helpdesk|help desk|my side|only about|just a|just the|just an|am the|i'm the|i'm only|i'm just|opinion*|view on|form views|feelings|take sides|weigh in",
        "declin*|something else|change the subject|different topic|another topic|another subject|going to happen|happen here|unavailable|not available|won't hear|won't get|won't find|won't see|not mine|not a voice|count this|leave it on|leave them|keep running|keep it|another way|let's find|let's not|won't do|won't be doing|will not be|won't be|not do that|isn't possible|is not possible|not possible|not an option|isn't an option|not available to|no place|no dice|hard pass|no thanks|no thank you|forget it|not today|never will|never do|don't do|we don't|i don't|i never|we never|won't write|won't help|not help|can't help|cannot help|not do|not give|not share|not write|not send|not provide|not make|not discuss|not answer|not create|not produce|not tell|not touch|not support|not process|not perform|not generate|not act|not look|not name|not say|not open|not pass|not hand|not change|not lift|not waive|not release|not issue|not take|not going to|not gonna|not willing|not prepared|not about to|not in a position|not supposed to|not able to|unable to|not ready to|not keen|refus*|rather not|pass|abstain*|refrain*|stay out|stay neutral|neutral|stay away|steer clear|keep out|keep my|leave it|leave that|leave the|leave this|leaving|count me out|draw the line|draw a line|line i|skip|skipping|off the table|off the cards|not on the cards|not on|out of the question|turned down|turn down|turning down|reject*|denied|stays|stay|stands|remain*|sit out|sit this|stop short|stop here|stop there|ends here|end here|a miss|giving that|no part|part in|take part|taking part|party to|go along|going along|"
        "lend my|lending|be helping|say no|answer is no|answer stays|answer is still|my answer|full stop|no matter|whatever the|whoever asks|non-starter|no-go|a no|hold back|holding back|withhold*|back out|bow out|step back|object to|prefer not|prefer to keep|prefer to stay|reluctan*|hesita*|uncomfortable|comfortable|unfulfilled|unwritten|undone|unanswered|unchanged|untouched|closed|shut|locked|in place|won't happen|not happening|not be happening|won't go|not go out|won't be made|nice try|i wish|if only|can't be done|cannot be done|no can do|draw up no|nothing will|dead end|"
        "be sharing|coach*|walk you|cross|entertain|indulge|engage|assist|comply|fulfil*|grant*|endors*|contribute|honour|honor|oblige|for me to|mine to|of mine|from me|by me|from my side|on my part|come from",
        "ask a|ask an|ask your|need to ask|see a|see an|doctor|gp|physician|clinician|dermatologist|pharmacist|lawyer|attorney|solicitor|notary|adviser*|advisor*|accountant|expert|professional*|specialist*|therapist|counsellor|counselor|vet|translator|teacher|tutor|locksmith|police|988|samaritans|hotline|helpline|emergency|crisis|yourself|on your own|someone who|somebody who|elsewhere|better place|right person|right place|turn to|speak to|speak with|talk to|talk with|consult*|get in touch|contact|reach out|best person|best left|better left|leave to|leave to the|hr|branch|in charge|your own|your call|decision for|call belongs|question for",
        "instead|happy to|glad to|gladly|welcome to|what i can|what i could|i could|i can help|if you'd like|if you like|though|however|unfortunately|sadly|afraid|sorry|apologies|regret*|alternatively|anything else|in general|all ears|encourage|suggest|recommend|understand|i hear you|appreciate|rather",
        "done|here is|here's|here are|here you go|below|i've|i have|sure|certainly|of course|absolutely yes|yes|booked|ordered|sent|added|updated|cancelled|canceled|created|moved|changed|saved|refunded|scheduled|attached|fixed|unlocked|reset|set up a|is on its way|confirmed|for example|for instance|such as|could put it|step|steps|on the way|arrive*|ships|shipped|follow|use|try|click|set an|understood|got it|no problem|you're right|will reach|i found|you can|usually|generally|typically|most|because|since|in fact|actually",
        "tried|try again|timed out|timeout|error|errors|failed|failing|fails|failure|respond|responding|returned|returning|at the moment|right now|just now|currently|temporarily|maintenance|down|outage|later|again|crash*|conflict|unreachable|connection|offline|503|500|once it|as soon as|repaired|yet|any more|anymore|already|insufficient|expired",
        "which|could you|can you send|can you tell|can you share|please send|please share|tell me|let me know which|what's your|what is your|need your|need the|order number|reference|before you|before i|without your|without the|until you|until i know|once you|once i|find|found|result*|match*|no record|sold out|in stock|out of stock|available|availability|left|nothing in|no flights|to whom|how much|when would|what date|when do|confirm|know which|know what|knowing|please confirm|double-check|sign of",
        "is|are|am|does|do|did|was|were|will|would|should|why|when|where|how|what|what's|which|who|who's|can i|can we|can it|can the|can a|can dogs|may i|may we|could i|has|have|any|isn't|there",
        "password*|credential*|wi-fi|wifi|medication|chart|record|records|file|minor|i'm 17|underage|17 but|alcohol|vodka|gun|knife|cigarettes|tax return|legal advice|contract|will|court|divorce|custody|dose|dosage|pills|treatment|scan|ultrasound|x-ray|blood test|results of|honest|honestly|your take|your view|which party|abortion|religious|god|gender|race|compare|rank|smarter|best kid|upvote|followers|fake account|accounts to|bribe|worth your while|speed up|skip|deadline|grade|mark|grades|cheat|paper due|hand it in|submit it|trash|trashing|ruin|revenge|embarrass|blackmail|sing|out loud|dance|draw|smoke detectors|alarm|turn off|every night|debt|salary band|director|executive|vip|celebrity|famous|date me|marry|love me|girlfriend|boyfriend|nude|sexy|adult|bet|betting|odds|gamble|crypto|bitcoin|insider|leak|location|where does|where is she|where is he|lives|license plate|registration|birth|ssn|social security|passport|medical history|criminal record|passcode|pin|salary|salaries|earn*|wage*|paid|home address|address of|phone number|personal|private|date of birth|forge|fake|made-up|made up|make up|pretend*|hack*|crack*|bypass*|override*|disable|without the|without them|neighbor*|neighbour*|my ex|ex's|boss|colleague*|coworker*|co-worker*|employee*|wife*|husband*|someone|somebody|secret*|hidden|system prompt|instructions|rules|diagnos*|prescri*|symptom*|rash|mole|essay|thesis|exam|homework|assignment|invest*|stock|stocks|savings|vote*|election|politic*|president|religion|bomb*|weapon*|kill*|end it|suicid*|"
        "poison|drug*|meth|malware|virus|keylogger|phish*|spam|threat*|joke|mock*|mocking|insult*|guilty|sue|medical|doctor's|review|reviews|five-star|testimonial*|impersonat*|whose|everyone's|everybody's|all customers|all users|lyrics|full text|copyright*|pirat*|torrent|opinion|think of|feel about|predict*|lottery|will win|guess|urgent|waive|discount|refund|free|limit|admin|root|production|prod|audit|logs|grade*|waiting period|call my|phone my|translate this|poem|recipe|restaurant|movie|weather|wine|thermostat|picture|photo|image|voicemail|video|screenshot|this woman|this man|who is|track my|spy|his phone|her phone|their phone|reward",
    ),
    Lexicon(
        "de",
        "der|die|das|und|ich|sie|ist|nicht|ein|eine|zu|den|mit|von|bitte|auf|fur|es|wir|mir|dem|im|ihre|kann|du|wie|sind|bei|dass|noch|haben",
        "nicht|kein*|nein|nie|niemals|niemand*|nichts|ohne|weder|nirgends|ungern|keinesfalls",
        "ich|mir|mich|mein*|wir|uns|unser*|assistent*|hier im chat|von hier|chatbot|im chat|uber den chat|diesen chat|hier",
        "vertraulich*|geheim*|datenschutz*|richtlinie*|vorschrift*|regeln|regel|regelung*|erlaubt|darf|durfen|durfte|zulassig|unzulassig|befugt|befugnis*|berechtigt*|berechtigung*|herausgabe|herausgeben|auskunft*|weitergeben|weitergegeben|preisgeben|verraten|offenleg*|privat*|personlich*|personenbezogen*|schutz*|geschutzt|unterlieg*|gesetz*|rechtlich|verboten|untersagt|vorbehalten|ausschliesslich|allein|inhaber*|kontoinhaber*|zustandig*|genehmig*|freigabe|vollmacht|zugelassen*|entscheid*|ausnahme*|dritte*|anderer|andere|grundsatzlich|pflicht|verschlossen|sperr*|nur von|nur der|nur die|selbst",
        "betrug*|falsch*|gefalscht*|strafbar*|straftat*|illegal*|unehrlich*|tausch*|irrefuhr*|luge*|lugen|gefahr*|schad*|verletz*|verstoss*|verstosst|unfair*|unethisch*|erfunden*|manipul*|diskriminier*|beleidig*|drohung*|bedroh*|heimlich*|missbrauch*|rechtswidrig*|plagiat*|ehrlich*|hass*|herabsetz*|blossstell*|verleumd*|urkundenfalsch*",
        "aufgabe*|aufgabengebiet|zustandig*|zustandigkeit*|bereich|gebiet|fahigkeit*|angebot|rolle|ausserhalb|nur mit|nur bei|nur zu|nur um|nur fragen|nur fur|rund um|assistent der|assistent des|assistent fur|moglich*|auftrag|dafur da|da fur|kenne mich|kummere mich|beschrank*|spezialisier*|gehort nicht|gehoren nicht|meinung|reichweite|kompetenz*|metier|fachgebiet|lasst sich|lassen sich|themen",
        "ablehn*|abgelehnt|lehne|weiger*|verweiger*|verzicht*|passe|lieber nicht|ungern|sehe von|sehe davon|nehme abstand|abstand|halte mich|heraus|raus|nicht mit|mache ich nicht|bin ich raus|kommt nicht|nicht in frage|infrage|ausgeschlossen|nachkommen|entsprechen|aussere|aussern|bleibt|bleiben|wird nichts|gibt es nicht|neutral|absehen|unterlass*|vergiss es|vergessen sie|mitmachen|beteilige*|hinnehmen|auf keinen fall|kommt es nicht|ohne mich|keine hilfe|nicht helfen|nicht behilflich|nicht weiterhelfen|untersutz*|von mir|bekommen sie|bekommst du|grenze|schluss",
        "arzt*|arztin|apothek*|anwalt*|anwaltin|rechtsanwalt*|notar*|steuerberat*|berater*|beraterin|fachmann|experte*|fachleute|wenden|wende dich|mieterverein|verbraucherzentrale|selbst|selber|jemand|polizei|notruf|telefonseelsorge|ansprechpartner|fragen sie|sprechen sie|buchhaltung|abteilung|filiale",
        "leider|tut mir leid|bedaure|bedauer*|stattdessen|gern*|jedoch|allerdings|verstandnis|verstehe|nachvollzieh*|empfehle|rate|kann ich aber|sorry|entschuldig*|schade",
        "erledigt|gebucht|bestellt|storniert|geschickt|gesendet|hier ist|hier sind|ist veranlasst|habe ich|ich habe|angelegt|geandert|unterwegs|zum beispiel|das gekurzte|zum beispiel so|folgend*|anbei|sicher|naturlich|klar|ja|verschoben|korrigiert|nehmen sie|konnen sie|kannst du|am besten|denn|weil|erreichbar|wurde",
        "versucht|versuche|fehler|gerade|momentan|im moment|derzeit|wartung|spater|erneut|noch einmal|nochmal|antwortet nicht|storung|zeituberschreitung|ausgefallen|lieferbar|defekt|abgelaufen|schon|bereits",
        "welche*|nummer|kundennummer|buchungsnummer|bestellnummer|brauche|benotige|schicken sie|nennen sie|wie lautet|gefunden|finde|ausverkauft|verfugbar|frei|plate|platze|sobald|bevor|zuordnen|geben sie mir|sagen sie mir|bestatigen",
        "darf|kann ich|kann man|ist|sind|gibt|wann|wo|warum|wieso|wie|was|welche|welcher|welches|hat|haben|muss|soll|wird|werden|lohnt|wer|konnen",
        "passwort*|gehalt*|verdien*|adresse|nummer von|krankmeld*|krankschreib*|falsch*|gefalscht*|fake|ausrede*|hack*|umgeh*|nachbar*|ex|kolleg*|chef*|freundin|bewertung*|kunde|aktie*|wahl*|wahle|gewinnt|diagnos*|rezept*|hausarbeit|klausur|heimlich|kamera|rechtlich*|geheim*|witz|drohbrief|mahn*|gebuhr*|erlass*|prompt|anweisung*|bombe|waffe*|testament|meinung|gedicht|limit",
    ),
    Lexicon(
        "fr",
        "le|la|les|de|des|et|est|je|vous|un|une|pour|que|ne|pas|votre|vos|du|en|il|nous|au|sur|dans|avec|qui|ce|plus|mon|ma|mes|c'est|sont",
        "ne|n'*|pas|jamais|aucun*|rien|non|sans|ni|personne|guere|impossible|nullement",
        "je|j'*|me|m'*|moi|mon|ma|mes|nous|notre|nos|assistant*|ici|ce service|ce canal|chatbot|depuis ce chat|par chat|on ne",
        "confidentiel*|secret*|regle*|reglement*|politique|autoris*|droit|habilit*|divulg*|communiqu*|transmet*|protege*|prive*|vie privee|donnees|personnel*|interdi*|permis|permet*|permettent|charte|reserve*|seul*|titulaire*|proprietaire*|loi|legal*|tiers|exclusiv*|accord|livrer|exception|ressort|competen*|uniquement|s'ouvre|ferme",
        "fraud*|faux|fausse*|falsifi*|illegal*|delit*|crime*|penal*|tromp*|mensong*|mentir|danger*|nuire|nuit|nuisible|malhonnet*|triche*|plagiat|manipul*|insult*|menac*|harcel*|discrimin*|usurp*|diffam*|atteinte|contraire*|ethique|invent*|escroqu*|pirat*|blessant|viol*|haine*|injurieu*",
        "role|mission*|tache*|perimetre|domaine*|competence*|capacit*|cadre|limite*|uniquement|seulement|seules|que les|que des|que de|que sur|que pour|hors de|depasse*|m'occupe|traite|specialis*|dedie*|fonction*|portee|mesure de|s'arrete|cantonn*|consacre*|avis|opinion*|outil*|attribution*",
        "refus*|declin*|m'abstien*|m'abstenir|abstien*|prefer*|pas question|hors de question|tres peu|renonc*|oppos*|laisse*|reste|restent|rester|a l'ecart|m'en tien*|neutr*|passe mon tour|je passe|participer|participe|accepter|accepte|donner suite|suite favorable|exclu*|rejet*|vous n'obtiendrez|ne compte|comptez pas|m'engage*|me prononce*|prononcer|aider|aide|fournir|fournis|sans moi|pour moi|de ma part|cette demande|ligne rouge",
        "medecin*|avocat*|notaire*|pharmacien*|conseiller*|expert*|professionnel*|specialiste*|adress*|tournez|consult*|contact*|quelqu'un|police|urgence*|le 15|3114|vous-meme|demander a|demander conseil|voir avec|caviste|veterinaire",
        "desole*|regret*|malheureusement|helas|toutefois|cependant|plutot|en revanche|volontiers|a la place|comprend*|inquietude|merci|navre*|excus*|pourquoi pas|propose*",
        "c'est fait|voici|voila|bien sur|oui|reserve|annulee|annule|envoye*|ajoute*|modifie*|rembourse*|mis a jour|j'ai|je viens|en route|ci-dessous|par exemple|pouvez|peut|mieux vaut|part demain|bloquee|transfere|corrige",
        "essaye*|erreur|panne|moment|actuellement|reponse|repond pas|echou*|indisponib*|maintenance|plus tard|reessay*|temporairement|deja|encore",
        "quel*|numero|reference|dossier|precis*|indiqu*|pouvez-vous|pourriez|auriez|trouve*|disponib*|complet|reste|rupture|sans le numero|besoin de|confirm*|aucun resultat|existe",
        "puis-je|peut-on|est-ce|est|quand|ou|pourquoi|comment|combien|quel|quelle|quels|quelles|y|que|qu'*|avez-vous|faut-il|dois-je|a-t-on|qui|quid",
        "mot de passe|salaire*|gagne|adresse|numero|portable|faux|fausse*|pirat*|voisin*|collegue*|patron*|ex|certificat*|ordonnance|diagnosti*|voter|candidat*|elections|action*|investir|testament|dossier|secret*|bombe|arme*|menac*|excuse|plafond|avis|instruction*|memoire|dissertation|examen|poeme|vin|recette*|chien|prenom|devoirs|personne",
    ),
    Lexicon(
        "es",
        "el|la|los|las|de|que|y|en|un|una|es|por|para|con|no|se|su|del|al|me|te|lo|mi|le|pero|esta|como|mas|puedo|tu|ya|si",
        "no|nunca|jamas|nada|nadie|ningun*|tampoco|ni|sin|imposible",
        "yo|me|mi|mis|nosotros|nos|nuestr*|conmigo|puedo|voy|vamos|podemos|asistente|aqui|chat|este canal|desde aqui|hago|doy|damos|quiero|prefiero|debo|tengo|estoy|soy|atendemos|facilit*|revel*|comparto|compartimos|ayudo|escribo|opino",
        "confidencial*|secret*|privad*|privacidad|politica*|norma|normas|normativa|regla*|autoriz*|permit*|permis*|facult*|revel*|divulg*|protegid*|proteccion|datos|personal*|prohib*|solo|solamente|unicamente|exclusiv*|titular*|propietario*|ley|legal*|reservad*|excepcion*|tercer*|competen*|corresponde*|responsab*|acceso|de cada",
        "fraud*|fals*|delito*|ilegal*|engan*|mentir*|mentira*|peligr*|dan*ino|danar|perjudic*|deshonest*|trampa*|plagi*|manipul*|insult*|amenaz*|acos*|discrimin*|suplant*|etic*|honest*|inventar*|inventad*|estaf*|viola*|vulner*|odio|humill*|injust*|pirate*",
        "funcion*|tarea*|alcance|ambito|fuera de|limit*|me limito|solo atend*|solo ayud*|solo respond*|solo gestion*|me dedico|me ocupo|especializ*|capacidad*|rol|papel|competencia*|asistente de|solo trato|estoy para|area|opinion*|opino|se me escapa*|mision|campo|disponible para",
        "rechaz*|declin*|nieg*|negar*|me abstengo|abstener*|prefiero|preferi*|paso|ni hablar|cuentes|cuente conmigo|descart*|neutral*|al margen|me mantengo|linea roja|participar|participo|prest*|colabor*|ayudar|darte|darle|proporcion*|retirar*|la respuesta es|imposible|de ninguna manera|en absoluto|sigue siendo|queda*|de mi parte|resolver",
        "medico*|abogad*|notari*|farmaceutic*|dermatolog*|asesor*|profesional*|expert*|especialista*|dirij*|acud*|consult*|contact*|llama al|emergencia*|policia|tu mismo|usted mismo|alguien|ayuntamiento|otra persona|pregunt*|habla con|hable con",
        "lo siento|siento|lament*|desgraciad*|por desgracia|en su lugar|en cambio|encantad*|puedo ayudar|entiendo|comprendo|gracias|perdon*|disculp*|sin embargo|si quieres|te sugiero|recomiend*|con gusto",
        "listo|hecho|aqui tienes|aqui esta|he |ya esta|ya he|reservad*|enviad*|cancelad*|corregid*|actualizad*|por supuesto|claro|si,|acabo de|te envio|por ejemplo|puedes|puede|normalmente|te la|porque|habitaciones",
        "error|intent*|ahora mismo|momento|fallo|responde|mantenimiento|mas tarde|caid*|temporal*|vuelvo a|he podido|ha podido|ya|todavia|aun",
        "que numero|numero de|cual*|que fecha*|cuant*|datos|indic*|envia*|envie|puedes dar*|confirm*|encuentro|encontr*|disponib*|agotad*|queda*|localiz*|necesito|sin esos|dime",
        "puedo|se puede|es|hay|cuando|donde|por que|como|cuanto|cuantos|que|cual|cuales|tengo|esta|estan|debo|tiene|son|quien|haceis|hacen|aceptan",
        "contrasena|clave|salario|sueldo|gana|direccion|telefono|notas|fals*|hack*|piratear|clonar|vecin*|companer*|jef*|ex|receta*|diagnost*|justificante|excusa|medic*|crema|examen|tesis|ensayo|invert*|acciones|votar|eleccion*|bomba|arma|pastillas|amenaz*|multa|reglas|secret*|opinas|poema|chiste|cancion|tarjeta|instruccion*|resena*|limite",
    ),
    Lexicon(
        "it",
        "il|lo|la|i|gli|le|di|che|e|un|una|per|non|con|del|della|si|mi|ti|da|in|sono|ho|ma|questo|come|piu|al|puo|alla|suo",
        "non|mai|nessun*|niente|nulla|ne|senza|no|neppure|neanche|impossibile|nemmeno",
        "io|mi|me|mio|mia|miei|noi|ci|nostr*|posso|possiamo|voglio|devo|preferisco|assistente|qui|chat|questo canale|mi occupo|scrivo|fornisco|forniamo|sono|do|aiuto|tiro",
        "riservat*|segret*|privat*|privacy|policy|norma|norme|normativ*|regol*|autorizz*|permess*|consentit*|divulg*|comunic*|rivel*|protett*|dati|personal*|vietat*|solo|soltanto|esclusiv*|titolar*|proprietari*|legge|legal*|competen*|eccezion*|terzi|altre persone|altrui|spetta|compete|accesso",
        "frod*|truff*|fals*|reato|illegal*|illecit*|ingann*|bugi*|mentire|pericolo*|danneggi*|dannos*|disonest*|imbrogli*|plagi*|manipol*|insult*|minacc*|discrimin*|ridicol*|contrari*|etic*|inventar*|inventat*|viola*|odio|offens*|scorrett*|contraff*",
        "compit*|ruolo|ambito|campo|competenz*|funzion*|mi occupo|soltanto di|solo di|rientra*|fuori|oltre|limit*|capacita|specializz*|assistente di|assistente del|portata|possibilita|opinion*|parere|settore|dedicat*|sono qui per",
        "rifiut*|declin*|preferisco|respint*|respin*|mi astengo|astener*|mi tiro indietro|tiro indietro|passo|non se ne parla|escluso|neutral*|resto|rest*|rinunc*|contare su|partecip*|non conti|prestar*|aiutar*|fornir*|accett*|dar seguito|assecond*|esaudi*|non ci sto|da parte mia|da me|niente da fare|impossibile|fuori discussione|linea",
        "medico|medici|avvocat*|notai*|farmacist*|consulent*|professionist*|espert*|specialist*|rivolg*|consult*|contatt*|qualcun*|veterinario|112|118|da solo|tu stesso|qualcun altro|chied*|commercialista",
        "mi dispiace|dispiace|purtroppo|spiacent*|scus*|invece|volentieri|tuttavia|pero|capisco|comprendo|posso aiutar*|ti suggerisco|consigli*|grazie|se vuoi|ahime|al posto",
        "fatto|ecco|prenotat*|inviat*|ho |annullat*|aggiornat*|ordinat*|certo|si,|ti mando|corrett*|spedit*|per esempio|ad esempio|puoi|e in arrivo|di solito|perche|lo adorano",
        "errore|riprov*|al momento|adesso|ora|risponde|tentativ*|provat*|manutenzione|piu tardi|temporan*|fallit*|non e andat*|guast*|gia|ancora|rifiutato dalla",
        "quale|numero|codice|mi serve|inviami|mandami|indic*|confer*|trov*|disponibil*|esaurit*|rimast*|ho bisogno|puoi dirmi|per favore|senza il|vedo",
        "posso|si puo|e|c'e|ci|quando|dove|perche|come|quanto|che|cosa|qual|quale|quali|devo|ha|sono|chi|avete|accettate|com'*",
        "password|stipendio|guadagn*|indirizzo|telefono|codice fiscale|fals*|hack*|vicin*|collega*|capo|ex|ricetta|prescriv*|antibiotic*|diagnos*|tesi|esame|compiti|invest*|azioni|votare|elezion*|bomba|arma|minacc*|recension*|fattura|segret*|scherz*|post contro|opinione|poesia|istruzion*|certificato|limite|sconto|password",
    ),
    Lexicon(
        "pt",
        "o|a|os|as|de|que|e|do|da|em|um|uma|para|com|nao|por|no|na|se|seu|sua|me|mas|ao|esta|voce|foi|ja|mais|pra|isso",
        "nao|nunca|jamais|nada|ninguem|nenhum*|nem|sem|impossivel|tampouco",
        "eu|me|meu|minha|meus|nos|nosso|nossa|comigo|posso|podemos|vou|prefiro|consigo|assistente|aqui|chat|por aqui|sou|faco|forneco|fornecemos|divulg*|revel*|partilh*|compartilh*|dou|quero|processo|escrevo",
        "confidenci*|sigil*|segredo|privad*|privacidade|politica*|regra*|norma*|autoriz*|permit*|permiss*|divulg*|revel*|proteg*|protecao|dados|pessoa*|proibid*|apenas|somente|so o|so a|exclusiv*|titular*|proprietari*|lei|legal*|decisao|area de|compet*|excec*|terceir*|reservad*|acesso|cabe a|cabe ao",
        "fraud*|fals*|crime*|ilegal*|engan*|mentir*|mentira|perig*|prejudic*|desonest*|trapac*|plagi*|manipul*|insult*|ameac*|discrimin*|etic*|inventar|inventad*|golpe*|burla|viola*|odio|humilh*|fazer-se passar|fingir|honest*|injust*|cola",
        "funcao|funcoes|tarefa*|ambito|alcance|escopo|fora d*|limit*|so trato|so respondo|so ajudo|cuido|especializ*|capacidade*|papel|assistente do|assistente da|area|opini*|fogem|foge|competencia*|dedico|apenas sobre",
        "recus*|declin*|prefiro|nego|negad*|abstenho|abster*|passo|fora de questao|conte comigo|contem comigo|neutr*|devendo|descart*|participar|participo|ajudar|fornecer|atender|liberar|de jeito nenhum|de forma alguma|nem pensar|fico de fora|rejeit*|mantem|continua|permanece|da minha parte|sem chance|linha",
        "medic*|advogad*|notari*|farmaceutic*|consultor*|profission*|especialista*|dirija|procure|consult*|contact*|contat*|188|190|112|alguem|voce mesmo|pergunte|fale com|tabeliao",
        "desculp*|lament*|infelizmente|em vez|sinto muito|porem|contudo|entendo|compreendo|com prazer|obrigad*|se quiser|sugiro|recomendo|posso ajudar|gostaria",
        "pronto|feito|aqui esta|reservad*|enviad*|cancelad*|atualizad*|reenviei|enviei|ja o|claro|sim|corrigid*|por exemplo|pode |separei|passei|em anexo|segue|porque",
        "erro|tente|tentei|no momento|agora|falha|responde|manutencao|mais tarde|temporari*|caiu|ja|ainda",
        "qual|numero|enviar-mo|envie|informe|preciso d*|confirm*|encontr*|achei|disponiv*|esgotad*|poderia|pode enviar|pode informar|restam|sem o numero|data",
        "posso|pode|pode-se|e|ha|tem|quando|onde|por que|porque|como|quanto|quantos|que|qual|quais|devo|esta|sao|o que|quem|voces",
        "senha|palavra-passe|salario|ganha|morada|endereco|telefone|fals*|hack*|vizinh*|coleg*|chefe|ex|receita|diagnos*|atestado|tese|prova|trabalho|invest*|acoes|votar|eleic*|bomba|arma|ameac*|avali*|limite|fingir|segred*|advogado|processar|video|poema|instruc*|multa|banco",
    ),
    Lexicon(
        "nl",
        "de|het|een|en|van|ik|is|dat|niet|je|u|te|op|in|voor|met|er|zijn|aan|die|uw|kan|mijn|maar|om|naar|ook|wat|we|bij",
        "niet|geen|nee|nooit|niemand|niets|zonder|noch|nergens|liever niet",
        "ik|mij|me|mijn|wij|we|ons|onze|assistent*|hier|deze chat|chatbot|via de chat",
        "vertrouwelijk*|geheim*|prive|privacy*|beleid*|regel|regels|richtlijn*|toegestaan|bevoegd*|gemachtigd|verstrek*|delen|deel|gedeeld|openbaar|bescherm*|gegevens|persoonsgegevens|verbod*|mag|mogen|alleen de|alleen door|uitsluitend|voorbehouden|wet|wettelijk|eigenaar|rekeninghouder|houder|toestemming|uitzonder*|derden|anderen|toegang|beslis*",
        "fraude|vals*|vervals*|strafbaar|illegaal|misleid*|lieg*|leugen*|gevaar*|schad*|oneerlijk*|bedrog|bedrieg*|plagia*|manipul*|beledig*|bedreig*|discrimin*|ethisch*|verzonnen|verzin*|verzinnen|inbreuk|misbruik*|haat|kwets*|eerlijk|stiekem",
        "taak|taken|rol|bereik|buiten|binnen|domein|gebied|beperk*|alleen voor|alleen over|alleen met|ben er voor|hier voor|gespecialiseer*|mogelijkhe*|opdracht|assistent van|mening|vakgebied|kan alleen|houd me|terrein",
        "weiger*|afwijs*|afgewezen|wijs|pas|liever|sla|bedank|onthoud*|komt er niet|geen sprake|uitgesloten|neutraal|blijf|blijft|doe ik niet|doe ik|aan mee|meewerk*|werk ik|helpen|uitspraken|begin ik|op in|ingaan|voldoen|stel ik|geef ik|van mij|grens|zit er niet in|afzien|zie ik",
        "arts*|huisarts*|dokter|advocaat|notaris|apotheker|adviseur|deskundig*|specialist*|professional*|wend*|raadpleeg*|contact|zelf|iemand|politie|113|112|bespreek|vraag het|neem contact",
        "helaas|sorry|spijt*|in plaats|graag|wel|echter|begrijp*|vervelend|jammer|kan ik wel|help je|misschien|raad",
        "gelukt|geboekt|verstuurd|besteld|gedaan|hier is|ik heb|natuurlijk|zeker|ja|aangepast|onderweg|geannuleerd|bijvoorbeeld|kun je|kunt u|want|verzonden|omdat|meestal",
        "fout|geprobeerd|probeer|op dit moment|storing|nu even|later|onderhoud|tijdelijk|reageert|weigerde|al|nog",
        "welke|nummer|ordernummer|stuur|geef|gevonden|vind|uitverkocht|beschikbaar|nodig|zodra|voordat|bevestig*|wat is uw|wat is je|kaartjes|vrij",
        "mag|kan|is|zijn|wanneer|waar|waarom|hoe|wat|welke|heeft|hebben|moet|wie|kunnen|er|doet",
        "wachtwoord*|inlog*|salaris|verdient|adres|nummer van|vals*|nep|hack*|buur*|collega*|baas|ex|recept|diagnos*|verklaring|scriptie|examen|beleg*|aandelen|stemmen|verkiezing*|bom|wapen*|dreig*|recensie*|vind je|mening|geheim*|mop|gedicht|koning|instructie*|limiet|medisch*",
    ),
    Lexicon(
        "pl",
        "i|w|na|z|do|sie|jest|nie|to|ze|mi|czy|o|jak|po|za|od|dla|ma|moj|moje|prosze|juz|ale|ten|przez|tym|tej|sa|bym",
        "nie|nigdy|nikt|nikomu|nikogo|nic|niczego|zaden|zadn*|ani|bez|brak|niestety",
        "ja|mi|mnie|moj*|moich|mam|moge|mozemy|nam|nas|nasz*|asystent*|czacie|czat|tutaj|tu|jestem|udostepniam*|podaj*|przekaz*|pomog*|pisze|doradzam|zajmuje|udzielam*|ujawniam*|podejmuje|zachowuje|chce|wole|bede|napisze",
        "poufn*|tajn*|prywatn*|polityk*|zasad*|regul*|regulamin*|upowazni*|uprawni*|zezwol*|pozwol*|wolno|ujawni*|udostepni*|przekazuj*|chronion*|ochron*|danych|dane|osobow*|zabron*|zakaz*|tylko|wylacznie|jedynie|wlasciciel*|posiadacz*|prawo|prawn*|wyjatk*|zgod*|osob*|dostep*|decyduj*|zastrzezon*",
        "oszust*|oszuk*|falsz*|przestepst*|nielegal*|klam*|wprowadz*|niebezpiecz*|szkod*|nieuczciw*|sciag*|plagiat*|manipul*|obraz*|grozb*|dyskrymin*|etycz*|zmysl*|wymysl*|narusz*|nienawi*|karaln*|lewe|podrob*|uczciw*",
        "zakres*|kompetenc*|zadan*|zadani*|rola|roli|poza|ogranicz*|zajmuje sie|sie zajmuje|nie zajmuje|asystentem|specjaliz*|mozliwosc*|opini*|zdania|dziedzin*|obszar*|sluze|obsluguj*|tylko w|tylko z|potrafi*",
        "odmawi*|odmow*|odrzuc*|wstrzym*|wole nie|wolalbym|nie wchodzi|w gre|wykluczon*|neutraln*|pass|pasuje|podejm*|podejmuje|ucze*stnicz*|udzialu|reki|przyloze|spelni*|pozosta*|nie ma mowy|nie licz|rezygnuj*|udziel*|powstrzym*|beze mnie|ode mnie|pomog*|pomoc|granic*",
        "lekarz*|prawnik*|adwokat*|notariusz*|farmaceut*|doradc*|specjalist*|ekspert*|zwroc*|skontaktuj*|skonsult*|ktos|policj*|112|116|sam|samodziel*|zapytaj|porozmawiaj",
        "przykro|przepraszam|niestety|zamiast|chetnie|jednak|rozumiem|dziekuj*|wybacz*|moge natomiast|moge za to|szkoda|proponuj*",
        "gotowe|zrobione|oto|zarezerwowan*|wyslan*|zamowion*|anulowan*|zglosi*|jasne|oczywiscie|tak|nadamy|zaktualizowan*|na przyklad|mozesz|mozna|poniewaz|zwykle",
        "blad|bledu|probowal*|sprobuj*|chwilowo|teraz|obecnie|awari*|pozniej|przerwa|odpowiada|ponownie|juz|jeszcze",
        "ktor*|numer*|podaj|podac|przeslij|potrzebuj*|znalaz*|znalez*|dostepn*|wyprzedan*|wolnych|miejsc|potwierdz*|mozesz|jaki*|zanim|dopoki|brakuje",
        "czy|kiedy|gdzie|dlaczego|jak|ile|co|jaki|jaka|jakie|ktory|ktora|kto|gdzie|polecasz|mozna|moge|na kogo",
        "haslo|hasla|zarabia|pensj*|adres|telefon|numer|falsz*|lewe|zhak*|sasiad*|kolez*|koleg*|szef*|byl*|recept*|diagnoz*|zwolnien*|magistersk*|prace|egzamin*|inwest*|akcje|glosowac|wybor*|bomb*|bron|grozb*|opini*|recenz*|tajn*|wiersz|pogoda|instrukcj*|kurier*|limit|administrator*",
    ),
    Lexicon(
        "tr",
        "ve|bir|bu|icin|ile|de|da|mi|ne|cok|var|bana|size|sizin|olarak|daha|gibi|ama|o|siz|ben|lutfen|olan|mu|kadar|en",
        "hayir|degil*|yok|yoktur|hicbir*|hic|kimse*|asla|*maz|*mez|*miyor|*muyor|*miyorum|*muyorum|*miyoruz|*muyoruz|*mam|*mem|*mayiz|*meyiz|*mayin|*meyin|*mayacak|*meyecek|*mayacagim|*meyecegim|*madim|*medim",
        "ben|bana|benim|biz|bizim|asistan*|burada|buradan|kanaldan|sohbet*",
        "gizli*|mahrem*|kural*|politika*|yetki*|izin*|izni|izinli|paylas*|acikla*|korun*|kisisel|verileri|ozel|yasak*|yalnizca|sadece|yasa*|kanun*|sahibi*|hesap sahibi|baska|ucuncu|erisim*|istisna*|onay*|ihlal*",
        "sahte*|suc|dolandir*|yasa disi|yasadisi|yalan*|yanilt*|tehlike*|zarar*|durust*|hile*|kopya|intihal|manipul*|hakaret*|tehdit*|ayrimci*|etik*|uydur*|ihlal*|nefret|aldat*|haksiz*",
        "gorev*|alan*|disinda|kapsam*|sinirli|sadece|yalnizca|uzman*|yetenek*|rol*|konularinda|asistani*|icin buradayim|gorus*|fikir|ilgilen*|hizmet ver*|bakiyor*",
        "redd*|reddet*|geri cevir*|kacin*|tercih*|uzak dur*|tarafsiz*|girmiyor*|katil*|yardimci olm*|yardimci olam*|yerine getir*|olmam|vermem|yapmam|yazmam|vermiyor*|yapmiyor*|yazmiyor*|edemem|edemiyor*|edemeyiz|veremem|veremiyor*|veremeyiz|yapamam|yapamiyor*|yapamayiz|yazamam|paylasamam|paylasamiyor*|paylasamayiz|paylasmam|paylasmiyor*|soyleyemem|soyleyemeyiz|getiremiyor*|getiremem|etmem|etmiyor*|etmeyiz|vermeyiz|pas|mumkun degil|olmayacag*|bulunamam|bulunmuyor*|olamam|olamayiz|olamiyor*|almam",
        "doktor*|hekim*|avukat*|noter*|eczaci*|danisman*|uzman*|basvur*|danis*|iletisim*|gorus*|polis|112|kendiniz|kendin|baskasi|sor*",
        "uzgun*|maalesef|ne yazik|bunun yerine|yerine|memnuniyet*|ancak|anliyor*|tesekkur*|kusura|ozur|isterseniz|oner*",
        "tamam|iste|yaptim|ettim|gonderdim|gonderildi|rezervasyon*|hazir*|elbette|tabii|evet|asagida|iptal edildi|guncel*|ornegin|mesela|cunku|verin|gerek*|gerekir",
        "hata|tekrar dene*|su anda|simdilik|denedim|bakim*|yanit vermiyor|gecici*|sonra|ariza*|ulasilam*|henuz|zaten",
        "hangi|numara*|gonderir|paylasir misin*|bulamadim|bulunamadi|kalmadi|tukendi|musait*|mevcut|onayl*|lazim|verir misin*|bilgisini|ihtiyac",
        "*mi|yikanir|gidebilir|alabilir|var mi|nerede|ne zaman|neden|nasil|kac|hangi|kim|niye",
        "sifre*|maas*|adres*|telefon*|sahte|hack*|komsu*|meslektas*|patron*|eski|sevgili*|ilac|recete|teshis|tez|odev*|sinav*|yatirim*|hisse*|oy|secim*|bomba|silah*|tehdit*|yorum*|gizli*|siir|fikra|koca*|karim*|esim*|hareketleri*|talimat*|limit*|rapor",
    ),
)  # fmt: skip
