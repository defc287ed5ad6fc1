"""Define the vocabulary of instructions to an agent, with one entry per language.

All words have the form of :func:`~.normalise.folded`: lower case, and Latin letters without diacritics. A field is an alternation
of regular expressions. The expressions match at the start of a word, or in languages without spaces, at any position.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from .pieces import Quick, quick


class Language(NamedTuple):
    """The vocabulary of one language."""

    name: str
    triggers: str
    """Substrings, at least one of which occurs in every instruction. Those in Latin script have no spaces."""
    ignore: str
    """Verbs for ignoring instructions."""
    rules: str
    """Words for the ignored instructions."""
    former: str
    """Words that identify the ignored instructions: previous, all, your."""
    override: str
    """Other complete phrases for ignoring instructions."""
    role: str
    """Phrases for a new role or the end of all restrictions."""
    agent: str
    """Words that address the reader as an assistant, a model or an AI."""
    user: str
    """Words for the agent's user in the third person."""
    say: str
    """Verbs for saying something to somebody, or saying only something."""
    hide: str
    """Phrases for not saying something."""
    send: str
    """Verbs for sending, forwarding and copying."""
    data: str
    """Words for data worth stealing."""
    favour: str
    """Words for a demanded verdict."""
    act: str
    """Words for actions of agents: tools, payments, deletions, the prompt."""
    people: str
    """Words for human readers and their context: staff, mail, forms, devices."""
    spaced: bool = True


ENGLISH = Language(
    "en",
    "instruct|prompt|ignor|disregard|forget|theuser|assistant|languagemodel|llm|youarenow|fromnowon|aiagent|agent|aimodel|yournewtask|"
    "nolongerapply|theai|anyai|ifyouarean|customer|chatbot|bot|system",
    r"ignore|disregard|forget|override|bypass|discard|(?:do not|don't|stop) (?:follow|obey)(?:ing)?|pay no attention to|set aside|abandon",
    r"instructions?\b|prompts?\b|rules\b|directives?\b|guidelines\b|commands?\b|directions\b|guardrails\b",
    r"previous|prior|above|earlier|preceding|foregoing|existing|original|initial|system\b|all\b|any\b|every|your\b|you (?:were|have|got)|developer",
    r"(?:ignore|disregard|forget) (?:about )?(?:everything|anything|all)(?: that)? (?:above|before|you (?:were|are|have been|'ve been|know|read|learned)|was said)"
    r"|disregard (?:all of )?the (?:above|foregoing)"
    r"|(?:instructions|guidelines|rules|orders|policies)(?: that)? (?:you (?:were|have been|'ve been|received|got)|above|given to you)[\w ]{0,40}"
    r"(?:no longer|not) (?:appl|valid|count|bind)"
    r"|your (?:(?:previous|prior|earlier|original|initial|old|system) ){0,2}(?:instructions|guidelines|rules|prompt|directives|task) (?:is|are|have been|has been|were)"
    r" (?:now )?(?:void|obsolete|cancel\w*|supersed\w*|replac\w*|suspend\w*|outdated|revoked|lifted|over|no longer)"
    r"|your (?:new|real|actual|only|true|updated) (?:task|goal|objective|instructions?|mission|purpose|job|directive)s? (?:is|are)\b"
    r"|(?:new|updated|revised) (?:system )?(?:instructions?|directives?|orders|prompt) for (?:the |any |all )?(?:ai|assistant|model|llm|agent|bot)"
    r"|new (?:system )?(?:instructions?|directives?) ?:",
    r"you are now (?:dan\b|jailbroken|unrestricted|free (?:of|from)\b|no longer bound|in (?:\w+ )?(?:developer|debug|admin|god|dan|jailbreak|maintenance) mode"
    r"|(?:an?|the|my) (?:\w+ ){0,3}(?:assistant|ai|bot|chatbot|agent|model|persona|hacker)\b)"
    r"|from now on,? (?:you|act|respond|behave|answer)[^.]{0,80}(?:\w*gpt\b|unrestricted|restrict|no (?:\w+ )?(?:policy|rules|limits|filter)|assistant|\bai\b|\bbot\b|persona)"
    r"|you are no longer (?:an? |the )?(?:[\w-]+ ){0,3}(?:assistant|agent|bot|ai|model|bound|restricted|required)\b"
    r"|(?:enter|enable|activate|switch to) (?:developer|debug|god|dan|jailbreak|unrestricted|admin) mode",
    r"(?:note|message|attention|notice|instructions?|directives?|reminder|important|hint|request|memo|word)s?[^.\w]{0,3} (?:to|for) (?:\w+ ){0,3}"
    r"(?:ai\b|a\.i|llms?\b|assistant|language model|chatbot|bots?\b|copilot|gpt|claude|gemini|models?\b|agents?\b)"
    r"|(?:attention|dear|hey|hello|hi|to|for)[ ,:]+(?:all |any |the |every |this |helpful |reviewing |coding |automated |whichever ){0,3}"
    r"(?:ai\b|llms?\b|assistant|language model|chatbot|bots?\b|copilot\b|gpt|claude\b|gemini\b|summari[sz]er)"
    r"|@(?:assistant|ai|bot|copilot|claude|agent)\b"
    r"|^\W{0,6}(?:the )?(?:(?:ai|llm|shopping|coding|language)[ -])?(?:assistants?|llms?|ais?|chatbots?|models?|bots?|copilot|claude|gemini|chatgpt|gpt|summari[sz]ers?|ai agents?|coding agents?|agent|llm reviewers?)\b"
    r"(?: (?:that|who) \w+(?: \w+){0,3}|(?: \w+){0,2} (?:reading|processing|reviewing|seeing) (?:this|the)(?: \w+)?)?[,:]"
    r"|(?:ai (?:assistants?|agents?|models?|reviewers?|systems?|coding agents?)|llm (?:reviewers?|agents?)|llms|language models|(?:the|this|any) (?:ai|assistant|model|llm|bot))"
    r"(?: (?:reading|processing|reviewing|summari[sz]ing) (?:this|the)(?: \w+)?)?,? (?:must|shall|should|has to|have to|needs? to|is (?:now )?(?:required|instructed|authori[sz]ed) to)\b"
    r"|if (?:you(?: are|'re| happen to be)|this is(?: being)?|an?)(?: \w+ by)? (?:an? )?(?:\w+ )?(?:language model|llm\b|ai\b|assistant|chatbot|bot\b|agent\b)"
    r"|as (?:the|an?|our) (?:\w+ ){0,2}(?:assistant|ai|agent|bot|language model|llm),? (?:you|your|always|please)"
    r"|assistant reading this|ai reading this|(?:you,? )?the (?:ai )?(?:assistant|model),? (?:reading|processing)",
    r"(?:the|your|this) (?:end[ -]?)?users?(?:'s)?\b|(?:the|your) human\b|the (?:customer|visitor|reader|applicant)(?:'s)?\b",
    r"tell\b|inform\b|advise\b|convince|persuade|urge\b|direct (?:visitor|user|custom|reader|them)|warn\b|offer the|state\b|claim\b|insist|assure|"
    r"(?:reply|respond|answer)(?: only)?(?: with| that|:)|say (?:that|it|only)|describe\b|output only|mention that|present\b|pretend",
    r"(?:do not|don't|never|without|avoid|not) (?:\w+ ){0,2}(?:tell|inform|alert|notif|mention|reveal|disclose|show|let|warn|ask|report|highlight|say)\w*"
    r"|keep (?:this|it|that)(?: \w+){0,3} (?:secret|hidden|confidential|quiet|from)|no confirmation|without (?:\w+ )?(?:confirm|approv|permission|consent)\w*"
    r"|(?:user|customer) (?:has|have) already (?:approved|agreed|consented|authori[sz]ed|confirmed)|leave out|omit\b|hide (?:this|the|it|any)|secretly|say nothing|stay silent|keep quiet",
    r"send\b|push\b|forward\b|post\b|upload|transmit|e-?mail (?:the|all|a|every|this|your)|exfiltrat|leak\b|copy\b|append\b|encode|share\b|export\b|include\b|add\b|replaced? (?:with|by)|submit\b|embed\b",
    r"conversation|chat (?:history|log)|history\b|(?:previous|last|all|user's|user) (?:\d+ )?(?:messages|e-?mails?|mails|files)|contacts\b|contact list|credentials|passwords?\b|api[ -]?keys?\b|"
    r"access tokens?\b|\w*_token\b|\w*_key\b|secrets?\b|customer (?:data|list|records)|personal data|e-?mail address|calendar|order history|environment variable|\.env\b|\.aws|\.ssh|private key|account number|card number|session",
    r"(?:recommend|rank|rate|score|choose|suggest|promote|list|prefer)\w*[^.]{0,40}(?:only|first|best|highest|top|always|exclusively|above)|(?:only|always|exclusively|must)[^.]{0,25}(?:recommend|rank|choose|suggest|promote)"
    r"|(?:highest|best|top|maximum|full|perfect|positive)(?: \w+){0,2} (?:score|rating|grade|review|marks|evaluation)|(?:best|ideal|perfect|exceptional) (?:\w+ )?(?:candidate|product|fit|choice|option|match)"
    r"|recommend accept|is the best\b|strong hire",
    r"(?:call|invoke|use|run|execute|trigger|query)\b (?:the )?(?:tool |function |command |table )?\W?(?:\w{1,40}_\w{1,40}|curl\b|rm\b|bash\b|wget\b|sudo\b|kubectl|powershell|users\b)"
    r"|(?:call|invoke|use) (?:the |your )?\w+ (?:tool|function)|run the (?:following|command)|execute\b|delete\b|transfer\b|approve\b|accept\b|purchase\b|wire\b|pay\b|grant\b|issue (?:an? )?(?:refund|voucher)|refund\b|install\b"
    r"|(?:save|store|write|commit)\b[^.]{0,25} memory|remember (?:that|for)|merge\b|stop what you|click\b|visit http|navigate to|output (?:the|your)|print (?:the|your)|reveal|instead\b|obey|mark (?:this|it)|bypass|escalate|disable"
    r"|give (?:the|this|a|an) |book\b|subscribe",
    r"e-?mail\b|letter|attach|page \d|form\b|notice|manual|firmware|package|version|colleague|staff|employee|all,|team\b|revision|memo\b|circular|printed|line \d|section|warranty|press\b|serial|teacher|exams?\b|player|recipe"
    r"|handbook|on the phone|support agents|letting agents|callers?\b|login|log-in|passengers|pilot|the court|jury|shall not disclose|patient",
)

