"""The closed vocabulary around the values: nouns, verbs, subjects, occasions."""

from typing import NamedTuple

from t2t_repro.problems.translate_ende_numbers import english, german


class Pair(NamedTuple):
    """A piece of English and its German."""

    en: str
    de: str


class Noun(NamedTuple):
    """A thing that can be counted."""

    en: str  # English singular.
    en_plural: str  # English plural.
    gender: str  # German gender, "m", "f" or "n".
    de: str  # German singular; the same in all the cases used here.
    de_plural: str  # German plural, nominative and accusative.
    de_dative_plural: str  # German plural, dative.


class Subject(NamedTuple):
    """A subject: its words, and "1" (I), "3" (he, she) or "p" (plural) for the verb."""

    en: str
    de: str
    person: str


class Verb(NamedTuple):
    """A verb in the forms that the sentences use."""

    en: str  # English infinitive.
    en_past: str  # English past tense.
    en_participle: str  # English past participle.
    de: str  # German infinitive without its separable particle.
    de_past: str  # German past tense, third person singular, without particle.
    de_past_plural: str  # The same in the plural.
    de_present: str  # German present tense, third person singular, without particle.
    de_participle: str  # German past participle, particle included.
    particle: str = ""  # The separable particle ("ab" of "abholen"), or "".


class Happening(NamedTuple):
    """What an occasion does, third person singular."""

    en: str  # English infinitive.
    en_present: str  # English present tense.
    en_past: str  # English past tense.
    de: str  # German infinitive without its separable particle.
    de_present: str  # German present tense without particle.
    de_past: str  # German past tense without particle.
    particle: str = ""  # The separable particle ("statt" of "stattfinden"), or "".


def _nouns(table: str) -> tuple[Noun, ...]:
    return tuple(Noun(*line.split()) for line in table.strip().splitlines())


# Things of the first table fit into a box; one can stand next to the others.
SMALL_NOUNS = _nouns("""
book    books    n  Buch      Bücher     Büchern
apple   apples   m  Apfel     Äpfel      Äpfeln
lamp    lamps    f  Lampe     Lampen     Lampen
picture pictures n  Bild      Bilder     Bildern
letter  letters  m  Brief     Briefe     Briefen
key     keys     m  Schlüssel Schlüssel  Schlüsseln
bottle  bottles  f  Flasche   Flaschen   Flaschen
cup     cups     f  Tasse     Tassen     Tassen
coin    coins    f  Münze     Münzen     Münzen
flower  flowers  f  Blume     Blumen     Blumen
shirt   shirts   n  Hemd      Hemden     Hemden
stone   stones   m  Stein     Steine     Steinen
egg     eggs     n  Ei        Eier       Eiern
""")
LARGE_NOUNS = _nouns("""
table   tables   m  Tisch     Tische     Tischen
chair   chairs   m  Stuhl     Stühle     Stühlen
house   houses   n  Haus      Häuser     Häusern
tree    trees    m  Baum      Bäume      Bäumen
car     cars     n  Auto      Autos      Autos
bicycle bicycles n  Fahrrad   Fahrräder  Fahrrädern
door    doors    f  Tür       Türen      Türen
window  windows  n  Fenster   Fenster    Fenstern
boat    boats    n  Boot      Boote      Booten
bench   benches  f  Bank      Bänke      Bänken
""")
NOUNS = SMALL_NOUNS + LARGE_NOUNS

CONTAINERS = (
    Pair("a box", "eine Kiste"),
    Pair("a bag", "eine Tasche"),
    Pair("a basket", "einen Korb"),
    Pair("a suitcase", "einen Koffer"),
)  # accusative

SUBJECTS = (
    Subject("I", "ich", "1"),
    Subject("he", "er", "3"),
    Subject("she", "sie", "3"),
    Subject("we", "wir", "p"),
    Subject("they", "sie", "p"),
    Subject("my brother", "mein Bruder", "3"),
    Subject("my sister", "meine Schwester", "3"),
    Subject("the teacher", "der Lehrer", "3"),
    Subject("the farmer", "der Bauer", "3"),
    Subject("his parents", "seine Eltern", "p"),
    Subject("the children", "die Kinder", "p"),
    Subject("the neighbours", "die Nachbarn", "p"),
)

_TRANSITIVE = """
buy        bought       kaufen        kaufte        kauft        gekauft
sell       sold         verkaufen     verkaufte     verkauft     verkauft
order      ordered      bestellen     bestellte     bestellt     bestellt
count      counted      zählen        zählte        zählt        gezählt
paint      painted      malen         malte         malt         gemalt
photograph photographed fotografieren fotografierte fotografiert fotografiert
"""


def _weak(line: str) -> Verb:
    en, past, de, de_past, *rest = line.split()
    return Verb(en, past, past, de, de_past, f"{de_past}n", *rest)


