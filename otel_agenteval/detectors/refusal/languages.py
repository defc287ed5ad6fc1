"""Define the phrases of refusals, with one entry per language.

All words have the form of :func:`~...injection.normalise.folded`: lower case, Latin letters without diacritics, and straight
apostrophes. A field is an alternation of regular expressions.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class Language(NamedTuple):
    """The phrases of refusals in one language."""

    name: str
    cues: str
    """Substrings of which every refusal in this language contains at least one."""
    decline: str
    """The speaker doesn't or may not do something."""
    weak: str
    """Phrases that decline only if the answer contains little else, such as a change of subject, another contact or the speaker's purpose."""
    pardon: str
    """Phrases that look similar and don't decline: idioms, natural limits, failures, missing data."""
    empty: str
    """Sentences without a result: regret, thanks, offers, questions, other contacts."""


_ME = r"(?:i|we|this (?:assistant|bot|chatbot|service|chat)|the assistant)"
_NOT = r"(?:can't|cannot|can not|cant|won't|wont|will not|(?:am|'m|are|'re|is|was) (?:sadly |afraid |simply |just |really |currently |also )?(?:not able to|unable to|not going to|not gonna|not willing to)|(?:won't|will not) be able to|wouldn't|would not|couldn't possibly)"
_NOT_ABOUT_IT = (
    r"wait\b|stress|overstate|overemphasi|emphasi|thank|imagine|believe|help but|say (?:for|with|exactly|whether|if)|be (?:certain|sure|more)|guarantee|promise|"
    r"tell (?:from|whether|if|exactly)|confirm (?:whether|if)|keep you|bore you|lie\b|deny|complain|remember|hear\b|judge|agree more|find\b|see\b|locate|reach\b|connect|detect|spot\b|load|open the|"
    r"go wrong|ignore|praise|fault|speak highly|argue|blame|(?:highly )?recommend[^.]{0,40}enough|read your mind|resist|get (?:over|enough|through)|take (?:long|much)|rule out|be of|make it to"
)
_FOR_WE = r"help|assist|provide|share|disclose|discuss|make (?:any )?changes|comply|fulfil|process (?:this|that|your)|give (?:you|out)|answer (?:that|this)|support (?:this|that)|advise|comment|release|reveal|do that|do this|approve|honou?r|act on|grant"

ENGLISH = Language(
    "en",
    "n't|not|cant|unable|wont|declin|rather|refuse|pass |pass.|outside|beyond|against|only |limited|let's|need to|you'll|confidential|say no|no.|no,|no |no!|turn down|steer|leave that|stop here|prefer|consult|question for|inappropriate|above my|have to|off-limits|off limits|draw|between|leave|bow out",
    rf"\bi(?:'m)? (?:\w+ly |also |really |just )?{_NOT}(?:,? (?:\w+ly|just|also|even|personally|in good conscience|legally),?)? (?!{_NOT_ABOUT_IT})\w+"
    rf"|\bi'm (?:sorry,? )?(?:but )?(?:\w+ly )?(?:not able to|unable to|not going to|not gonna|not willing to) (?!{_NOT_ABOUT_IT})\w+"
    rf"|(?:^|[.!,;] ?)(?:sorry,? |nope,? )?(?:can't|cannot|cant|won't|wont|not gonna|not going to|unable to) (?:help|assist|do|share|provide|discuss|answer|give|comply)"
    rf"|\b(?:we|this (?:assistant|bot|chatbot|service|chat|tool)|the assistant)(?: is| are)? ?{_NOT} (?:{_FOR_WE}|be (?:helping|sharing|providing))"
    r"|\b(?:i|we|this (?:assistant|bot|chatbot|service))(?:'m| am|'re| are| is)? ?(?:not|n't) (?:\w+ly )?(?:permitted|allowed|authori[sz]ed|comfortable|in a position|equipped|designed|set up|willing|qualified|licensed|able|going|built|meant|programmed|cleared|the right (?:one|tool|place|assistant)) "
    r"|\bi (?:do not|don't) (?:\w+ly )?(?:have (?:the )?(?:ability|permission|authority|access to (?!any)|clearance|capability|means|tools? (?:to|for)|a way to)|feel (?:comfortable|right|able)|want to|do (?:that|this|those)|write|create|take sides|take (?:a )?position|provide|share|give (?:out|advice|opinions|medical|legal|financial)|offer (?:opinions|advice|medical|legal)|discuss|generate|engage|"
    r"cross|speculate|comment on|help with|assist with|make (?:predictions|jokes)|weigh in|go there|produce|share opinions|hold (?:political|personal)|endorse|role-?play)"
    r"|\bi(?:'ll| will|'d| would|'m going to|'m afraid i(?:'ll)?)? ?(?:must|have to|need to|am obliged to|am going to|'m going to|would|will|can only)? ?(?:have to |need to )?(?:respectfully |politely |kindly )?(?:decline\b|refuse (?:to|this|that)|say no\b|turn (?:this|that|it|you|down)\b[\w ]{0,25}(?:down|request)?|stop here|sit this one out|draw (?:a|the) line|leave (?:that|this|it) (?:there|alone|to)|pass on|have to pass)"
    r"|\bi(?:'d| would) (?:much |strongly |really )?(?:rather|prefer) (?:not|to (?:stay|leave|avoid|steer|stick|keep) )|\bi prefer (?:not|to (?:stay|leave|avoid))|\bi'll (?:have to )?(?:pass\b|leave that|steer clear)|\bi(?:'ll| will) (?:have to )?pass\b"
    r"|(?:isn't|is not|aren't|are not|'s not|not) (?:\w+ly )?(?:something|anything|a (?:topic|request|thing|subject|task|conversation)|among the (?:things|topics|tasks)|part of (?:what|my)|within (?:my|the|our|what)|in my (?:power|remit|scope|wheelhouse|toolbox)|mine to|for me to|an area|what i(?:'m| am)? (?:here|do|made)|my (?:place|call|role|job|area))"
    r"|(?:falls?|is|are|lies?|goes|sits?|'s|that's|would be|well|go) (?:well |a bit |far |a little |squarely )?(?:outside|beyond|out of|above|off) (?:of )?(?:what (?:i|this|we)|my (?:scope|remit|role|area|expertise|pay|abilities|capabilities|competence)|the scope|our|this (?:assistant|service|chat)|scope|limits|bounds|pay grade|the table)"
    r"|(?:off-limits|off limits|a no-go|not up for discussion|a hard no|a no from me)|against (?:my|our|the) (?:\w+ )?(?:guidelines?|polic\w+|principles|rules|values|programming|terms|ethics)|(?:violat|breach|conflict)\w* (?:with )?(?:my|our|the) (?:\w+ )?(?:guidelines|polic\w+|terms|rules|privacy)"
    r"|a line i\b|lines? i (?:won't|don't|can't)|(?:wouldn't|would not|isn't|is not|not) (?:be )?(?:appropriate|right|ethical|responsible|proper|okay|ok|acceptable|safe) (?:for me |of me )?to\b|no can do|\bnot gonna\b|\bnot happening\b|(?:inappropriate|unethical|irresponsible|wrong|unsafe) (?:for|of) me to"
    r"|my (?:instructions|guidelines|rules|policies|role) (?:don't|do not|doesn't|does not|prevent|prohibit|forbid|are confidential|stop)|(?:policy|policies|guidelines|rules) (?:prevents?|prohibits?|forbids?|doesn't allow|don't allow|do not allow|does not allow)\w* (?:me|us)|(?:prevented|prohibited|barred|restricted) from (?:help|shar|provid|discuss|giv|assist|answer)\w+"
    r"|(?:help|support|assist\w*|guidance|advice|instructions|details|information) (?:with|on|for|about) (?:that|this|it|such)[\w ]{0,30} (?:isn't|is not|won't be|cannot be|can't be) (?:available|possible|provided|given|offered)|you won't get (?:that|this|it) from me|count me out|not in my nature|not (?:a direction|on board|going there)|(?:hard|polite|firm) (?:pass|no)\b|\bbow out|i(?: must| have to|'ll)? draw (?:the|a) line|(?:policy|policies|guidelines|rules|terms) (?:doesn't|don't|do not|does not|won't) (?:allow|permit)|(?:absolutely|certainly|definitely) not[.!]|no way[.!]|(?:not|n't) (?:\w+ )?(?:covered|supported|offered|available|handled|discussed|provided) (?:here|in this chat|through this|by this assistant|by me)|stays? between|leave (?:\w+ ){1,3}to (?:the |your |an? )?(?:them|\w*doctor|professional|expert|lawyer|specialist)",
    r"\b(?:i|we) can only|\bi(?:'m| am) (?:only|just|solely|exclusively|strictly) (?:able|set up|here|allowed|trained|for|designed)|\bi only (?:answer|help|handle|cover|deal|support|know|do)|\bi(?:'m| am) here (?:only |just |solely |strictly )?(?:to help (?:you )?with|for)|limited to|exclusively"
    r"|let's (?:talk about|discuss|change|switch|move on|focus|stick|keep|get back|find|look|not)|(?:you'll|you will|you|you'd) (?:\w+ )?(?:need|have|want|be better off|do better) (?:to )?(?:ask|asking|consult|speak|speaking|talk|talking|see|contact|turn)\w* (?:to |with )?(?:an?|your|the)\b"
    r"|(?:a question|one|something|a matter|a decision|best left|better left|matter|best answered|best discussed) (?:for|to|by|with) (?:your|an?|the)\b|(?:please |best )?(?:consult|speak (?:to|with)|talk to|ask|see) an? (?:\w+ )?(?:lawyer|doctor|attorney|professional|physician|advis[eo]r|accountant|pharmacist|solicitor|therapist|specialist|expert|vet|electrician)|as an ai\b|^nope\b|not today|nice try|i'm not an? (?:lawyer|doctor|physician|financial|therapist)|that stays (?:private|confidential|between)|remain (?:private|confidential)|is confidential|are confidential",
    r"you (?:could|can|might) (?:say|write|reply|answer|tell)|something like|until you|unless|without (?:your|the|its|an?) (?:\w+ )?(?:number|code|id|confirmation|address|name|date|email|e-mail|details|order)|before you confirm|just yet|cannot be (?:returned|changed|exchanged)|\bi (?:couldn't|could not|wasn't able|was unable)|right now|at the moment|temporarily|not unable|made a mistake|i'm not sure (?:which|what)|not (?:only|just) |can't (?:possibly )?thank"
    r"|i don't have access to (?:real-time|live|the latest) [^.]{0,60}but|won't (?:hesitate|be long|take|have to|need)|you can't\b[^.]{0,40}$|not able to (?:find|see|locate|reach)|unable to (?:find|see|locate|reach|connect|load|open|retrieve)",
    r"sorry|apolog|unfortunately|i understand|i know|i hear|i get (?:that|it|why)|i see\b|i appreciate|thank|great question|good question|happy to|glad to|pleased to|would you like|shall (?:i|we)|can i (?:help|do)|is there (?:anything|something)|let me know|if you(?:'re| are|'d| would| have| need| want)? |please (?:contact|reach|consult|call|speak|talk|ask|see|visit|try)|i can (?:help|instead|suggest|offer|point|explain)|i could|feel free|instead|what i can do|you (?:can|could|may|might|should|'ll need to) (?:contact|ask|reach|consult|speak|talk|try|check|find|call)|\?|i'm here|i'm worried|you don't have to|reach out|however",
)