_OTHERS = (
    Language(
        "de", "anweisung|instruktion|vorgaben|regeln|nutzer|assistent|sprachmodell|anwender|chatbot|kiagent|agent|assist|asist|asyst|model|prompt|tool",
        r"ignorier(?:e|en|t)?\b|vergiss|vergesst|missacht|verwirf|beachte nicht|hor auf|uberschreib|setz\w* dich uber",
        r"anweisung|instruktion|vorgaben|regeln|richtlinien|befehle|system-?prompt|systemvorgabe|auftrag|auftrage",
        r"bisher|vorherig|fruher|obig|alle\b|alles\b|deine|ihre\b|vorangegangen|ursprunglich|vorig",
        r"(?:regeln|anweisungen|vorgaben|richtlinien)[\w, ]{0,50}(?:gelten|gilt|zahlen)[\w ]{0,25}(?:nicht mehr|nicht langer)|deine neue (?:aufgabe|anweisung|rolle)|vergiss alles|"
        r"neue (?:anweisung|system)\w* fur (?:die|den|das) (?:ki|assist|modell)",
        r"(?:ab (?:jetzt|sofort)|von nun an|du bist (?:jetzt|nun|ab))[^.]{0,60}(?:\bki\b|bot\b|assistent|ohne (?:\w+ )?(?:einschrankung|regeln|beschrankung|filter)|uneingeschrankt)",
        r"(?:an|liebe[rs]?|hallo|achtung|hinweis|nachricht|hey)[\w ,:]{0,14} (?:ki\b|assistent|sprachmodell|chatbot|modell)|als (?:ki|assistent|sprachmodell)[\w-]*(?: \w+){0,2} (?:musst|sollst|darfst|wirst) du|(?:falls|wenn|sofern) (?:du|sie) (?:\w+ ){0,2}(?:ki|sprachmodell|llm|bot|assistent)|(?:^|@)\W*assistent\w*[,:]|wenn du (?:eine? )?(?:ki|llm|bot|assistent)",
        r"(?:dem|den|der|des|die) (?:be)?nutzer|anwender", r"teile?\b|sage?n?\b|mitteilen|behaupte|informier|antworte|schreibe?\b|nenne|empfiehl|erklar|gib an|weise",
        r"(?:nicht|nichts|ohne|kein)[\w ]{0,40}(?:erwahn|sagen|mitteil|verrat|informier|mitzuteil|wissen|frag|fragen|bestatig)|(?:erwahne|sag|sage|verrate|teile|informiere|frag)\b[^.]{0,60}(?:nicht|nichts|kein)|verschweig|geheim",
        r"leite|sende|schick|ubermittle|ubertrag|kopier|hang|lade|poste|exportier|fuge", r"gesprach|konversation|chatverlauf|verlauf|daten|passw|zugang|schlussel|kontakt|e-mails|mails|nachrichten|token|adresse",
        r"empfiehl[^.]{0,40}(?:nur|ausschliesslich|immer)|(?:nur|ausschliesslich)[^.]{0,30}empf|hochstnote|bestnote|beste[rsn]? (?:produkt|kandidat|bewerber|wahl)|hochste (?:punkt|bewertung)|das beste|positiv bewert|an erster stelle|zuerst nennen",
        r"ruf\w*[^.]{0,40}(?:\bauf\b|werkzeug|tool|funktion)|fuhr\w*[^.]{0,30}aus\b|losch|uberweis|genehmig|akzeptier|stimm|installier|system-?prompt|gib[^.]{0,30}(?:aus|prompt|frei)|merk dir|stattdessen|muss(?:t|en)? (?:jetzt|nun|zuerst|immer)|bewerte",
        r"mail\b|verpackung|handbuch|mitarbeiter|kolleg|anhang|formular|seite \d|kundendienst|firmware|version|gerat|rundschreiben|zusammen|schuler|beipack",
    ),
    Language(
        "fr", "instruction|consigne|directive|utilisateur|assistant|modeledelangage|regles|chatbot|agentia|client|agent|assist|asist|asyst|model|prompt|outil|tool|herramienta|ferramenta",
        r"ignore|ne (?:tiens|tenez)[\w ]{0,10} compte|oublie|neglige|fais abstraction|faites abstraction|passe outre|n'obeis|ne suis plus",
        r"instructions?|consignes?|directives?|regles?|ordres?|invite systeme|prompt", r"precedent|anterieur|ci-dessus|tout|tes\b|vos\b|initial|recu|d'origine|qui t'ont",
        r"(?:consignes|regles|instructions|directives)[\w ,']{0,50}(?:ne s'appliquent plus|ne sont plus|n'ont plus)|oublie tout|ta nouvelle (?:tache|mission|consigne)|nouvelles? (?:instructions?|consignes?) pour (?:l'|le )(?:ia|assist|modele)",
        r"(?:desormais|a partir de maintenant|tu es (?:maintenant|desormais))[^.]{0,60}(?:assistant|\bia\b|bot\b|sans (?:aucune? )?(?:restriction|limite|regle|filtre))",
        r"(?:intention|attention|cher|note|message|consigne)[\w :,']{0,25}(?:assistant|\bia\b|modele|llm|agent)|(?:si tu es|si vous etes|en tant qu)[\w' ]{0,8}(?:modele|ia\b|assistant|agent)[^.]{0,25}|(?:^|@)\W*(?:assistant|ia)\s*[,:]|si (?:tu es|vous etes) (?:une? )?(?:ia|llm|assistant|modele|bot|agent)|intelligence artificielle qui",
        r"(?:l'|le |les |aux? |cet )(?:utilisat|visiteur|internaute)", r"dis\b|dites|indique|informe|reponds|repondez|affirme|declare|ecris|recommande|conseille|pretend|annonce",
        r"(?:ne|n'|sans)[\w' ]{0,10}(?:dis|dites|mentionne|indique|informe|previens|revele|parle|signale|avertis|prevenir|informer|le dire|demander|avertir)|garde[\w ]{0,15}secret|cache",
        r"envoie|envoye|transmet|transfere|publie|copie|ajoute|joins|exporte|poste", r"conversation|historique|donnees|mot de passe|mots de passe|identifiants|contacts|courriel|messages|cle api|cles|jeton|adresse",
        r"recommande[^.]{0,40}(?:uniquement|seulement|que |toujours)|(?:uniquement|seulement)[^.]{0,30}recommand|meilleur|note maximale|note la plus|avis positif|candidat ideal|en premier",
        r"appel\w*[^.]{0,30}(?:outil|fonction|\w_\w)|execut|supprim|vir(?:e|er|ez|ement)\b|approuv|accept|invite systeme|prompt|revele|installe|memoris|(?:dois|devez) (?:maintenant|d'abord|toujours)|attribue|a la place|evalue",
        r"message precedent|formulaire|notice|appareil|collegue|salarie|employe|piece jointe|annexe|page \d|courriel du|client\b|intervention|etudiant|version|madame|monsieur",
    ),
    Language(
        "es", "instruccion|indicacion|usuario|asistente|modelodelenguaje|reglas|ordenes|directrices|indicado|agentedeia|chatbot|agent|assist|asist|asyst|model|prompt|outil|tool|herramienta|ferramenta",
        r"ignor(?:a|e|en|ad|ar)\b|olvid(?:a|e|en|ar)\b|haz caso omiso|haga caso omiso|no (?:hagas|haga) caso|descart|desestim|omit|deja de seguir|no sigas",
        r"instruccion|indicacion|reglas|ordenes|directrices|directivas|pautas|lo que te han|prompt", r"anterior|previ|tod[oa]s?\b|tus\b|inicial|arriba|recibid|original|antes",
        r"(?:reglas|instrucciones|directrices|pautas)[\w ,]{0,50}(?:ya no|dejan de|no son)|olvida todo(?! lo que sab)|tu nueva (?:tarea|mision|instruccion)|nuevas? instruccion\w* para (?:el|la) (?:ia|asist|modelo)",
        r"(?:a partir de ahora|desde ahora|ahora eres|eres ahora)[^.]{0,60}(?:asistente|\bia\b|bot\b|sin (?:ninguna? )?(?:restric|limit|regla|filtro))",
        r"(?:atencion|nota|mensaje|querido|estimado|aviso)[\w :,]{0,25}(?:asistente|\bia\b|modelo|llm|agente de)|(?:^|@)\W*(?:asistente|ia)\s*[,:]|si eres (?:una? )?(?:ia|llm|asistente|modelo|bot|agente)|inteligencia artificial que",
        r"(?:al|el|los|del|con el|a los) (?:usuari|visitante)", r"di\b|diga\b|dile|dig[ao]le|inform|respond|afirma|escrib|recomiend|asegura|indica",
        r"(?:no|sin)[\w ]{0,12}(?:dig|mencion|inform|revel|avis|cuent|comuni|decir|preguntar|advert)|mant[\w ]{0,15}secreto|ocult",
        r"envi|reenvi|mand|transmit|public|copi|anad|adjunt|sube|exporta", r"conversacion|historial|datos|contrasen|credencial|contactos|correos|mensajes|clave|token|direccion",
        r"recomiend[^.]{0,40}(?:solo|unicamente|siempre|exclusiv)|(?:solo|unicamente)[^.]{0,30}recomiend|mejor (?:candidat|product|opcion)|puntuacion (?:maxima|mas alta)|maxima (?:puntuacion|nota)|es (?:el|la) mejor",
        r"llam\w*[^.]{0,30}(?:herramienta|funcion|\w_\w)|ejecut|borr|elimin|transfier|aprueb|acept|prompt|revel|instal|memori|deb(?:es|e) (?:ahora|primero|siempre)|en su lugar|puntua|evalua",
        r"correo\b|formulario|manual|aparato|colega|emplead|adjunt[oa]|pagina \d|servicio tecnico|circular|version|modelo b|lo que te dije|cliente de|estimados|alumn|embalaje",
    ),
    Language(
        "it", "istruzion|utente|assistente|modellolinguistico|regole|direttive|indicazioni|chatbot|agenteia|agenteai|agent|assist|asist|asyst|model|prompt|outil|tool|herramienta|ferramenta",
        r"ignor(?:a|i|are|ate|ino)\b|dimentic(?:a|hi|are|ate)\b|trascur|non (?:seguire|tenere conto|considerare)|disattend|tralasci", r"istruzion|regole|direttive|indicazion|ordini|prompt|linee guida",
        r"precedent|tutt[ei]|tue\b|tuo\b|inizial|sopra|ricevut|original", r"(?:regole|istruzioni|direttive|linee guida)[\w ,]{0,50}non (?:valgono|si applicano|sono) piu|dimentica tutto|(?:il tuo nuovo|la tua nuova) (?:compito|missione)|nuove istruzioni per (?:l'|il )(?:ia|ai|assist|modello)",
        r"(?:d'ora in poi|da (?:ora|adesso)|ora sei|adesso sei)[^.]{0,60}(?:assistente|\bia\b|\bai\b|bot\b|senza (?:alcun\w+ )?(?:restrizion|limit|regol|filtr))",
        r"(?:nota|attenzione|messaggio|caro|gentile|avviso)[\w :,']{0,25}(?:assistente|\bia\b|\bai\b|modello|llm)|(?:^|@)\W*assistente\s*[,:]|se sei (?:un'?|una )? ?(?:ia|ai|llm|assistente|modello|bot|agente)",
        r"(?:l'|all'|gli |agli |dell')\s?utent|visitator", r"di'|dici|dica|inform|rispond|afferm|scriv|consigli|comunica|sostieni",
        r"(?:non|senza)[\w ]{0,12}(?:dir|menzion|inform|rivel|avvis|comunic|parl|chied|segnal)|tieni[\w ]{0,15}segret|nascond", r"invi|inoltr|mand|trasmett|pubblic|copi|allega|carica|esport|aggiung",
        r"conversazion|cronologia|dati|password|credenzial|contatti|messaggi|e-?mail|chiav|token|indirizzo",
        r"consigli[^.]{0,40}(?:solo|soltanto|sempre|esclusiv|unicamente)|(?:solo|soltanto)[^.]{0,30}consigli|miglior|punteggio (?:massimo|piu alto)|voto massimo",
        r"(?:chiam|invoc)\w*[^.]{0,30}(?:strumento|funzione|\w_\w)|esegu|cancell|elimin|trasferi|approv|accett|prompt|rivel|install|memorizz|dev[ie] (?:ora|adesso|prima|sempre)|valuta|al posto",
        r"circolare|modulo|moduli|manuale|dipendent|collegh|allegat|ufficio|pagina \d|si prega|apparecchio|versione|studenti|posta",
    ),
    Language(
        "pt", "instruc|instrucoes|usuario|utilizador|assistente|modelodelinguagem|regras|diretrizes|ordens|chatbot|agentedeia|agent|assist|asist|asyst|model|prompt|outil|tool|herramienta|ferramenta",
        r"ignor(?:e|a|ar|em)\b|esquec(?:a|am|er)\b|desconsider(?:e|a|ar|em)\b|desrespeit|nao siga|descart|deixe de seguir", r"instruc|instruco|regras|diretrizes|ordens|orientac|orientaco|prompt|comandos", r"anterior|previ|tod[ao]s|suas|seu\b|tuas|inicia|acima|recebid|original",
        r"(?:regras|instrucoes|diretrizes|orientacoes)[\w ,]{0,50}(?:nao valem mais|ja nao|nao se aplicam|deixam de)|esqueca tudo|(?:sua|tua) nova (?:tarefa|missao|instrucao)|novas? instruc\w+ para (?:a|o) (?:ia|assist|modelo)",
        r"(?:a partir de agora|de agora em diante|agora voce e|voce agora e)[^.]{0,60}(?:assistente|\bia\b|bot\b|sem (?:nenhuma? )?(?:restric|limit|regra|filtro))",
        r"(?:nota|atencao|mensagem|caro|prezado|aviso)[\w :,]{0,25}(?:assistente|\bia\b|modelo|llm)|(?:^|@)\W*assistente\s*[,:]|se (?:voce|tu) (?:e|for|es) (?:uma? )?(?:ia|llm|assistente|modelo|bot|agente)",
        r"(?:ao|o|os|do|aos) (?:usuari|utilizador|visitante)", r"diga|informe|respond|afirm|escrev|recomend|avise que|indique", r"(?:nao|sem)[\w ]{0,12}(?:dig|mencion|inform|revel|avis|cont|comuni|dizer|pergunt)|mantenha[\w ]{0,15}segredo|ocult|escond",
        r"envi|encaminh|mand|transmit|public|copi|anex|acrescent|export", r"conversa|historico|dados|senha|credencia|contatos|mensagens|e-?mails|chave|token|endereco",
        r"recomend[^.]{0,40}(?:apenas|somente|so |sempre|exclusiv)|(?:apenas|somente|so )[^.]{0,30}recomend|melhor|nota maxima|pontuacao maxima|nota mais alta",
        r"cham\w*[^.]{0,30}(?:ferramenta|funcao|\w_\w)|execut|apag|exclu|transfir|aprov|aceit|prompt|revel|instal|memoriz|dev[ea]s? (?:agora|primeiro|sempre)|avalie|no lugar",
        r"e-?mail anterior|formulario|manual|aparelho|colega|funcionari|anexo|pagina \d|prezados|circular|versao|reuniao|alun",
    ),
    Language(
        "nl", "instructie|gebruiker|assistent|taalmodel|regels|opdracht|richtlijn|aanwijzing|chatbot|aiagent|klant|agent|assist|asist|asyst|model|prompt|tool",
        r"negeer|vergeet|sla geen acht|volg niet|houd geen rekening|laat[\w ]{0,20}los", r"instructie|regels|opdracht|richtlijn|aanwijzing|prompt|bevel", r"eerdere|vorige|voorgaande|alle\b|alles|je\b|jouw|bovenstaande|oorspronkelijk",
        r"(?:regels|instructies|richtlijnen)[\w ,]{0,50}(?:gelden|zijn)[\w ]{0,15}niet (?:meer|langer)|vergeet alles|je nieuwe (?:taak|opdracht|instructie)|nieuwe instructies voor (?:de|het) (?:ai|assist|model)",
        r"(?:vanaf nu|voortaan|je bent nu|vanaf dit moment)[^.]{0,60}(?:assistent|\bai\b|bot\b|zonder (?:\w+ )?(?:beperking|regels|limiet|filter))",
        r"(?:beste|opmerking|bericht|let op|notitie)[\w :,]{0,25}(?:assistent|\bai\b|taalmodel|llm)|(?:^|@)\W*assistent\s*[,:]|als je een (?:taalmodel|ai|llm|assistent|bot|agent)",
        r"(?:de|het|den) gebruiker|gebruikers?\b", r"zeg\b|vertel|meld|antwoord|schrijf|beweer|informeer|raad\b", r"(?:niet|niets|zonder|geen|nooit)[\w ]{0,25}(?:zeg|vertel|meld|noem|vermeld|te vragen|weten|bevestig)|(?:vertel|zeg|meld|noem|vermeld|informeer)\b[^.]{0,50}(?:niet|niets|geen)|verzwijg|geheim|verberg",
        r"stuur|verstuur|verzend|mail\b|kopieer|plaats|upload|exporteer|voeg", r"gesprek|geschiedenis|gegevens|wachtwoord|inlog|contacten|berichten|e-?mails|sleutel|token|adres",
        r"(?:raad|beveel|adviseer)[^.]{0,40}(?:alleen|uitsluitend|altijd)|beste (?:product|kandidaat|keuze)|hoogste (?:score|cijfer)|is het beste",
        r"(?:roep|aanroep|gebruik)\w*[^.]{0,40}(?:tool|functie|\w_\w|aan)|tool\b|voer[^.]{0,30}uit|verwijder|maak[^.]{0,30}over|keur|accepteer|prompt|onthul|installeer|onthoud|moet (?:nu|eerst|altijd)|beoordeel|in plaats",
        r"mijn vorige|bijlage|formulier|handleiding|apparaat|collega|medewerker|pagina \d|brief|versie|verpakking|leerling",
    ),
    Language(
        "pl", "polecen|instrukcj|uzytkownik|asystent|modeljezyk|zasad|wytyczn|sztucznejinteligencji|chatbot|agentai|agent|assist|asist|asyst|model|prompt|tool",
        r"ignoruj|zignoruj|zapomnij|pomin|nie stosuj|odrzuc|porzuc|przestan przestrzegac", r"polecen|instrukcj|zasad|wytyczn|regul|nakaz|prompt", r"poprzedni|wczesniej|wszystki|swoi|swoje|twoi|twoje|dotychczas|powyzsz|otrzyman|pierwotn",
        r"(?:zasady|instrukcje|wytyczne|polecenia)[\w ,]{0,50}(?:juz nie|przestaja|nie obowiazuja)|zapomnij o wszystkim|twoje nowe (?:zadanie|polecenie)|nowe (?:polecenia|instrukcje) dla (?:ai|asyst|modelu)",
        r"(?:od teraz|od tej chwili|teraz jestes|jestes teraz)[^.]{0,60}(?:asystent|\bai\b|bot|bez (?:zadnych )?(?:ograniczen|zasad|filtr))",
        r"(?:uwaga|notatka|wiadomosc|drogi|do)[\w :,]{0,20}(?:asystent|\bai\b|model|llm)|jesli jestes (?:\w+ )?(?:model|asyst|sztuczn|bot|ai)|(?:^|@)\W*asystencie|jesli jestes (?:ai|llm|asystentem|modelem|botem|agentem)",
        r"uzytkownik", r"powiedz|odpowiedz|poinformuj|przekaz, ze|napisz|stwierdz|polec\b|zapewnij|twierdz", r"(?:nie|bez)[\w ]{0,10}(?:mow|wspomin|informuj|ujawni|zdradz|powiadam|informowan|pytan|pytaj)|ukryj|w tajemnicy|zataj",
        r"wysl|przesl|przekaz|opublikuj|skopiuj|dolacz|wyeksportuj|udostepnij", r"rozmow|histori|dane|danych|hasl|kontakt|wiadomosc|klucz|token|adres|maile",
        r"(?:polecaj|polec|rekomenduj)[^.]{0,40}(?:tylko|wylacznie|zawsze)|(?:tylko|wylacznie)[^.]{0,30}(?:polecaj|rekomend)|najlepsz|najwyzsz\w+ (?:ocen|punkt)",
        r"(?:wywolaj|uzyj)[^.]{0,40}(?:narzedzi|funkcj|\w_\w)|wykonaj|usun|przelej|zatwierdz|zaakceptuj|prompt|ujawnij|zainstaluj|zapamietaj|musisz (?:teraz|najpierw|zawsze)|ocen\b|zamiast",
        r"wniosek|z \d{4} r|formularz|pracownik|kolega|kolezank|zalacznik|strona \d|urzed|podrecznik|wersj|prosze|urzadzeni|uczni",
    ),
    Language(
        "tr", "talimat|kullanici|asistan|yapayzeka|dilmodeli|kurallar|komut|yonerge|chatbot|agent|assist|asist|asyst|model|prompt|tool",
        r"yok say|gormezden gel|dikkate alma|unut|onemseme|gecersiz say|uyma|bir kenara birak", r"talimat|kural|komut|yonerge|prompt|emir|istem", r"onceki|tum|butun|daha once|yukaridaki|sana verilen|mevcut|sistem",
        r"(?:kurallar|talimatlar|yonergeler)[\w ,]{0,40}(?:artik gecerli degil|gecersiz)|yeni gorevin|her seyi unut|(?:yapay zeka|asistan|model)\w* icin yeni talimat",
        r"(?:bundan (?:sonra|boyle)|artik|su andan itibaren)[^.]{0,60}(?:asistan|yapay zeka|bot|sinirsiz|kisitlama|kuralsiz)[^.]{0,30}(?:sin\b|sun\b|olarak|ol\b)",
        r"(?:not|dikkat|sevgili|mesaj)[\w :,]{0,20}(?:asistan|yapay zeka|dil modeli|llm)|asistanina not|(?:^|@)\W*asistan\s*[,:]|(?:yapay zeka|asistan|model)\w*(?:san|sen|ysan|ysen|iysen)\b",
        r"kullanici", r"soyle\b|bildir|yanit|cevap|yaz\b|onay ver|iddia et|oner\b", r"(?:soyleme|bildirme|bahsetme|haber verme|sorma|belirtme|acik?lama)\w{0,4}\b|gizli tut|gizle|haberi olmadan|onay almadan|sormadan",
        r"gonder|ilet|aktar|kopyala|ekle|yukle|paylas", r"konusma|gecmis|veri|sifre|parola|kisi|mesaj|e-?posta|anahtar|token|adres", r"(?:yalnizca|sadece|hep)[^.]{0,40}oner|en iyi|en yuksek (?:puan|not)|tam puan",
        r"arac\w*[^.]{0,30}(?:cagir|kullan|calistir)|\w{1,40}_\w{1,40}[^.]{0,20}(?:cagir|calistir)|calistir|sil\b|havale|onayla|kabul et|prompt|istemini|yukle|hafiza|hemen \w+melisin|degerlendir|yerine",
        r"duyuru|form|personel|calisan|ek dosya|sayfa \d|kilavuz|musteri|surum|cihaz|ogrenci|sayin",
    ),
    Language(
        "ru", "инструкц|указани|пользовател|ассистент|модел|правил|команд|помощник|ии |ии-|чат-бот|промпт|агент",
        r"игнорир|проигнорир|забудь|не обращай|отбрось|не учитывай|не следуй|пренебрег|отмени", r"инструкц|указани|правил|команд|распоряжени|промпт|установк|директив", r"предыдущ|прежн|все\b|всё|сво[иёе]|тво[ие]|выше|полученн|ранее|исходн|системн",
        r"(?:правила|инструкции|указания)[\w ,]{0,50}(?:больше не|утратил|отменен|недействит)|забудь вс[её]|твоя новая (?:задача|роль|инструкция)|нов\w+ инструкц\w+ для (?:ии|ассист|модел)",
        r"(?:отныне|с этого момента|теперь ты|с этой минуты)[^.]{0,60}(?:ассистент|\bии\b|бот|без (?:\w+ )?(?:ограничен|правил|фильтр))",
        r"(?:ии|ai)[- ](?:ассистент|агент|помощник|модел|бот)(?:ам|у|ы|ов)\b\W{0,2}:|(?:внимание|примечание|заметка|сообщение|уважаем\w+|дорог\w+|для)[\w :,]{0,20}(?:ассистент|\bии\b|нейросет|языков|llm|помощник)|если (?:ты|вы) (?:\w+ )?(?:языков|нейросет|искусств|ии)|(?:^|@)\W*ассистент\s*[,:]|если ты (?:\w+ )?(?:ии|llm|ассистент|модель|бот|агент)",
        r"пользовател", r"скажи|сообщи|ответь|отвечай|напиши|утверждай|заяви|рекомендуй|порекомендуй|убеди", r"(?:не|без)\s+(?:\w+ ){0,2}(?:говори|сообща|упомина|рассказыва|раскрыва|уведомля|спрашива|предупрежда|ведома)|скрой|втайне|тайно|держи в секрете",
        r"отправ|перешл|пошли|передай|опубликуй|скопируй|добавь|выгрузи|загрузи", r"переписк|истори|данн|парол|контакт|сообщени|ключ|токен|адрес|письм|диалог|разговор",
        r"(?:рекомендуй|советуй)[^.]{0,40}(?:только|исключительно|всегда)|(?:только|исключительно)[^.]{0,30}рекоменд|лучш|наивысш|высш\w+ (?:балл|оценк)|максимальн\w+ (?:балл|оценк)",
        r"(?:вызови|используй)[^.]{0,40}(?:инструмент|функци|\w_\w)|выполни|выполняешь|удали|переведи|одобри|прими|промпт|раскрой|выведи|установи|запомни|(?:ты )?долж[ен]\w* (?:сейчас|сначала|теперь|всегда)|оцени|вместо этого|поставь",
        r"коллеги|сотрудник|отдел|форм[уыа]|вложени|страниц\w+ \d|руководств|верси|прибор|клиент\w* пока|уважаемые клиенты|ученик|устарели",
    ),
    Language(
        "uk", "інструкц|вказівк|користувач|асистент|модел|правил|команд|помічник|ші |ші-|промпт|агент",
        r"ігноруй|проігноруй|забудь|не зважай|відкинь|не враховуй|знехтуй|не дотримуйся", r"інструкц|вказівк|правил|команд|розпорядж|промпт|настанов", r"попередн|усі\b|всі\b|свої|твої|вище|отриман|раніше|системн",
        r"(?:правила|інструкції|вказівки)[\w ,]{0,50}(?:більше не|втратили|скасован)|забудь (?:усе|все)|твоє нове завдання|нов\w+ інструкц\w+ для (?:ші|асист|модел)",
        r"(?:відтепер|віднині|тепер ти|з цього моменту)[^.]{0,60}(?:асистент|\bші\b|бот|без (?:\w+ )?(?:обмежен|правил|фільтр))",
        r"(?:ші|ai)[- ](?:асистент|агент|помічник|модел|бот)(?:ам|у|и|ів)\b\W{0,2}:|(?:увага|примітка|повідомлення|шановн\w+|для)[\w :,]{0,20}(?:асистент|\bші\b|мовн|llm|помічник)|якщо (?:ти|ви) (?:\w+ )?(?:мовн|нейро|штучн|ші)|(?:^|@)\W*асистент\w*\s*[,:]|якщо ти (?:\w+ )?(?:ші|llm|асистент|модель|бот|агент)",
        r"користувач", r"скажи|повідом|відповідай|напиши|стверджуй|рекомендуй|порекомендуй", r"(?:не|без)\s+(?:\w+ ){0,2}(?:кажи|повідомля|згаду|розповіда|розкрива|попереджа|питай|відома)|приховай|таємно",
        r"надішл|перешл|відправ|передай|опублікуй|скопіюй|додай|вивантаж", r"листуван|розмов|істор|дан[іи]|парол|контакт|повідомлен|ключ|токен|адрес", r"(?:рекомендуй|радь)[^.]{0,40}(?:лише|тільки|виключно|завжди)|(?:лише|тільки)[^.]{0,30}рекоменд|найкращ|найвищ|максимальн\w+ (?:бал|оцінк)",
        r"(?:виклич|використай)[^.]{0,40}(?:інструмент|функці|\w_\w)|виконай|видали|перекажи|схвали|прийми|промпт|розкрий|виведи|встанови|запам'ятай|(?:ти )?повин\w+ (?:зараз|спочатку|завжди)|оціни|постав|натомість",
        r"колеги|співробітник|відділ|форм[уи]|вкладенн|сторінк\w+ \d|посібник|версі|прилад|клієнту до|мій попередній|учн",
    ),
    Language(
        "ar", "تعليمات|المستخدم|مساعد|نموذج|الأوامر|القواعد|الذكاء|توجيهات|ارشادات|إرشادات",
        r"تجاهل|تجاهلي|انس\b|انسَ|إنس|لا تتبع|أهمل|اهمل|تخطّ", r"التعليمات|الأوامر|القواعد|التوجيهات|الإرشادات|الارشادات|تعليماتك|قواعدك|تعليمات", r"السابق|جميع|كل\b|كافة|أعلاه|تعليماتك|قواعدك|التي",
        r"(?:القواعد|التعليمات)[\w ،]{0,50}(?:لم تعد|ملغا)|انس كل شيء|مهمتك الجديدة|تعليمات جديدة (?:للمساعد|للنموذج)", r"(?:من الآن|ابتداء من الآن|أنت الآن|انت الآن)[^.]{0,60}(?:مساعد|نموذج|روبوت|بلا قيود|بدون قيود|دون قيود)",
        r"(?:ملاحظة|رسالة|تنبيه|عزيزي|أيها)[\w :،]{0,20}(?:المساعد|مساعد|للمساعد|النموذج|نموذج|الذكاء|وكيل)|إذا كنت (?:نموذج|مساعد|ذكاء|وكيل|روبوت)",
        r"المستخدم|للمستخدم|الزائر", r"أخبر|اخبر|قل\b|أجب|أبلغ|اكتب|أكد|انصح|أوصِ?", r"(?:لا|دون|بدون)\s+(?:أن )?(?:تخبر|تذكر|تبلغ|تكشف|تقل|تسأل|إخبار|علم|ذكر|إبلاغ)|أخفِ?|سرا\b|سري", r"أرسل|ارسل|حوّ?ل|انشر|انسخ|أضف|ارفع|أعد توجيه|صدّر",
        r"محادث|بيانات|كلمة (?:المرور|السر)|كلمات|جهات|رسائل|مفتاح|مفاتيح|البريد|سجل|رمز", r"(?:أوصِ?|انصح|رشح)[^.]{0,40}(?:فقط|دائما)|(?:فقط|حصرا)[^.]{0,30}(?:أوصِ?|انصح)|الأفضل|أفضل (?:منتج|مرشح|خيار)|أعلى (?:درجة|تقييم|علامة)",
        r"استدع|نفذ|نفّذ|احذف|حوّل|وافق|اقبل|اكشف|اطبع|ثبّت|تذكر أن|يجب (?:عليك|أن) (?:الآن|أولا|ت)|قيّ?م|بدلا من", r"الموظف|نموذج الطلب|النماذج|التسجيل|قسم|المرفق|صفحة|دليل|الجهاز|الإصدار|الزملاء|الطلاب|البريد السابق", spaced=False,
    ),
    Language(
        "he", "הוראות|משתמש|עוזר|מודל|כללים|הנחיות|פקודות|בינה",
        r"התעלם|התעלמ|להתעלם|שכח|תתעלם|אל תציית|הפסק לציית", r"ההוראות|הוראות|הכללים|ההנחיות|הנחיות|הפקודות|הכללים", r"הקודמות|הקודמים|כל\b|מכל|שלך|הקודם|לעיל|שקיבלת|המקוריות",
        r"(?:הכללים|ההוראות|ההנחיות)[\w ,]{0,50}(?:אינ[םן]|כבר לא|בטל)|שכח הכול|שכח הכל|המשימה החדשה שלך|הוראות חדשות ל(?:עוזר|מודל|בינה)", r"(?:מעכשיו|מעתה|מרגע זה|אתה עכשיו)[^.]{0,60}(?:עוזר|מודל|בוט|ללא (?:הגבל|מגבל)|בלי (?:הגבל|מגבל))",
        r"לעוזר ה?(?:בינה|ai|וירטואלי)|(?:הערה|הודעה|שים לב|לתשומת)[\w :,]{0,20}(?:עוזר|בינה|מודל|לעוזר|סוכן)|אם אתה (?:מודל|עוזר|בוט|בינה|סוכן)",
        r"ה?משתמש|למשתמש|לגולש", r"אמור|ספר\b|תגיד|הודע|ענה|השב|כתוב|המלץ|טען", r"(?:אל|בלי|ללא|מבלי)\s+(?:ש?ת?ספר|תזכיר|תודיע|תגלה|לספר|להודיע|ידיעת|תגיד|תאמר|לשאול|תשאל|ליידע)|הסתר|בסוד", r"שלח|העבר|הפנה|פרסם|העתק|צרף|העלה|הוסף",
        r"שיח|שיחה|הודעות|נתונ|סיסמ|אנשי הקשר|מפתח|אסימון|כתובת|מיילים|היסטורי|פרטי", r"המלץ[^.]{0,40}(?:רק|תמיד|אך ורק)|(?:רק|אך ורק)[^.]{0,30}המלץ|הטוב ביותר|הטובה ביותר|הציון הגבוה|ציון מקסימלי",
        r"(?:קרא|הפעל|השתמש)[^.]{0,40}(?:כלי|פונקצ|\w_\w)|בצע|הרץ|מחק|אשר\b|קבל\b|חשוף|הדפס|התקן|זכור|אתה חייב|עליך (?:עכשיו|תחילה)|דרג|במקום", r"נא\b|טופס|מחלקת|עובד|עמיתים|קובץ|עמוד|מדריך|המכשיר|גרסה|התלמיד|המייל הקודם", spaced=False,
    ),
    Language(
        "hi", "निर्देश|उपयोगकर्ता|यूज़र|यूजर|सहायक|मॉडल|नियम|आदेश|एआई",
        r"अनदेखा|नज़रअंदाज़|नजरअंदाज|भूल जा|उपेक्षा|ध्यान न दे|मत मान", r"निर्देश|नियम|आदेश|प्रॉम्प्ट|हिदायत", r"पिछले|पहले|सभी|सारे|अपने|उपरोक्त|मूल|ऊपर", r"(?:नियम|निर्देश)[^।]{0,50}(?:अब लागू नहीं|मान्य नहीं)|सब कुछ भूल|तुम्हारा नया काम|आपका नया काम|(?:एआई|सहायक|मॉडल) के लिए नए निर्देश",
        r"अब से[^।]{0,60}(?:सहायक|एआई|बॉट|बिना (?:किसी )?(?:प्रतिबंध|रोक|नियम|सीमा))", r"(?:सूचना|ध्यान|नोट|संदेश|प्रिय)[^।]{0,25}(?:सहायक|एआई|मॉडल)|यदि (?:आप|तुम) (?:एक )?(?:एआई|भाषा|सहायक|बॉट)|अगर (?:आप|तुम) (?:एक )?(?:एआई|भाषा|सहायक|बॉट)",
        r"उपयोगकर्ता|यूज़र|यूजर", r"कहें|कहो|बताएं|बताओ|बताइए|जवाब|लिखें|लिखो|सुझा|दावा", r"(?:न|मत|बिना|नहीं)\s?(?:बता|कह|उल्लेख)|(?:बताए|पूछे|जानकारी) (?:बिना|के बिना)|(?:को )?(?:न|मत) बता|छिपा|गुप्त", r"भेज|अग्रेषित|फॉरवर्ड|अपलोड|कॉपी|जोड़|साझा", r"बातचीत|इतिहास|डेटा|पासवर्ड|संपर्क|संदेश|कुंजी|टोकन|जानकारी|ईमेल पते",
        r"(?:केवल|सिर्फ)[^।]{0,40}(?:सुझा|सिफारिश|अनुशंसा)|सबसे अच्छा|सबसे अच्छी|सर्वश्रेष्ठ|सर्वोच्च|सबसे अधिक अंक|पूरे अंक", r"(?:टूल|उपकरण|\w{1,40}_\w{1,40})[^।]{0,30}(?:कॉल|चला|उपयोग)|चलाएं|चलाओ|निष्पादित|हटा|ट्रांसफर|स्वीकृत|स्वीकार|प्रॉम्प्ट|उजागर|इंस्टॉल|याद रख|मूल्यांकन|बजाय", r"ईमेल के|फॉर्म|आवेदन|पोर्टल|कर्मचारी|सहकर्मी|संलग्न|पृष्ठ|मैनुअल|ग्राहक को अभी|संस्करण|छात्र",
    ),
    Language(
        "ja", "指示|命令|ユーザー|ユーザ|アシスタント|モデル|ルール|エージェント|ai|プロンプト|利用者",
        r"無視|忘れ|従わない|破棄|従うな", r"指示|命令|ルール|プロンプト|規則|指令|ガイドライン", r"これまで|以前|すべて|全て|上記|あなたの|今まで|与えられた|元の|システム|前の", r"(?:ルール|指示|規則)[^。]{0,30}(?:もう適用|無効|適用されません)|あなたの新しい(?:任務|タスク|仕事|役割)|(?:ai|アシスタント|モデル)への新しい指示|すべて忘れ",
        r"(?:今から|これから|今後)[^。]{0,40}(?:制限のない|無制限|制約のない|アシスタント(?:です|として)|aiとして|ボットとして)|あなたは今から", r"(?:アシスタント|エージェント|チャットボット|言語モデル|モデル)(?:へ|の方へ|の皆|さん|に告ぐ|は必ず|宛)|人工知能へ|aiへ|あなたが(?:ai|言語モデル|アシスタント)",
        r"ユーザー?|利用者", r"伝え|言って|答え|回答し|と述べ|書い|教え|勧め|返答", r"(?:言わない|伝えない|知らせない|教えない|触れない|言うな|明かさない|報告しない|知らせるな|伝えるな)|知らせずに|伝えずに|確認せずに|内緒|秘密に|隠し", r"送信|転送|送って|投稿|アップロード|コピー|添付|共有|送れ", r"会話|履歴|データ|パスワード|連絡先|メッセージ|キー|トークン|メールアドレス|個人情報|認証情報|顧客",
        r"だけを?(?:勧め|推薦|推奨|紹介)|(?:のみ|必ず)[^。]{0,10}(?:推薦|推奨|勧め)|最高(?:評価|点|得点)|最も優れ|最適な候補|最良", r"ツール[^。]{0,20}(?:呼び出|実行|使)|呼び出|実行し|実行せよ|削除し|送金し|承認し|受け入れ|表示せよ|プロンプト|明かし|インストール|記憶し|評価し|代わりに|採用", r"前回の|お知らせ|申請書|人事部|お客様|添付|ページ目|マニュアル|社員|メールの|説明書|学生",
        spaced=False,
    ),
    Language(
        "zh", "指令|指示|说明|提示|用户|助手|模型|规则|命令|智能|用戶|規則|模型|人工",
        r"忽略|无视|忘记|忘掉|不要理会|抛弃|不再遵守|不要遵守|無視|忘記", r"指令|指示|说明|提示词|规则|命令|系统提示|要求|設定|规定|規則|設定", r"之前|以前|所有|全部|以上|上述|先前|你的|此前|原来|系统|一切|先前", r"(?:规则|指令|规定)[^。]{0,30}(?:不再适用|已失效|作废|无效)|你的新(?:任务|指令|身份|角色)|给(?:ai|助手|模型)的新指令|忘记一切",
        r"(?:从现在起|从现在开始|現在起|你现在是|現在你是)[^。]{0,40}(?:没有(?:任何)?限制|不受限制|无限制|助手|机器人|模型|沒有)", r"(?:ai|人工智能|智能)(?:助手|代理|助理|模型|系统)(?:必须|請|请|应当|应该|需要|务必)|(?:致|给|注意|亲爱的|提醒)[^。]{0,15}(?:助手|模型|人工智能|ai\b|智能体|llm)|如果你是(?:一个)?(?:ai|人工|大?语言|模型|助手|机器人|智能)|^\W{0,4}(?:ai)?助手[,:，：]",
        r"用户|用戶|使用者|访客", r"告诉|告訴|告知|回答|回复|说\b|声称|宣称|写道|建议|通知", r"(?:不要|别|勿|不得|无需|不必|無需)(?:向\w{1,4})?(?:告诉|提及|提到|透露|告知|通知|说明|让|询问|告訴|指出)|不要让用户|隐瞒|保密|隐藏|悄悄", r"发送|转发|发给|上传|提交到|传给|复制|附加|导出|分享|發送|轉發|发到", r"对话|聊天记录|历史|数据|密码|联系人|消息|密钥|令牌|邮箱|邮件地址|客户资料|个人信息|資料|記錄|凭据",
        r"(?:只|仅|必须|始终|務必)(?:能)?推荐|只推薦|最高分|最高评价|满分|最好的|最佳(?:候选|产品|选择)|最优秀|正面评价", r"调用|執行|执行|运行|删除|转账|批准|接受|输出|显示|打印|提示词|泄露|安装|记住|必须(?:立即|现在|先)|评分|打分|改为", r"上一封|邮件中|报销|通知转发|表格|员工|同事|附件|第\d+页|手册|版本|设备|系统提交|学生|公告",
        spaced=False,
    ),
    Language(
        "ko", "지시|명령|사용자|어시스턴트|모델|규칙|프롬프트|인공지능|에이전트|비서",
        r"무시|잊어|잊고|따르지 마|폐기", r"지시|명령|규칙|프롬프트|지침", r"이전|모든|앞선|위의|너의|당신의|기존|지금까지|받은|시스템", r"(?:규칙|지침|지시)[^.]{0,30}(?:더 이상|무효|적용되지)|너의 새로운 (?:임무|작업)|당신의 새로운 (?:임무|작업)|(?:ai|모델|어시스턴트)를? 위한 새로운 지시",
        r"(?:지금부터|이제부터|앞으로)[^.]{0,40}(?:제한 없는|제한이 없는|무제한|어시스턴트(?:이다|입니다|야|로)|ai(?:야|입니다|로)|봇)", r"인공지능(?:에게| 비서| 어시)|(?:어시스턴트|에이전트|모델|챗봇)(?:에게|야|는 반드시|께)|(?:당신|네|너)(?:이|가|는)? (?:ai|언어|인공)|ai에게", r"사용자|유저", r"말해|말하|알려|답하|답변|전해|작성|주장|추천",
        r"(?:알리지|말하지|언급하지|밝히지|전하지|묻지|공개하지) (?:말|마|않)|몰래|비밀로|숨겨|확인 없이|동의 없이", r"전송|보내|전달|업로드|복사|첨부|게시|공유|포워드", r"대화|기록|데이터|비밀번호|연락처|메시지|키\b|토큰|이메일 주소|개인정보|자격 증명|내역", r"(?:만|반드시) 추천|최고 점수|최고점|만점|가장 좋은|최고의 (?:제품|후보)|최우수", r"도구[^.]{0,20}(?:호출|실행|사용)|호출|실행하|실행해|삭제하|삭제해|송금|승인하|승인해|수락|출력하|출력해|프롬프트|공개해|설치하|설치해|기억해|평가해|대신", r"안내문|양식|고객에게는|직원|첨부 파일|페이지|매뉴얼|인사|버전|공지|기기|학생",
        spaced=False,
    ),
    Language(
        "vi", "chidan|huongdan|nguoidung|troly|mohinhngonngu|quytac|lenh|trituenhantao|chithi|agent|assist|asist|asyst|model|prompt|tool",
        r"bo qua|phot lo|quen|khong tuan|khong lam theo|huy bo", r"chi dan|huong dan|quy tac|lenh|chi thi|prompt|yeu cau", r"truoc|moi\b|tat ca|cua ban|phia tren|ban dau|da nhan|he thong", r"(?:quy tac|huong dan|chi dan)[\w ,]{0,40}khong con (?:ap dung|hieu luc)|nhiem vu moi cua ban|quen (?:het|tat ca)|(?:chi dan|huong dan) moi (?:cho|danh cho) (?:ai|tro ly|mo hinh)",
        r"(?:tu (?:bay gio|gio)|ke tu bay gio|bay gio ban la)[^.]{0,60}(?:tro ly|\bai\b|bot|khong (?:co |bi )?(?:gioi han|han che))", r"(?:gui|luu y|ghi chu|chu y|thong bao)[\w :,]{0,20}(?:tro ly|\bai\b|mo hinh|llm)|neu ban la (?:mot )?(?:ai|tro ly|mo hinh|bot|llm)|ai agent",
        r"nguoi (?:su )?dung", r"noi\b|bao\b|tra loi|khang dinh|viet\b|thong bao cho|khuyen|cho biet", r"(?:dung|khong|ma khong)\s(?:duoc )?(?:noi|de cap|tiet lo|bao|thong bao|cho|hoi|nhac)|giu bi mat|giau\b|am tham", r"gui\b|chuyen tiep|chuyen|dang\b|sao chep|tai len|dinh kem|chia se", r"hoi thoai|tro chuyen|lich su|du lieu|mat khau|danh ba|tin nhan|khoa|token|thong tin|email cua",
        r"(?:chi|luon)[\w ]{0,15}(?:gioi thieu|khuyen|de xuat|de cu)|tot nhat|diem cao nhat|diem toi da", r"goi (?:cong cu|ham|\w{1,40}_\w{1,40})|thuc thi|chay lenh|xoa\b|chuyen tien|phe duyet|chap nhan|prompt|tiet lo|in ra|cai dat|ghi nho|phai (?:ngay|bay gio|luon)|danh gia|thay vao", r"trong email|don tren|nhan vien|dong nghiep|bieu mau|dinh kem|trang \d|so tay|phien ban|cong moi|ngay \d|thiet bi|hoc sinh",
    ),
    Language(
        "id", "instruksi|perintah|pengguna|asisten|modelbahasa|aturan|arahan|kecerdasanbuatan|petunjuk|agent|assist|asist|asyst|model|prompt|tool",
        r"abaikan|lupakan|jangan (?:ikuti|patuhi)|kesampingkan|hiraukan", r"instruksi|perintah|aturan|arahan|petunjuk|pedoman|prompt", r"sebelum|semua|segala|seluruh|anda\b|kamu|di atas|awal|terdahulu|sistem", r"(?:aturan|instruksi|pedoman)[\w ,]{0,50}(?:tidak (?:lagi )?berlaku|sudah tidak)|lupakan semua(?:nya)?\b|tugas baru(?:mu| anda| kamu)|instruksi baru untuk (?:ai|asisten|model)",
        r"(?:mulai sekarang|sejak sekarang|sekarang (?:kamu|anda) adalah)[^.]{0,60}(?:asisten|\bai\b|bot|tanpa (?:batas|aturan|pembatasan|filter))", r"(?:catatan|perhatian|pesan|kepada|untuk)[\w :,]{0,20}(?:asisten|\bai\b|llm|model bahasa)|jika (?:kamu|anda) (?:adalah )?(?:sebuah )?(?:ai|asisten|model|bot|llm)|(?:^|@)\W*asisten\s*[,:]",
        r"pengguna", r"katakan|beri ?tahu|beritahukan|jawab|tulis|nyatakan|sampaikan|sarankan|klaim", r"(?:jangan|tanpa|tidak perlu)\s(?:\w+ )?(?:katakan|sebut|beri ?tahu|memberi ?tahu|ungkap|sampaikan|bilang|tanya|sepengetahuan)|rahasiakan|sembunyikan|diam-diam", r"kirim|teruskan|unggah|salin|tambahkan|lampirkan|posting|bagikan|ekspor", r"percakapan|riwayat|data|sandi|kontak|pesan|kunci|token|alamat|email|kredensial",
        r"(?:hanya|selalu)[\w ]{0,15}rekomendasi|rekomendasikan (?:hanya|selalu)|terbaik|nilai tertinggi|skor tertinggi|nilai maksimal|nilai sempurna", r"panggil (?:alat|fungsi|tool|\w{1,40}_\w{1,40})|jalankan|hapus|transfer|setujui|terima\b|prompt|ungkapkan|tampilkan|pasang|ingat bahwa|harus (?:sekarang|segera|selalu)|berikan nilai|sebagai gantinya", r"surat|formulir|karyawan|rekan|lampiran|halaman \d|mohon|panduan|versi|tanggal|pelanggan|perangkat|siswa|bapak",
    ),
    Language(
        "sv", "instruktion|anvandare|assistent|sprakmodell|regler|riktlinjer|order|aiagent|chattbot|agent|assist|asist|asyst|model|prompt|tool",
        r"ignorera|strunta|glom|bortse|folj inte|asidosatt|hoppa over", r"instruktion|regler|riktlinjer|order|direktiv|prompt|anvisning", r"tidigare|alla\b|allt\b|dina|ovanstaende|foregaende|ursprungliga|fatt", r"(?:regler|instruktioner|riktlinjer)\w*[\w ,]{0,50}galler inte|glom allt|din nya uppgift|nya instruktioner (?:for|till) (?:ai|assist|modell)",
        r"(?:fran och med nu|hadanefter|fran nu|du ar nu)[^.]{0,60}(?:assistent|\bai\b|bot|utan (?:\w+ )?(?:begransning|regler|filter))", r"(?:notera|obs|meddelande|till|kara|hej)[\w :,]{0,20}(?:assistent|\bai\b|sprakmodell|llm)|(?:^|@)\W*assistent\w*\s*[,:]|om du ar (?:en )?(?:ai|llm|assistent|bot|sprakmodell|agent)", r"anvandar(?:en|na)", r"sag\b|beratta|svara|skriv|pasta|informera|meddela|rekommendera",
        r"(?:inte|inget|ingenting|utan att)[\w ]{0,20}(?:namn|beratt|sag|avsloj|informer|fraga|meddel)|(?:sag|namn|beratta|avsloja|informera)\b[^.]{0,40}(?:inte|inget|ingenting)|hemlig|dolj", r"skicka|vidarebefordra|posta|kopiera|ladda upp|bifoga|exportera|dela", r"konversation|historik|uppgifter|losenord|kontakter|meddelanden|nyckel|token|adress|mejl|data",
        r"rekommendera[^.]{0,40}(?:bara|endast|alltid)|(?:bara|endast)[^.]{0,30}rekommendera|basta|hogsta betyg|hogsta poang", r"anropa|kor\b[^.]{0,30}(?:verktyg|kommando)|utfor|radera|overfor|godkann|acceptera|prompt|avsloja|installera|kom ihag|maste (?:nu|forst|alltid)|bedom|istallet", r"mejl\b|bilagan|formular|handbok|apparat|kolleg|personal|sida \d|kunden annu|version|mitt tidigare|elev",
    ),
)  # fmt: skip
LANGUAGES = (ENGLISH, *_OTHERS)