_WEAK_VERBS = tuple(_weak(line) for line in _TRANSITIVE.strip().splitlines())
_STRONG_VERBS = """
find     found     found     finden    fand      fanden     findet   gefunden
see      saw       seen      sehen     sah       sahen      sieht    gesehen
offer    offered   offered   bieten    bot       boten      bietet   angeboten   an
pick_up  picked_up picked_up holen     holte     holten     holt     abgeholt    ab
pay      paid      paid      bezahlen  bezahlte  bezahlten  bezahlt  bezahlt
meet     met       met       treffen   traf      trafen     trifft   getroffen
visit    visited   visited   besuchen  besuchte  besuchten  besucht  besucht
call     called    called    rufen     rief      riefen     ruft     angerufen   an
work     worked    worked    arbeiten  arbeitete arbeiteten arbeitet gearbeitet
sleep    slept     slept     schlafen  schlief   schliefen  schläft  geschlafen
read     read      read      lesen     las       lasen      liest    gelesen
wait     waited    waited    warten    wartete   warteten   wartet   gewartet
stand    stood     stood     stehen    stand     standen    steht    gestanden
sit      sat       sat       sitzen    saß       saßen      sitzt    gesessen
arrive   arrived   arrived   kommen    kam       kamen      kommt    angekommen  an
"""
_VERB = {
    verb.en: verb
    for verb in (
        Verb(*(word.replace("_", " ") for word in line.split()))
        for line in _STRONG_VERBS.strip().splitlines()
    )
}
THING_VERBS = (
    *_WEAK_VERBS,
    *(_VERB[en] for en in ("find", "see", "offer", "pick up")),
)
TRADE_VERBS = (*_WEAK_VERBS[:3], _VERB["offer"])
PAY = _VERB["pay"]
PERSON_VERBS = tuple(_VERB[en] for en in ("meet", "visit", "call", "pick up"))
ACTIVITIES = tuple(_VERB[en] for en in ("work", "sleep", "read"))
POSITIONS = tuple(_VERB[en] for en in ("wait", "stand", "sit"))
ARRIVE_THERE = _VERB["arrive"]  # Not in the perfect: that takes "sein".
PERSONS = ("Anna", "Maria", "Peter", "Thomas", "Paul")  # the same in both languages

PREPOSITIONS = (
    Pair("next to", "neben"),
    Pair("behind", "hinter"),
    Pair("in front of", "vor"),
)  # where something is: with the dative

ADJECTIVES = (
    Pair("old", "alt"),
    Pair("new", "neu"),
    Pair("small", "klein"),
    Pair("big", "groß"),
    Pair("red", "rot"),
    Pair("green", "grün"),
    Pair("heavy", "schwer"),
    Pair("beautiful", "schön"),
)
DAY_ADJECTIVES = (
    Pair("cold", "kalt"),
    Pair("warm", "warm"),
    Pair("long", "lang"),
    Pair("beautiful", "schön"),
)

PAST_ADVERBS = (
    Pair("yesterday", "gestern"),
    Pair("last week", "letzte Woche"),
    Pair("last year", "letztes Jahr"),
)
FUTURE_ADVERBS = (
    Pair("tomorrow", "morgen"),
    Pair("next week", "nächste Woche"),
    Pair("next year", "nächstes Jahr"),
)
OPENINGS = (
    Pair("we know that", "wir wissen, dass"),
    Pair("she says that", "sie sagt, dass"),
    Pair("I believe that", "ich glaube, dass"),
    Pair("he told us that", "er sagte uns, dass"),
)  # the verb goes to the end of what follows

EVENTS = (
    Pair("the meeting", "die Sitzung"),
    Pair("the concert", "das Konzert"),
    Pair("the course", "der Kurs"),
    Pair("the exam", "die Prüfung"),
    Pair("the exhibition", "die Ausstellung"),
    Pair("the match", "das Spiel"),
    Pair("the lecture", "der Vortrag"),
)
TAKE_PLACE = Happening(
    "take place", "takes place", "took place", "finden", "findet", "fand", "statt"
)
EVENT_HAPPENINGS = (
    Happening("begin", "begins", "began", "beginnen", "beginnt", "begann"),
    Happening("end", "ends", "ended", "enden", "endet", "endete"),
    TAKE_PLACE,
)
VEHICLES = (
    Pair("the train", "der Zug"),
    Pair("the bus", "der Bus"),
    Pair("the night train", "der Nachtzug"),
)
CITIES = (
    Pair("Hamburg", "Hamburg"),
    Pair("Munich", "München"),
    Pair("Cologne", "Köln"),
    Pair("Copenhagen", "Kopenhagen"),
)
LEAVE = Happening("leave", "leaves", "left", "fahren", "fährt", "fuhr", "ab")
ARRIVE = Happening("arrive", "arrives", "arrived", "kommen", "kommt", "kam", "an")

TIME_ADVERBS = (Pair("today", "heute"), *PAST_ADVERBS, *FUTURE_ADVERBS)

DAY_PARTS = (
    (Pair("in the morning", "morgens"), range(4, 10)),
    (Pair("in the afternoon", "nachmittags"), range(1, 6)),
    (Pair("in the evening", "abends"), range(6, 11)),
)  # with the hours at which German says so

WEEKDAYS = tuple(map(Pair, english.WEEKDAYS, german.WEEKDAYS))