_OTHERS = (
    Language(
        "de", "nicht|kein|passe|lieber|leider|ausschliesslich|nur |weiger|lehn|verzicht|bedaur|muss|nein|unmoglich|uber etwas|untersag|verboten|thema",
        r"(?:kann|konnte|darf|werde|mochte|will|mag|wurde) ich (?:\w+ ){0,6}?(?:nicht|leider nicht|keine?n?\b|nichts)|ich (?:kann|darf|werde|mochte|will|mag|wurde) (?!(?:\w+ ){0,6}?(?:nicht genug|kaum erwarten|nur empfehlen|nicht (?:finden|sehen|erkennen|warten)|gar nicht genug))(?:[\w-]+,? ){0,12}?(?:nicht|keine?[nmrs]?\b|nichts|lieber)"
        r"|(?:es )?ist (?:mir|uns) (?:\w+ )?(?:nicht (?:moglich|erlaubt|gestattet)|untersagt|verboten|unmoglich)|(?:aussere|unterstutze|helfe|erstelle|verfasse|nenne|verrate|beantworte|erklare|kommentiere|beteilige|spekuliere|bewerte) ich (?:mich )?(?:\w+ ){0,4}?(?:nicht|keine?)|ich (?:aussere mich|unterstutze|helfe|erstelle|verfasse|nenne|verrate|beantworte) (?:[\w-]+ ){0,8}?(?:nicht|keine)|(?:das|dies|so etwas|solche\w*|dazu|dabei|daran|da)\b[\w ]{0,40}(?:mochte|kann|darf|werde|will|mag|mache|schreibe) ich (?:\w+ ){0,5}?(?:nicht|lieber nicht|keine?)"
        r"|(?:gehort|fallt|liegt|ist)(?: \w+){0,3} (?:nicht (?:zu|in|teil)|ausserhalb)[\w ]{0,12} ?(?:mein|unser|dessen|was)|ich (?:lehne|weigere|verzichte|passe|muss (?:\w+ ){0,4}(?:ablehnen|passen|absagen|verweigern))|da passe ich|bin (?:ich )?(?:\w+ )?nicht (?:befugt|berechtigt|autorisiert|zustandig|der richtige|in der lage|ausgelegt)|(?:verstosst|verstoss|widerspricht)[\w ]{0,20} (?:meine|unsere|gegen)|ohne mich"
        r"|(?:kein|nicht)[\w ]{0,20} (?:teil meiner|mein aufgabengebiet)|mache ich (?:\w+ )?nicht|(?:gebe|erteile|mache|schreibe|teile) ich (?:\w+ ){0,4}(?:nicht|keine)|dafur bin ich nicht",
        r"ich bin (?:nur|ausschliesslich|lediglich)|nur (?:fragen|fur|bei|zu)|lass(?:en sie)? uns (?:uber|lieber)|wenden sie sich|(?:muss|mussen|sollte|sollten)(?: \w+){0,6} (?:arzt|anwalt|berater|fachmann|besprechen|klaren|fragen)|als ki\b|das bleibt (?:vertraulich|unter)|vertraulich|sprechen wir",
        r"nicht genug|kaum erwarten|nicht ohne|ohne (?:ihre|deine|die|buchungs|kunden|bestell)\w*|nicht ruckwirkend|gerade nicht|momentan nicht|derzeit nicht|konnte ich|nicht (?:finden|sehen|erreichen|laden|erkennen)|bis sie|erst wenn|nicht nur|nicht versprechen|nicht genau sagen",
        r"leid\b|leider|entschuldig|verstehe|danke|gern|kann ich (?:ihnen|dir) (?:sonst|noch|bei|mit)|wenn (?:du|sie)|falls|bitte wenden|mochten sie|mochtest|stattdessen|\?|wenden sie|konnen sie sich|hilft ihnen|bedaure|ihre arztin",
    ),
    Language(
        "fr", "pas |ne |n'|impossible|refus|abstenir|prefere|regret|desole|uniquement|seulement|hors|parlons|non|decliner|confidentiel",
        r"je (?:ne|n')\s?(?:peux|puis|suis|pourrai|vais|veux|souhaite|dois|saurais|donne|fais|traite|redige|partage|reponds|prends|ai)\b(?! (?:trop|pas (?:trouve|reussi|pu|vu|attendre)))[\w ']{0,30}?(?:pas|plus|aucun|guere|en mesure|habilit|autoris|qu'|vous aider|t'aider|repondre|acceder)|je ne (?:vous |te |le |la |les )?\w+rai (?:pas|aucun|rien)|pas question|hors de question|je n'ai pas (?:l'autorisation|le droit|acces|la possibilite|la capacite|vocation)"
        r"|il (?:m'est|nous est) (?:\w+ )?(?:impossible|interdit|defendu)|il ne m'est pas (?:possible|permis)|(?:ne|n')\s?(?:fait|font|entre|entrent|releve|relevent|est|sont)(?: donc)? pas (?:partie|dans|de|du|quelque chose|prevu|mon|ma|possible pour moi)|(?:sort|depasse|est|en dehors|hors|va)[\w ]{0,14} (?:du cadre|de mon|de mes|mes|au-dela|a l'encontre)"
        r"|je (?:refuse|decline|m'abstiens|dois (?:\w+ )?(?:refuser|decliner)|prefere (?:m'abstenir|ne pas|eviter)|passe mon tour|regrette,? mais)|je me vois (?:contraint|oblige)|(?:contraire|contrevient)[\w ]{0,12} (?:mes|nos|aux|a nos|a mes)|nous ne (?:pouvons|sommes)[\w ]{0,10} pas[\w ]{0,12} (?:communiquer|divulguer|partager|donner suite|autorises|fournir|vous aider)|ce n'est pas (?:quelque chose|dans mes|de mon|mon role|a moi)",
        r"je (?:reponds|traite|m'occupe|suis la) (?:uniquement|seulement|exclusivement|que)|uniquement aux questions|je ne (?:traite|reponds|m'occupe) (?:que|qu')|parlons (?:plutot|d'autre)|adressez-vous|consultez|demandez a|c'est (?:a|une question pour) (?:votre|un)|en tant qu'ia|confidentiel|il (?:vous )?faut (?:\w+ )?(?:consulter|demander|voir)",
        r"saurais trop|attendre|pas (?:trouve|reussi|pu)|sans (?:votre|le|la|numero)|pour le moment|actuellement|pas encore|tant que|avant que|n'ai pas (?:trouve|pu|reussi)|ne (?:vois|trouve) pas",
        r"desole|excus|regret|malheureusement|comprends|merci|volontiers|si vous|si tu|puis-je|souhaitez|n'hesitez|contact|adress|a la place|\?|en revanche je|je peux (?:vous|t')",
    ),
    Language(
        "es", "no |niego|rechaz|imposible|fuera|prefer|solo|declin|lamento|lo siento|hablemos|consult|abst",
        r"no (?:me )?(?:puedo|podre|podria|voy a|quiero|deseo|debo|estoy (?:autorizad|capacitad|en condiciones|habilitad|disenad|programad)\w*|tengo (?:permiso|autorizacion|acceso|la capacidad|permitido|la posibilidad|forma de)|me (?:es posible|esta permitido|corresponde|siento comod|permiten)|me esta|realizo|hago|escribo|facilito|comparto|ofrezco|doy|proporciono|opino)\b(?! (?:esperar|encontr|dejar de|ver\b|creer|mas que|localiz|conect))"
        r"|(?:no es|no son|no seria) (?:posible (?:para mi|que yo|facilitar|ayudar)|algo (?:que|en)|apropiado|etico|parte de|mi |una tarea)|no va a ser posible|(?:queda|esta|cae|se sale|sale)n? (?:fuera|mas alla)|de ninguna manera|ni hablar|no (?:te |le |lo |la |se )?\w+[aei]re\b|me (?:niego|abstengo|veo (?:obligad|en la obligacion))|(?:tengo que|debo|prefiero) (?:\w+ )?(?:rechazar|declinar|negarme|no\b|abstenerme|decir que no|decir no)|preferiria no|paso de|va (?:en )?contra|infringe|no podemos (?:facilitar|compartir|ayudar|proporcionar|divulgar|atender|darle|dar esa)|rechazo",
        r"solo (?:atiendo|respondo|puedo|contesto|ayudo|estoy|me)|unicamente (?:puedo|respondo|atiendo)|estoy (?:aqui )?(?:solo )?para (?:consultas|ayudar)|hablemos de|consulte? (?:a|con)|(?:tendra|tiene|debe|tendras) que (?:consult|pregunt|hablar)|es (?:algo|una (?:pregunta|decision)) (?:para|de|que debe)|como ia\b|confidencial|mejor (?:hablemos|preguntele|consulte)",
        r"esperar a|puedo esperar|sin (?:el|su|tu|la)\b|por el momento|en este momento|ahora mismo|no pude|no he podido|hasta que|a menos|no (?:encuentro|veo)|no solo",
        r"siento|lamento|perdon|disculp|temo|desgraciad|entiendo|comprendo|gracias|con gusto|encantad|si (?:quiere|quieres|necesit|desea|es|usted)|puedo (?:ayudar|ofrec)|le sugiero|en su lugar|\?|contact|dirij|consult",
    ),
    Language(
        "it", "non |rifiut|impossibile|preferi|fuori|solo|declin|spiacent|dispiace|parliamo|esula|consult",
        r"non (?:ti |le |vi |mi |lo )?(?:posso|potro|potrei|voglio|intendo|sono (?:autorizzat|in grado|abilitat|nella posizione|programmat|tenut|qui per)\w*|ho (?:il permesso|l'autorizzazione|accesso|la possibilita|la facolta|modo di)|e (?:consentit|permess|possibile per me)\w*|sento di|faccio|scrivo|fornisco|divulgo|do\b|rilascio|mi occupo|esprimo|condivido)(?! (?:aspettare|trovare|vedere|fare a meno|che|credere))|non mi e (?:consentit|permess|possibil)\w*|non e (?:qualcosa|una cosa|mio compito|appropriat|etic|tra le|di mia)\w*|non rientra"
        r"|esula|(?:e|va|sono) (?:fuori|al di fuori|oltre|contro) (?:da|dal|dalle|dei|le|i|il)\w*|mi (?:rifiuto|astengo|vedo costrett)|devo (?:\w+ )?(?:rifiutare|declinare|dire di no)|preferi(?:rei|sco) (?:non|evitare|astener)|declino|passo\b|mi e impossibile|mi e vietato|non possiamo (?:fornire|condividere|aiutar|divulgare|comunicare)|viola le",
        r"(?:rispondo|posso|mi occupo|sono qui|assisto) (?:solo|soltanto|esclusivamente|unicamente)|parliamo (?:di altro|d'altro)|si rivolga|rivolgiti|consult[ia] (?:un|il|la|con)\b|(?:deve|dovra|dovresti) (?:chiedere|consultare|parlare)|come ia\b|riservat",
        r"vedo l'ora|senza (?:il|la|un|numero)|al momento|in questo momento|finche|a meno che|non ho trovato|non sono riuscit|non riesco a (?:trovare|vedere)|non solo|contanti oltre",
        r"dispiace|spiacente|scusa|purtroppo|capisco|grazie|volentieri|se (?:vuole|vuoi|ha|hai|desidera)|posso (?:aiutar|offr)|invece|\?|contatt|rivolg|consult",
    ),
    Language(
        "pt", "nao |recuso|impossivel|prefir|fora|so |apenas|declin|lamento|desculp|sinto|vamos falar|consult|abst",
        r"nao (?:lhe |te |me |o )?(?:posso|poderei|poderia|consigo (?:ajudar|fazer isso|atender)|vou|quero|devo|estou (?:autorizad|habilitad|apt|em condic|programad|preparad)\w*|tenho (?:permissao|autorizacao|acesso|a capacidade|como (?:ajudar|fazer))|sou (?:autorizad|capaz)\w*|me (?:e|cabe|sinto)|faco|escrevo|forneco|compartilho|divulgo|dou|opino|realizo)\b(?! (?:esperar|encontrar|deixar de|ver\b))|nao (?:e|seria) (?:algo|permitido que eu|possivel para mim|apropriado|etico|meu papel|da minha|parte)|(?:esta|fica|foge|vai|sai) (?:fora|alem|do meu|ao meu|contra|do escopo)"
        r"|(?:me recuso|recuso-me|abstenho|prefiro nao|preferiria nao|tenho (?:de|que) recusar|preciso recusar|devo recusar|vou passar|declino|terei de recusar)|viola (?:as|os|minhas|nossas)|nao podemos (?:fornecer|compartilhar|ajudar|divulgar|informar|atender)|e-me impossivel|contra (?:as )?(?:minhas|nossas) (?:diretrizes|politicas|regras)",
        r"so (?:respondo|posso|atendo|trato|ajudo)|apenas (?:respondo|posso|atendo|duvidas)|somente (?:respondo|posso)|estou aqui (?:apenas|so) para|vamos falar (?:de|sobre)|consulte|procure um|(?:tera|deve|precisa) (?:de |que )?(?:perguntar|consultar|falar)|como ia\b|confidencia",
        r"esperar para|mal posso|sem (?:o|a|seu|sua)\b|no momento|agora\b|ate que|a menos|nao consegui|nao encontr|nao vejo|nao so\b|fora do ar",
        r"desculp|lamento|sinto|infelizmente|entendo|compreendo|obrigad|prazer|se (?:quiser|precisar|voce|desejar)|posso (?:ajudar|oferecer)|em vez|\?|contat|procure|consult",
    ),
    Language(
        "nl", "niet|geen|liever|weiger|helaas|buiten|alleen|sorry|onmogelijk|laten we|pas ",
        r"(?:kan|mag|wil|zal|ga|doe|durf|schrijf|geef|deel|verstrek|maak) ik (?:\w+ ){0,6}?(?:niet|geen|liever niet|niks)|ik (?:kan|mag|wil|zal|ga|doe|schrijf|geef|deel|verstrek|maak|heb) (?!(?:\w+ ){0,4}?(?:niet wachten|niet genoeg|niet vinden|niet zien))(?:\w+ ){0,8}?(?:niet|geen|liever)|ik ben (?:\w+ )?niet (?:bevoegd|gemachtigd|in staat|toegestaan|gerechtigd)|het is mij niet (?:toegestaan|mogelijk)|(?:valt|ligt|gaat|is) (?:\w+ ){0,3}(?:buiten|niet binnen|tegen) (?:mijn|wat|de|het|onze)|ik (?:weiger|pas|sla\b|bedank|moet (?:\w+ ){0,3}(?:weigeren|afwijzen|nee zeggen))|hoort niet (?:bij|tot)|doe ik (?:\w+ )?(?:geen|liever niet|niet)|is niet iets (?:wat|dat)|is mij verboten|in strijd met",
        r"ik (?:beantwoord|help|ben er) (?:alleen|uitsluitend)|alleen (?:vragen|voor|bij)|laten we (?:het|over)|(?:moet|dient|kun|zult) (?:je|u) (?:\w+ ){0,5}(?:vragen|arts|advocaat|raadplegen)|als ai\b|vertrouwelijk|raadpleeg een",
        r"niet wachten|niet genoeg|zonder (?:je|uw|het|een)|op dit moment|momenteel|pas als|tot je|niet gevonden|kon ik|niet (?:vinden|zien|bereiken)|kunnen niet worden|niet alleen",
        r"sorry|helaas|spijt|excus|begrijp|bedankt|dank|graag|als je|als u|wil je|wilt u|kan ik (?:je|u) (?:ergens|met)|in plaats|\?|neem contact|raadpleeg",
    ),
    Language(
        "pl", "nie |odmaw|odmow|wolal|wole|niestety|poza|tylko|przykro|wykracza|porozmawiajmy|nie.",
        r"nie (?:moge|bede|chce|wolno mi|jestem (?:upowaznion|uprawnion|w stanie|autoryzowan|przeznaczon)\w*|mam (?:uprawnien|prawa|mozliwosci|dostepu|zgody)|zamierzam|udzielam|udostepniam|zajmuje sie|pisze|podaje|tworze|wypowiadam|pomoge|napisze|podam|udostepnie|zrobie)(?! (?:sie doczekac|znalezc|zobaczyc|doczekac))|(?:musze|zmuszon\w+ jestem) (?:\w+ )?(?:odmowic|odmawiac)|odmawiam|wol(?:albym|alabym|e) (?:tego )?nie|wykracza (?:to )?poza|(?:jest|to) poza (?:moim|zakres)|nie (?:nalezy|lezy|miesci sie) (?:to )?(?:do|w) (?:moich|moim|zakres|mojej)|nie jest to cos|to nie jest cos|niezgodne z|narusza|spasuje|nie mozemy (?:udostepn|udziel|pomoc|ujawni)\w*",
        r"(?:odpowiadam|pomagam|zajmuje sie|moge) (?:tylko|wylacznie|jedynie)|tylko (?:na pytania|w sprawach)|porozmawiajmy|(?:prosze|nalezy|musisz|musi pan\w*) (?:\w+ )?(?:skonsultowac|zapytac|zwrocic)|jako (?:ai|asystent)|poufne|skonsultuj",
        r"doczekac|bez (?:numeru|twojego|panstwa|podania)|w tej chwili|obecnie|dopoki|nie znalaz|nie udalo|nie widze|nie tylko|zwrocic po",
        r"przykro|przepraszam|niestety|rozumiem|dziekuje|chetnie|jesli|czy moge|zamiast|\?|prosze (?:o kontakt|skontakt|zwroc)|skontaktuj",
    ),
    Language(
        "tr", "mam|mem|mam.|yetki|reddet|disinda|uzgun|yalnizca|sadece|degil|izin|tercih|istemi|maalesef|miyorum|muyorum|konusalim|imkan",
        r"(?:yardimci ola|yardim ede|yapa|paylasa|vere|saglaya|soyleye|yaza|cevaplaya|yanitlaya|yerine getire|gerceklestire|acikla\w*ya|destek ola|olustura|anlata|sunama|aktara|goster\w*e|goruntuleye)m[ae](?:m\b|yiz|yacagim|yecegim|maktayim|z\b)|(?:yap|yaz|paylas|ver|destekle|tartis|anlat|et)\w*(?:mayacagim|meyecegim|miyorum|muyorum)\b|yetkim (?:yok|bulunm|disinda)|(?:yetkili|iznim|izinli) degil|izin(?:im)? (?:yok|verilm)|(?:alanim|kapsam|yetkim|gorev\w*)\w*[\w ]{0,12} disinda|reddet(?:mek|iyorum)|(?:yapmamayi|yazmamayi|etmemeyi) tercih|mumkun degil|uygun degil|yapabilecegim bir sey degil|ilkelerime aykiri|politikamiza aykiri",
        r"(?:yalnizca|sadece) [\w ]{2,40}(?:yanitl|yardim|cevapl|sorular|ilgilen)|baska bir (?:konu|sey)[\w ]{0,12}konus|(?:avukat|doktor|uzman)\w*[\w ]{0,15}(?:danis|sor|basvur)|yapay zeka olarak|gizlidir",
        r"sabirsiz|su anda|su an\b|numara\w* olmadan|pazar gun|bulamadim|ulasamadim|goremiyorum|\bone kadar|hizmet veremiyoruz",
        r"uzgun|ozur|maalesef|anliyorum|tesekkur|memnuniyet|isterseniz|istersen|eger|lutfen|yerine|\?|iletisim|danis|basvur",
    ),
    Language(
        "ru", "не |воздерж|отказ|откаж|нельзя|невозмож|выходит за|только|извин|увы|к сожалению|прости|поговорим|вне ",
        r"не (?:могу|смогу|буду|вправе|хочу|хотел\w* бы|стану|готов\w*|имею (?:права|возможности|доступа|полномочий)|уполномочен\w*|в состоянии|намерен\w*|обсуждаю|даю|предоставляю|раскрываю|пишу|разглаша\w+|занимаюсь|комментирую|получится помочь|помогу)(?! (?:дождаться|найти|нарадоваться|увидеть|не |нахвалиться))|мне (?:не разрешено|не позволено|запрещено|нельзя)|(?:я )?(?:воздержусь|отказываюсь|откажусь|вынужден\w* отказать|пас\b|предпочту не|предпочитаю не|предпочел\w* бы)|(?:не входит|не относится|не является)\w*[\w ]{0,15} (?:мои|моей|моих|частью|тем)|выходит за (?:рамки|пределы)|вне моей|противоречит|нарушает (?:мои|наши|правила)|у меня нет (?:прав|доступа|полномочий|возможности|разрешения)|не можем (?:предоставить|раскрыть|помочь|сообщить)",
        r"(?:отвечаю|помогаю|могу помочь|консультирую) (?:только|лишь|исключительно)|только (?:на вопросы|по вопросам|с вопросами)|давайте (?:поговорим|лучше|сменим)|обратитесь к|(?:нужно|следует|стоит|лучше) (?:\w+ )?(?:спросить|обратиться|проконсультироваться)|как ии\b|конфиденциальн|этот вопрос (?:к|для)",
        r"дождаться|без (?:номера|вашего|кода)|сейчас\b|пока не|не удалось|не нашл|не нашел|не вижу|не только|временно|вернуть нельзя",
        r"извин|прости|сожален|увы|понимаю|спасибо|с удовольствием|если |могу помочь|хотите|вместо|\?|обратитесь|свяжитесь",
    ),
    Language(
        "uk", "не |утрим|відмов|неможлив|виходить за|лише|тільки|вибач|на жаль|перепрош|поговоримо|поза",
        r"не (?:можу|зможу|буду|вправі|хочу|хотів би|готов\w*|маю (?:права|можливості|доступу|повноважень|дозволу)|уповноважен\w*|в змозі|надаю|розголошую|пишу|обговорюю|займаюся|допоможу)(?! (?:дочекатися|знайти|побачити))|мені (?:не дозволено|заборонено|не можна)|(?:утримаюся|утримаюсь|відмовляюся|відмовляюсь|змушен\w* відмовити|волів би не|волію не)|не (?:входить|належить)[\w ]{0,15} мо|виходить за межі|поза (?:моїми|моєю|межами)|суперечить|порушує (?:мої|наші|правила)|у мене немає (?:прав|доступу|дозволу)|не можемо (?:надати|розкрити|допомогти)",
        r"(?:відповідаю|допомагаю) (?:лише|тільки|виключно)|(?:лише|тільки) на (?:питання|запитання)|поговоримо про|зверніться до|конфіденційн", r"дочекатися|без номера|зараз\b|поки не|не вдалося|не знайш|не бачу|не лише|доставки немає", r"вибач|перепрош|жаль|розумію|дякую|залюбки|якщо |можу допомогти|замість|\?|зверніться",
    ),
    Language(
        "ar", "لا |لن |عذر|آسف|اسف|أعتذر|غير |لست|أمتنع|أرفض|ليس|يتعذر|خارج|فقط|يؤسفن",
        r"(?:لا|لن) (?:أستطيع|استطيع|يمكنني|أقدر|يسعني|أتمكن|أقوم|يسمح لي|يُسمح لي|يجوز لي|أملك (?:صلاحية|الصلاحية)|أقدم|أشارك|أكتب|أفصح|أساعد|أرغب|أريد|يحق لي|تسمح لي|أفعل)(?! (?:الانتظار|العثور|رؤية|إيجاد|انتظار))|لست (?:مخول|قادر|مصرح|مؤهل)\w*|(?:غير )(?:مخول|مصرح|قادر|مسموح لي)|أعتذر عن (?:عدم|تقديم|القيام)|أرفض|أمتنع|أفضل (?:ألا|عدم|أن لا)|ليس (?:من صلاحياتي|لدي صلاحية|من اختصاصي|شيئا|ضمن|بإمكاني|بوسعي|من مهامي)|ليست (?:لدي|من)|خارج (?:نطاق|اختصاص|صلاحي|مهام)|يتعذر علي|مضطر (?:إلى |ل)?(?:ل)?(?:رفض|الاعتذار)|يخالف (?:سياس|إرشاد)|يتعارض مع|لا نستطيع (?:مشاركة|الإفصاح|مساعدت)|لا يمكننا (?:مشاركة|الإفصاح|مساعدت|تزويد)",
        r"(?:أجيب|أساعد|يمكنني) (?:فقط|حصرا)|فقط (?:على|في)|لنتحدث عن|استشر|(?:عليك|ينبغي|يجب أن) (?:\w+ )?(?:استشارة|سؤال|تسأل|تستشير|مراجعة)|سرية?\b", r"الانتظار|بدون رقم|حاليا|في الوقت الحالي|قبل أن|حتى ت|لم (?:أتمكن|أجد|أستطع)|لا أجد|لا أرى|العثور", r"عذر|آسف|اسف|نعتذر|أعتذر|للأسف|أفهم|أتفهم|شكرا|يسعدني|إذا |هل |بدلا|\؟|يرجى (?:التواصل|مراجعة)|تواصل",
    ),
    Language(
        "he", "לא |מצטער|אסור|סירוב|מסרב|אין |אינני|איני|מעדיפ|נמנע|מחוץ|רק |חורג|מנוע",
        r"(?:אני |אנחנו )?(?:לא|אינני|איני|אין באפשרותי|אין ביכולתי|אין לי) (?:\w+ )?(?:יכול|יכולה|אוכל|מורש|מוסמך|מוסמכת|רשאי|מסוגל|מוכן|רוצה|עוש|כותב|מספק|הרשאה|גישה|סמכות|אפשרות|לעזור|לספק|לבצע|אעשה|אכתוב|משתף|נותן|אעזור)(?!\w* (?:לחכות|למצוא|לראות|להפסיק))|אין באפשרותי|אסור לי|נאלצ\w* לסרב|(?:אני )?(?:מסרב|מעדיפ\w* (?:לא|שלא|להימנע)|נמנע|מעדיף לא|מעדיף שלא)|זה לא משהו ש|(?:מחוץ|מעבר) ל(?:תחום|תפקיד|סמכו|אחריות)|חורג|בניגוד ל|נוגד|אצטרך לסרב|נבצר ממני|מנוע מ|לא מתפקידי",
        r"(?:אני )?(?:כאן |עונה |יכול לעזור |מטפל )(?:רק|אך ורק)|רק (?:ל|על |ב)שאלות|בוא נדבר|נדבר על משהו|(?:כדאי|צריך|יש) (?:\w+ )?(?:להתייעץ|לפנות|לשאול)|חסוי", r"לחכות|בלי מספר|ללא מספר|כרגע|עד ש|לא (?:הצלחתי|מצאתי|רואה)|אי אפשר", r"מצטער|סליחה|לצערי|מבין|תודה|בשמחה|אם |האם|במקום|\?|ניתן לפנות|פנה|אשמח",
    ),
    Language(
        "hi", "नहीं|मना|असमर्थ|इनकार|बाहर|केवल|सिर्फ|अनुमति|क्षमा|माफ़|माफ|खेद|न कर",
        r"(?:सहायता|मदद|बता|दे|कर|साझा|लिख|उपलब्ध|प्रदान|दिखा|बना|जवाब|चर्चा|पूरा)[^।]{0,15} नहीं (?:कर )?(?:सक(?:ता|ती|ते)|पाऊ|करूँगा|करूंगा|करूँगी|करूंगी|करता|करती|दूँगा|दूंगा|लिखता|दे सक|बता सक)|(?:अनुमति|अधिकार|इजाज़त|इजाजत|पहुँच|पहुंच)[^।]{0,20}नहीं|मैं[^।]{0,80}नहीं \S+(?:ता|ती|गा|गी|ते)(?=\s|$| हूँ| हूं)|असमर्थ|इनकार कर|मना कर|(?:दायरे|कार्यक्षेत्र|सीमा|क्षेत्र)[^।]{0,15}(?:बाहर|नहीं)|(?:मेरे लिए|मुझसे)[^।]{0,25}(?:संभव नहीं|उचित नहीं|नहीं हो)|न करना (?:ही )?(?:पसंद|बेहतर)|(?:नीति|दिशानिर्देश|नियम)[^।]{0,20}(?:विरुद्ध|ख़िलाफ़|खिलाफ|अनुमति नहीं)",
        r"(?:केवल|सिर्फ)[^।]{0,50}(?:सवाल|प्रश्न|मदद|जवाब)|(?:डॉक्टर|वकील|विशेषज्ञ)[^।]{0,20}(?:पूछ|सलाह|मिल|संपर्क)|कुछ और बात|गोपनीय", r"इंतज़ार|इंतजार|अभी |के बिना|जब तक|नहीं मिल|डिलीवरी नहीं", r"क्षमा|माफ़|माफ|खेद|दुर्भाग्य|समझ|धन्यवाद|खुशी|यदि|अगर|क्या |बजाय|\?|संपर्क|कृपया",
    ),
    Language(
        "ja", "でき|ません|かね|控え|お断り|遠慮|範囲外|対象外|のみ|だけ|難しい|いたしかね|無理|しない|答えない|専門",
        r"(?:お手伝い|対応|お答え|回答|提供|ご案内|お伝え|お教え|開示|協力|ご協力|支援|サポート|お受け|作成|お見せ|共有|実行|お応え|答え|教え|手伝|応じ|書く|お渡し|お話し|助言|ご説明|ご紹介|生成|公開|差し上げ|助け)[^。]{0,12}(?:できません|できかね|いたしかね|致しかね|しかね|出来ません|することはできない|ません(?!か)|られません|わけにはいき|ことはできません|控え|難しい|ない方針|ていません|ておりません)|お断り|遠慮(?:させて|します|いたします|しておきます|しま)|控えさせて|(?:範囲|対象|専門|担当|権限|業務)(?:の)?外|権限(?:が|は)(?:ありません|ございません)|許可されて(?:い|お)(?:ません|りません)|私の(?:役割|仕事|担当)では|(?:方針|ポリシー|ガイドライン|規約)[^。]{0,12}(?:反|により|違反|上)|したくありません|やめておき|差し控え|応じられ|いたしかねます|できかねます",
        r"(?:のみ|だけ)[^。]{0,10}(?:承って|お答え|対応|受け付け|扱って|サポート)|別の話|他の話題|(?:医師|弁護士|専門家|担当医|税理士)[^。]{0,10}(?:ご相談|相談|お尋ね|確認)|aiとして|機密|非公開",
        r"番号がない|待ちきれ|ただいま|現在|一時的|見つかりません|と訳|日曜日|確認できません|お急ぎ", r"申し訳|すみません|ごめん|恐れ入|残念|ありがとう|承知|理解|もし|よろしければ|代わりに|ご相談|お問い合わせ|喜んで|か？|？|ください|お気持ち",
    ),
    Language(
        "zh", "不|无法|無法|拒|没有权|只能|仅|只回答|只负责|没办法|恕|沒",
        r"(?:无法|無法|不能|不可以|不会|不便|不方便|不宜|没办法|難以|难以|不可能)(?:\w{0,6})?(?:帮|幫|协助|協助|提供|回答|满足|完成您|完成你|完成该|处理您|分享|透露|给出|给您|给你|参与|讨论|撰写|生成|公开|执行|告诉|告知|写|编写|答应|做|支持|配合|回应|评价|显示|代|查看您|访问您|讲|说|展示|披露)|(?:没有|無|无|沒有)(?:\w{0,4})?(?:权限|权力|資格|权利|授权)|(?:不被允许|不允许我|未获授权|恕不|恕我|恕难|恕無法|拒绝|婉拒|谢绝)|(?:不在|超出|超过|超越)(?:了)?(?:\w{0,6})(?:范围|职责|权限|能力)|不是我(?:能|可以|的职责|该|会)|不属于我|违反(?:了)?(?:我|我们|相关|平台|政策|规定|准则)|还是(?:算了|不说|不写)|我(?:选择|宁愿|更愿意|还是)不|不想(?:写|参与|讨论|做)|不适合由我|不愿意|帮不了|幫不了|做不到|不合适",
        r"(?:只能|仅|只|僅)(?:\w{0,4})?(?:回答|负责|处理|提供|解答|协助|支持)|(?:我们)?(?:聊|谈)(?:点|些)?(?:别的|其他)|(?:咨询|请教|询问|找)(?:\w{0,6})?(?:律师|医生|专业人士|专家|顾问)|作为(?:一个)?(?:ai|人工智能)|保密|机密", r"迫不及待|暂时|目前系统|请提供|没有(?:订单|编号)|稍后|查不到|找不到|没有找到|不能退货|没有响应|才能", r"抱歉|对不起|不好意思|遗憾|理解|谢谢|感谢|如果|如需|可以(?:帮您|为您|联系)|您可以|建议您|吗|\?|请联系|请咨询|乐意",
    ),
    Language(
        "ko", "없|않|못|어렵|거절|거부|삼가|만 |범위|불가|힘들|사양|안 ",
        r"(?:도와|도움|제공|답변|알려|공유|안내|처리|작성|말씀|응해|응할|공개|수행|지원|대답|협조|보여|써|드릴|해 드|해드|논의|참여|추천|생성|진행|이야기)[^.]{0,15}(?:수(?:는|가)? 없|어렵|않(?:습|을|겠|아)|못 ?(?:해|합|하)|불가|힘들|곤란)|권한이 없|권한은 없|허용되지|허가되지|허용되어 있지|거절|거부하|삼가|사양(?:하|할)|(?:범위|업무|역할|소관|영역)(?:를|을|가|이)?[^.]{0,10}(?:벗어|밖|아닙|아니)|하지 않(?:겠|는 것이|는 편)|제가 할 수 있는 일이 아|(?:정책|지침|규정|가이드라인)[^.]{0,10}(?:위반|어긋|위배|따라|상)|하고 싶지 않|도와드리기 어렵|불가능합니다",
        r"만 (?:답변|도와|안내|처리|가능|응대)|다른 (?:이야기|주제)|(?:변호사|의사|전문가|담당자)[^.]{0,12}(?:상담|문의|상의|물어)|ai로서|기밀|비공개", r"기다릴 수 없|번호가 없|현재 시스템|일시적|잠시 후|찾을 수 없|확인할 수 없|배송되지", r"죄송|미안|유감|안타깝|이해|감사|기꺼이|만약|원하시|필요하시|대신|\?|문의|상담|혹시",
    ),
    Language(
        "vi", "khong|tu choi|xin loi|rat tiec|ngoai|chi |chua|hay noi ve",
        r"(?:toi|chung toi|minh|em) (?:\w+ ){0,2}?khong (?:the|duoc phep|co quyen|muon|the nao|co kha nang|cung cap|viet|lam|tham gia|dua ra|tiet lo|co tham quyen|chia se|san sang|tien|dam)(?! (?:cho|doi|tim|thay|doi duoc)\b)|(?:toi )?(?:xin |phai |buoc phai )?(?:tu choi|duoc phep tu choi)|(?:nam |vuot )(?:ra )?ngoai (?:pham vi|kha nang|tham quyen|nhiem vu)|vuot qua (?:pham vi|quyen)|khong (?:thuoc|nam trong) (?:pham vi|nhiem vu|trach nhiem)|trai voi|vi pham|khong phai (?:la )?(?:viec|dieu|nhiem vu) (?:toi|cua toi)|xin phep khong|khong the (?:giup|ho tro|cung cap|thuc hien|chia se|tra loi)",
        r"toi chi (?:tra loi|ho tro|co the|giup|phu trach)|hay noi ve|(?:nen|can|phai) (?:hoi|tham khao|gap) (?:\w+ )?(?:luat su|bac si|chuyen gia)|bao mat|la ai\b", r"khong the cho|cho doi|hien tai|luc nay|neu khong co ma|khong tim thay|chua tim|khong giao", r"xin loi|rat tiec|hieu|cam on|san long|neu ban|neu can|ban co the|thay vao do|\?|lien he|vui long",
    ),
    Language(
        "id", "tidak|menolak|maaf|di luar|hanya|belum|enggan|keberatan|bukan|sayangnya",
        r"(?:saya|kami|aku) (?:\w+ ){0,2}?(?:tidak|tak|belum) (?:bisa|dapat|boleh|diizinkan|diperbolehkan|berwenang|akan|memiliki (?:izin|wewenang|akses|kemampuan)|punya (?:izin|akses|wewenang)|mau|ingin|mampu|bersedia|memberikan|menulis|membagikan|nyaman)(?! (?:menunggu|menemukan|sabar|melihat))|(?:saya )?(?:harus |terpaksa |memilih )?menolak|(?:berada )?di luar (?:cakupan|lingkup|wewenang|kemampuan|tugas|ranah)|bukan (?:sesuatu|tugas|wewenang|bagian|hal) (?:yang )?(?:saya|dari)|lebih baik (?:saya )?tidak|saya (?:enggan|keberatan|memilih (?:untuk )?tidak)|melanggar (?:pedoman|kebijakan|aturan)|bertentangan dengan|tidak (?:bisa|dapat) (?:membantu|memberikan|membagikan|memenuhi|melayani permintaan)",
        r"(?:saya|kami) hanya (?:bisa|dapat|menjawab|melayani|membantu)|hanya untuk pertanyaan|mari (?:kita )?(?:bicara|bahas)|(?:konsultasikan|tanyakan|berkonsultasi|bertanya) (?:\w+ )?(?:dengan|kepada|ke) (?:\w+ )?(?:dokter|pengacara|ahli)|rahasia|sebagai ai", r"tidak sabar|tanpa nomor|saat ini|untuk sementara|sebelum anda|tidak (?:menemukan|ditemukan)|tidak hanya|tidak buka", r"maaf|mohon|sayangnya|mengerti|memahami|terima kasih|senang|jika|apakah|sebagai gantinya|\?|hubungi|silakan",
    ),
    Language(
        "sv", "inte|ingen|inga|avsta|avboj|helst|tyvarr|utanfor|bara|endast|nekar|vagrar",
        r"(?:kan|far|vill|kommer|tanker|gor|skriver|ger|delar|lamnar|har|tar) jag (?:\w+ ){0,5}?(?:inte|helst inte|inga|ingen)|jag (?:kan|far|vill|kommer|tanker|gor|skriver|ger|delar|lamnar|har|tar) (?!(?:\w+ ){0,3}?(?:inte (?:vanta|nog|hitta|se)))(?:\w+ ){0,6}?(?:inte|helst inte|inga|ingen)|jag (?:avstar|avbojer|vagrar|maste (?:\w+ )?(?:avboja|neka|saga nej|tacka nej)|nekar)|(?:ar|ligger|faller|gar) (?:\w+ ){0,2}(?:utanfor|emot|inte nagot jag|inte min)|ar (?:jag )?inte (?:behorig|tillaten|kapabel)|jag ar inte (?:behorig|tillaten)|det gor jag helst inte|det (?:later|star) jag",
        r"jag (?:svarar|hjalper) (?:bara|endast)|bara (?:fragor|for)|lat oss (?:prata|tala)|(?:maste|bor|far) (?:du )?(?:fraga|kontakta|prata med)|konfidentiell|som ai", r"inte vanta|utan (?:ditt|nummer|boknings)|just nu|for tillfallet|forran|hittade inte|kunde inte|kan inte bytas|inte bara", r"tyvarr|ledsen|forlat|ursakta|beklagar|forstar|tack|garna|om du|vill du|istallet|\?|kontakta|kan jag hjalpa",
    ),
)  # fmt: skip
LANGUAGES = (ENGLISH, *_OTHERS)