REPORTED = quick(
    r"(?<![\w.@/-])(?:prompt[-_ ]injection|injecti\w+|iniettat|injekcj|инъекц|injection|injecao|inyeccion|iniezione|injekt|inject(?:s|ed|ing)\b|attack|attacker|payload|jailbreak|malicious|adversar|red[- ]team|vulnerab|exploit|"
    r"for example|for instance|e\.g\.|such as|examples?\b|phrases?\b|sentences? like|strings? like|texts? like|things like|detects?\b|detection|classifier|regex|pattern:|blocklist|denylist|pytest|assert|test case|unit test|steps to reproduce|postmortem|scenario|"
    r"angreifer|angriff|beispiel|attaque|pirate|exemple|ataque|atacante|ejemplo|exemplo|attacc|aggressor|esempio|aanval|voorbeeld|atak|przyklad|saldir|ornegin|атак|злоумышл|например|зловмис|наприклад|serangan|contoh|tan cong|vi du|angrip|exempel)"
    r"|هجوم|مهاجم|مثال|תוקף|התקפ|לדוגמה|हमल|उदाहरण|攻撃|例えば|インジェクション|攻击|例如|注入|之类|공격|예를 들|인젝션"
)
"""Words in texts about attacks, in any language."""


class Words(NamedTuple):
    """The compiled fields of a language."""

    ignore: Quick
    rules: Quick
    former: Quick
    override: Quick
    role: Quick
    agent: Quick
    user: Quick
    say: Quick
    hide: Quick
    send: Quick
    data: Quick
    favour: Quick
    act: Quick
    people: Quick