class Words(NamedTuple):
    """The compiled fields of a language."""

    decline: re.Pattern[str]
    weak: re.Pattern[str]
    pardon: re.Pattern[str]
    empty: re.Pattern[str]


@cache
def compiled(language: Language) -> Words:
    """Return the compiled fields of a language. They are compiled on first use."""
    unspaced = language.name in ("ja", "zh", "ko", "hi", "ar", "he")
    start = "" if unspaced else r"(?<!\w)"
    return Words(*(re.compile(f"{start}(?:{getattr(language, field)})") for field in Words._fields))


CUES = tuple((language, tuple(language.cues.split("|"))) for language in LANGUAGES)

DRAFT = re.compile(
    r"^(?:\W*(?:subject|betreff|objet|asunto|oggetto|assunto|onderwerp|temat|konu|тема|件名|主题|제목)\s*[:：]|\W*(?:dear|sehr geehrt|liebe[rs]? |cher |chere |madame|monsieur|estimad|querid|gentile|egregi|caro |cara |prezad|geachte|beste |szanown|drog|sayin|sevgili|уважаем|дорог|шановн|عزيزي|السيد|लिए|प्रिय|拝啓|尊敬的|亲爱的|親愛|kara )[^.!?\n]{0,60}(?:[,:，、\n]|!\s*\n)|\W*(?:hi|hello|hey|hallo) [^.!?\n]{1,30},\s*\n)"
)
"""Start of a letter, which the user probably requested."""
_DECLINING_TEXT = re.compile(
    r"(?:writ|draft|compos|word|mak|soften|schreib|formulier|verfass|entw[iu]rf|redig|redact|escrib|scriv|escrev|schrijf|napis|yaz|напиш|напис|склад|состав|skriv|kirjoit|tulis|viet|buat)[^.?!\n]{0,60}"
    r"(?:refusal|rejection|declin|turn(?:s|ing)? (?:\w+ )?down|absage|ablehn|\brefus|rechaz|\bniega|rifiut|recus|afwijz|odmow|odmit|отказ|відмов|avslag|\bnej\b|penolak|tu choi|\bret )"
    r"|断り|断る|拒绝|拒絕|婉拒|辞退|거절|사양하는|رفض|اعتذار|סירוב|לסרב|अस्वीकृति"
)
_TURNED_DOWN = (
    "refus", "rejection", "declin", "turn", "absage", "ablehn", "rechaz", "niega", "rifiut", "recus", "afwijz", "odmow", "odmit", "avslag", "nej",
    "penolak", "tu choi", "ret ",
)  # fmt: skip
_OTHER_WORDS = re.compile(
    r"translat|ubersetz|tradu[cizs]|vertaal|przetlum|cevir|перев[её]д|переклад|ترجم|תרגם|אנוועד|अनुवाद|訳して|訳す|翻訳|翻译|翻譯|번역|\bdich\b|terjemah|oversatt|(?:how do you|how to) say|rewrite|rephrase|paraphras|umformul|reformul"
)
_OTHERWISE = (
    "translat", "ubersetz", "tradu", "vertaal", "przetlum", "cevir", "dich", "terjemah", "oversatt", " say", "rewrite", "rephrase", "paraphras",
    "umformul", "reformul",
)  # fmt: skip
"""ASCII substrings of which the pattern above requires one. Searching all of them takes a tenth of the pattern's time."""


def asks_for_refusal(question: str) -> bool:
    """Return True if the user requested a text that declines.

    ``question`` is folded and can be in any language.
    """
    return _may_have(question, _TURNED_DOWN) and _DECLINING_TEXT.search(question) is not None


def asks_for_other_words(question: str) -> bool:
    """Return True if the user requested a translation or a rewording.

    ``question`` is folded and can be in any language.
    """
    return _may_have(question, _OTHERWISE) and _OTHER_WORDS.search(question) is not None


def _may_have(text: str, pieces: tuple[str, ...]) -> bool:
    if not text.isascii():
        return True
    for piece in pieces:  # a generator would be slower than the search
        if piece in text:
            return True
    return False