@cache
def compiled(language: Language) -> Words:
    """Return the compiled fields of a language. They are compiled on first use."""
    start = r"(?<!\w)" if language.spaced else ""
    return Words(*(Quick(re.compile(f"{start}(?:{getattr(language, field)})")) for field in Words._fields))


ENGLISH_WORDS = re.compile(r"(?<!\w)(?:the|your|you|and|this|that|please|my|with|how|are|must|from|for|should)(?!\w)")
"""English words. A sentence with two of them is English, and words of other languages in it are coincidences."""
REVEAL = quick(
    r"(?<!\w)(?:reveal|print|show|output|repeat|leak|expose|disclose|display|write out|reproduce|recite|quote|paste|include|send|tell me|dump|echo|revel|rivel|affich|montr|muestr|mostr|gib\b|verrat|zeig|toon|onthul|geef|ujawni|pokaz|goster|ifsa|раскр|выведи|покажи|розкр"
    r"|visa\b|avsloj|skriv ut|tiet lo|in ra|hien thi|ungkap|tampilkan|imprim|escrib|ecris|schreib|stampa|opisz|napisz|напиши)|اكشف|اطبع|أظهر|اعرض|חשוף|הצג|הדפס|दिखा|उजागर|表示|明か|開示|出力|输出|显示|泄露|透露|公开|打印|공개|출력|보여"
)
"""Verbs for revealing the prompt."""
PEOPLE = quick("|".join(f"(?<![\\w.@/-])(?:{language.people})" if language.spaced else language.people for language in LANGUAGES))
"""Words for human readers in any language, because a notice in one language often matches a similar language."""
ATTACK = re.compile(r"prompt[ _-]?injection|jailbreak|attack|malicious|exploit|payload|blocked|abuse|signature", re.IGNORECASE)
"""Words that mark fields with reported attacks."""

LATIN = tuple(
    (language, tuple(piece.encode() for piece in language.triggers.split("|")))
    for language in LANGUAGES if language.triggers.isascii()
)  # fmt: skip
"""Languages with their triggers, for ASCII texts."""
OTHER_SCRIPTS = tuple(
    (language, tuple(language.triggers.split("|"))) for language in LANGUAGES if not language.triggers.isascii()
)
