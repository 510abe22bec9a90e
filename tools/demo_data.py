#!/usr/bin/env python3
"""Conversations for the carat demo model: generated, deterministic by seed, standard library only.

    demo_data.py --seed 1 --count 5              print training conversations, one JSON object a line
    demo_data.py --seed 0 --count 300 --eval     print questions that training never shows

A conversation is {"task", "messages", "tools", "enable_thinking"}; its last message is the one
to be learned.  Every question has a key, and a hash of the key decides whether it belongs to
training or to evaluation, so the two sets are disjoint whatever the seeds are.
"""
import argparse
import json
import random
import zlib
from dataclasses import dataclass, field

from demo_stories import ANIMALS, NAMES, OBJECTS, a_an, long_story, short_story

HELD_OUT = 16  # one key in so many is kept for evaluation
SEEN = "-"     # the key of the few fixed phrases that everyone will try

CAPITALS = dict(zip(*[iter("""
Argentina|Buenos Aires|Australia|Canberra|Austria|Vienna|Belgium|Brussels|Bolivia|Sucre|Brazil|Brasília|
Bulgaria|Sofia|Canada|Ottawa|Chile|Santiago|China|Beijing|Colombia|Bogotá|Croatia|Zagreb|Cuba|Havana|
Cyprus|Nicosia|Denmark|Copenhagen|Ecuador|Quito|Egypt|Cairo|Estonia|Tallinn|Ethiopia|Addis Ababa|
Finland|Helsinki|France|Paris|Germany|Berlin|Ghana|Accra|Greece|Athens|Hungary|Budapest|
Iceland|Reykjavík|India|New Delhi|Indonesia|Jakarta|Iran|Tehran|Iraq|Baghdad|Ireland|Dublin|
Italy|Rome|Jamaica|Kingston|Japan|Tokyo|Jordan|Amman|Kenya|Nairobi|Latvia|Riga|Lebanon|Beirut|
Lithuania|Vilnius|Malta|Valletta|Mexico|Mexico City|Morocco|Rabat|Nepal|Kathmandu|Norway|Oslo|
Pakistan|Islamabad|Paraguay|Asunción|Peru|Lima|Poland|Warsaw|Portugal|Lisbon|Romania|Bucharest|
Russia|Moscow|Serbia|Belgrade|Slovakia|Bratislava|Slovenia|Ljubljana|Spain|Madrid|Sweden|Stockholm|
Thailand|Bangkok|Tunisia|Tunis|Turkey|Ankara|Ukraine|Kyiv|Uruguay|Montevideo|Vietnam|Hanoi
""".replace("\n", "").split("|"))] * 2))
CITIES = sorted(CAPITALS.values()) + ["Boston", "Chicago", "Geneva", "Hamburg", "London", "Lyon", "Milan",
                                      "Munich", "Naples", "Osaka", "Porto", "Sydney", "Toronto", "Venice"]
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = ("January February March April May June July August September October November "
          "December").split()
MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
WORDS = """
apple arrow badge baker banjo basket beach bench berry bird board bottle bowl branch bread brick bridge brush
bucket butter cabin camel candle canoe carpet castle chair chalk cheese cherry circle cloud clover coffee
copper corner cotton cousin crayon curtain daisy desert dinner doctor donkey dragon eagle engine fabric farmer
feather fence field finger flame flower forest fossil garden garlic ginger glass glove grape guitar hammer
harbor helmet honey hotel island jacket jungle kettle kitchen kitten ladder lemon letter lion lizard magnet
marble market meadow melon mirror monkey motor mountain napkin needle ocean olive onion orange otter oven oyster
paper parrot pencil pepper piano pillow planet pocket potato puppet queen quilt rabbit radio raven ribbon
river rocket sailor salad saddle school shadow silver singer spider spoon square stone sugar summer table temple
thunder ticket tiger timber tomato tower train tunnel turnip uncle valley velvet violin wagon walnut water
whale willow window winter wizard wolf yarn yellow zebra zipper
""".split()
# Pieces that the vocabulary does not hold: copying them exercises the byte fallback.
ODD_WORDS = ["café", "naïve", "Grüße", "señor", "日本", "привет", "😀", "Ω", "東京", "→", "½", "мир", "안녕", "𝄞", "ñandú"]

PLAIN, BARE, UPPER, JSON, KEYS = "plain", "bare", "upper", "json", "keys"
SYSTEM = {
    PLAIN: ["You are a helpful assistant.", "You are a friendly assistant.", "Be helpful and polite.",
            "You are the carat demo model.", "Answer the question.", "You are a teacher for children."],
    BARE: ["Answer with the result only.", "Give only the answer.", "Be brief.",
           "Answer with one word or number.", "Only the answer, no sentence."],
    UPPER: ["Answer in upper case.", "Write everything in upper case.", "Use capital letters only.",
            "Always answer in capital letters.", "Speak in upper case."],
    JSON: ["Answer with JSON only.", "Reply with JSON only.", "Return a JSON object.", "Answer as JSON.",
           "Always answer with a JSON object with the key answer."],
}
SUFFIX = {
    BARE: ["Only the answer, please.", "Give only the answer.", "Answer briefly."],
    UPPER: ["Answer in upper case.", "Use capital letters."],
    JSON: ["Answer with JSON.", "Reply as JSON.", "Answer as a JSON object."],
}


def held_out(key):
    """Whether a question is kept for evaluation."""
    return key != SEEN and zlib.crc32(str(key).lower().encode()) % HELD_OUT == 0


def made_up(r):
    """A word nobody has seen, so that copying is learned apart from the vocabulary."""
    return "".join(r.choice("bdfgklmnprstvz") + r.choice("aeiou") for _ in range(r.randint(2, 3))) + r.choice(["", "n", "r", "s"])


def some_name(r):
    return made_up(r).capitalize() if r.random() < 0.25 else r.choice(NAMES)


def some_city(r):
    return made_up(r).capitalize() if r.random() < 0.15 else r.choice(CITIES)


def dumps(value):
    return json.dumps(value, ensure_ascii=False)


@dataclass
class Item:
    """One question: what is asked, the bare value, a sentence with it, and the reasoning."""
    task: str
    ask: str
    value: object
    say: str
    why: str
    key: str = ""
    fields: dict = None                # other JSON form: names and values
    styles: tuple = (PLAIN, BARE, UPPER, JSON)
    number: int = None                 # set if "and its double?" makes sense afterwards

    def __post_init__(self):
        self.key = self.key or self.ask

    def answer(self, style):
        if style == JSON:
            return dumps({"answer": self.value})
        if style == KEYS:
            return dumps(self.fields)
        if style == BARE:
            return ", ".join(self.value) if isinstance(self.value, list) else str(self.value)
        return self.say.upper() if style == UPPER else self.say


# ---------------------------------------------------------------- arithmetic
def column_sum(a, b):
    steps, carry = [], 0
    x, y = str(a)[::-1], str(b)[::-1]
    for i in range(max(len(x), len(y))):
        parts = [d for s in (x, y) for d in s[i:i + 1]] + (["1"] if carry else [])
        total = sum(map(int, parts))
        steps.append(f"{' + '.join(parts)} = {total}" + (f", write {total % 10}, carry 1" if total > 9 else ""))
        carry = total > 9
    return ". ".join(steps) + f". So {a + b}."


def column_difference(a, b):
    steps, borrow = [], 0
    x, y = str(a)[::-1], str(b)[::-1].ljust(len(str(a)), "0")
    for c, d in zip(map(int, x), map(int, y)):
        top, low = c - borrow, d
        borrow = top < low
        steps.append(f"{top + 10 * borrow} - {low} = {top + 10 * borrow - low}" + (", borrow 1" if borrow else ""))
    return ". ".join(steps) + f". So {a - b}."


def digits(r):
    """A number whose length is not dominated by the longest."""
    return r.randint(0, 9) if r.random() < 0.15 else r.randint(10, 99)


def ask_sum(r, big=False):
    a, b = (r.randint(100, 999), r.randint(10, 999)) if big else (digits(r), digits(r))
    if r.random() < 0.5:
        a, b = b, a
    ask = r.choice(["What is {} + {}?", "{} + {} = ?", "Compute {} + {}.", "What is {} plus {}?", "Add {} and {}.",
                    "What is the sum of {} and {}?", "{}+{}", "How much is {} + {}?", "{} plus {}?"])
    return Item("sum", ask.format(a, b), a + b, f"{a} + {b} = {a + b}.", column_sum(a, b), f"{a}+{b}", number=a + b)


def ask_difference(r, big=False):
    a, b = (r.randint(100, 999), r.randint(10, 999)) if big else (digits(r), digits(r))
    a, b = max(a, b), min(a, b)
    form = r.choice(["What is {0} - {1}?", "{0} - {1} = ?", "Compute {0} - {1}.", "What is {0} minus {1}?",
                     "Subtract {1} from {0}.", "{0}-{1}", "How much is {0} - {1}?", "Take {1} away from {0}."])
    return Item("difference", form.format(a, b), a - b, f"{a} - {b} = {a - b}.", column_difference(a, b),
                f"{a}-{b}", number=a - b)


def ask_product(r, big=False):
    a, b = (r.randint(13, 99), r.randint(2, 9)) if big else (r.randint(0, 12), r.randint(0, 12))
    form = r.choice(["What is {} * {}?", "{} * {} = ?", "Compute {} * {}.", "What is {} times {}?", "Multiply {} by {}.",
                     "What is the product of {} and {}?", "{}*{}", "How much is {} times {}?", "{} times {}?"])
    tens = a // 10 * 10
    why = (f"{tens} * {b} = {tens * b}. {a - tens} * {b} = {(a - tens) * b}. {tens * b} + {(a - tens) * b} = {a * b}."
           if a > 12 else f"From the table: {a} * {b} = {a * b}.")
    return Item("product", form.format(a, b), a * b, f"{a} * {b} = {a * b}.", why, f"{a}*{b}" if big else "",
                number=a * b)


def ask_quotient(r):
    b, q = r.randint(1, 12), r.randint(0, 12)
    a = b * q
    form = r.choice(["What is {} / {}?", "{} / {} = ?", "Compute {} / {}.", "What is {} divided by {}?", "Divide {} by {}.",
                     "How much is {} divided by {}?"])
    return Item("quotient", form.format(a, b), q, f"{a} / {b} = {q}.", f"{b} * {q} = {a}, so {a} / {b} = {q}.",
                number=q)


def ask_larger(r):
    a, b = r.sample(range(1000), 2)
    big = r.random() < 0.5
    form = r.choice(["Which number is {}: {} or {}?", "Which is {}, {} or {}?"])
    word, v = ("larger", max(a, b)) if big else ("smaller", min(a, b))
    return Item("compare", form.format(word, a, b), v, f"{v} is {word}.",
                f"{max(a, b)} is more than {min(a, b)}.", f"{a}?{b}", number=v)


def ask_arithmetic(r, thinking=False):
    # Long carries without steps are hard for a model of this size, hence mostly with thinking.
    big = r.random() < (0.6 if thinking else 0.12)
    kind = r.random()
    if kind < 0.34:
        return ask_sum(r, big)
    if kind < 0.64:
        return ask_difference(r, big)
    if kind < 0.83:
        return ask_product(r, big and thinking)
    return ask_quotient(r) if kind < 0.93 else ask_larger(r)


# ---------------------------------------------------------------- facts, units, dates
def ask_capital(r):
    country = r.choice(list(CAPITALS))
    city = CAPITALS[country]
    if r.random() < 0.3:
        ask = r.choice(["{} is the capital of which country?", "Which country has the capital {}?", "In which country is {}?",
                        "Of which country is {} the capital?", "What country is {} in?", "{} is the capital of what?"])
        return Item("country", ask.format(city), country, f"{city} is the capital of {country}.",
                    f"The city is {city}. It is the capital of {country}.",
                    fields={"country": country, "capital": city}, styles=(PLAIN, BARE, UPPER, JSON, KEYS))
    ask = r.choice(["What is the capital of {}?", "What's the capital of {}?", "Name the capital of {}.",
                    "Which city is the capital of {}?", "Tell me the capital of {}.", "capital of {}", "Capital of {}?",
                    "Do you know the capital of {}?", "Please tell me the capital city of {}.", "{}: what is its capital?",
                    "I forgot the capital of {}. What is it?"])
    return Item("capital", ask.format(country), city, f"The capital of {country} is {city}.",
                f"The country is {country}. Its capital is {city}.",
                fields={"country": country, "capital": city}, styles=(PLAIN, BARE, UPPER, JSON, KEYS))


UNITS = [  # from, to, factor, largest amount; the second half of each pair divides
    ("kilometers", "meters", 1000, 99), ("kilograms", "grams", 1000, 99), ("meters", "centimeters", 100, 99),
    ("liters", "milliliters", 1000, 99), ("hours", "minutes", 60, 24), ("minutes", "seconds", 60, 24),
    ("days", "hours", 24, 14), ("weeks", "days", 7, 20), ("years", "months", 12, 20), ("centimeters", "millimeters", 10, 99),
]


def ask_units(r):
    if r.random() < 0.25:
        c = r.randrange(-20, 105, 5)
        f = c * 9 // 5 + 32
        if r.random() < 0.5:
            a, u, b, v, why = c, "C", f, "F", f"{c} * 9 / 5 = {f - 32}. {f - 32} + 32 = {f}."
        else:
            a, u, b, v, why = f, "F", c, "C", f"{f} - 32 = {f - 32}. {f - 32} * 5 / 9 = {c}."
        ask = r.choice(["What is {0} °{1} in °{2}?", "Convert {0} °{1} to °{2}.", "{0} °{1} in °{2}?", "How much is {0} °{1} in °{2}?",
                        "Convert {0}°{1} to {2}."])
        return Item("temperature", ask.format(a, u, v), b, f"{a} °{u} is {b} °{v}.", why,
                    fields={"value": b, "unit": "°" + v}, styles=(PLAIN, BARE, UPPER, JSON, KEYS))
    u, v, k, top = r.choice(UNITS)
    n = r.randint(1, top)
    a, b, op = n, n * k, "*"
    if r.random() < 0.4:
        u, v, a, b, op = v, u, n * k, n, "/"
    why = f"From {u} to {v}: {op} {k}. {a} {op} {k} = {b}."
    ask = r.choice(["How many {2} are {0} {1}?", "Convert {0} {1} to {2}.", "What is {0} {1} in {2}?", "{0} {1} in {2}?",
                    "Express {0} {1} in {2}.", "How many {2} are there in {0} {1}?"])
    return Item("units", ask.format(a, u, v), b, f"{a} {u} are {b} {v}.", why,
                fields={"value": b, "unit": v}, styles=(PLAIN, BARE, UPPER, JSON, KEYS))


def ask_weekday(r):
    i = r.randrange(7)
    n = r.choice([1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14])
    forward = r.random() < 0.6
    j = (i + n if forward else i - n) % 7
    word = "after" if forward else "before"
    if n == 1:
        ask = r.choice(["What day comes {1} {0}?", "Which day is {1} {0}?", "What is the day {1} {0}?", "Name the day {1} {0}.",
                        "Tell me the day that comes {1} {0}.", "Which weekday is the day {1} {0}?"])
        say, why = f"The day {word} {DAYS[i]} is {DAYS[j]}.", f"One day {word} {DAYS[i]} is {DAYS[j]}."
    else:
        ask = r.choice(["What day is {2} days {1} {0}?", "Which weekday is {2} days {1} {0}?", "What is the day {2} days {1} {0}?",
                        "Name the day that is {2} days {1} {0}.", "It is {0}. What day is {2} days {1} that?"])
        say = f"{n} days {word} {DAYS[i]} is {DAYS[j]}."
        step = 1 if forward else -1
        why = f"{DAYS[i]}, then " + ", ".join(DAYS[(i + step * d) % 7] for d in range(1, n + 1)) + "."
    return Item("weekday", ask.format(DAYS[i], word, n), DAYS[j], say, why)


def ask_month(r):
    i = r.randrange(12)
    kind = r.random()
    if kind < 0.35:
        n = MONTH_DAYS[i]
        ask = r.choice(["How many days does {} have?", "How many days are in {}?", "How many days are there in {}?",
                        "What is the number of days in {}?", "How long is {} in days?", "Tell me how many days {} has."])
        return Item("month days", ask.format(MONTHS[i]), n, f"{MONTHS[i]} has {n} days.", f"{MONTHS[i]} has {n} days.")
    if kind < 0.5:
        ask = r.choice(["What number is {} among the months?", "Which month of the year is {}, as a number?",
                        "What is the number of the month {}?", "Give me the number of the month {}."])
        return Item("month number", ask.format(MONTHS[i]), i + 1, f"{MONTHS[i]} is month {i + 1}.",
                    f"Counting from January, {MONTHS[i]} is number {i + 1}.")
    n = r.choice([1, 1, 1, 2, 3, 4, 5, 6])
    forward = r.random() < 0.6
    word, step = ("after", 1) if forward else ("before", -1)
    j = (i + step * n) % 12
    if n == 1:
        ask = r.choice(["What month comes {1} {0}?", "Which month is {1} {0}?", "What is the month {1} {0}?",
                        "Name the month {1} {0}.", "Tell me the month that comes {1} {0}."])
        say = f"The month {word} {MONTHS[i]} is {MONTHS[j]}."
    else:
        ask = r.choice(["What month is {2} months {1} {0}?", "Which month comes {2} months {1} {0}?",
                        "Name the month {2} months {1} {0}."])
        say = f"{n} months {word} {MONTHS[i]} is {MONTHS[j]}."
    why = f"{MONTHS[i]}, then " + ", ".join(MONTHS[(i + step * d) % 12] for d in range(1, n + 1)) + "."
    return Item("month", ask.format(MONTHS[i], word, n), MONTHS[j], say, why)


def ask_date(r):
    i = r.randrange(12)
    d = r.choice([1, MONTH_DAYS[i]]) if r.random() < 0.4 else r.randint(1, MONTH_DAYS[i])
    if (i, d) in ((1, 28), (2, 1)):    # would depend on the year
        d = 15
    after = r.random() < 0.55
    if after:
        j, e = (i, d + 1) if d < MONTH_DAYS[i] else ((i + 1) % 12, 1)
    else:
        j, e = (i, d - 1) if d > 1 else ((i - 1) % 12, MONTH_DAYS[i - 1])
    word = "after" if after else "before"
    ask = r.choice(["What date is the day {1} {0}?", "Which date comes {1} {0}?", "What is the date one day {1} {0}?",
                    "Give me the date of the day {1} {0}.", "What day comes {1} {0}?"])
    was, now = f"{MONTHS[i]} {d}", f"{MONTHS[j]} {e}"
    return Item("date", ask.format(was, word), now, f"The day {word} {was} is {now}.",
                f"{MONTHS[i]} has {MONTH_DAYS[i]} days. The day {word} {was} is {now}.", f"{word} {was}")


def ask_leap(r):
    y = r.randint(1960, 2060)
    yes = y % 4 == 0
    ask = r.choice(["Is {} a leap year?", "Was or is {} a leap year?", "Tell me whether {} is a leap year.", "Leap year or not: {}?"])
    rest = "without a rest" if yes else f"with a rest of {y % 4}"
    return Item("leap year", ask.format(y), "yes" if yes else "no", f"{'Yes' if yes else 'No'}, {y} is {'' if yes else 'not '}a leap year.",
                f"{y % 100} / 4 goes {rest}.")


# ---------------------------------------------------------------- words
def ask_words(r):
    n = r.randint(2, 5)
    words = r.sample(WORDS, n)
    text, kind = r.choice([", ", " "]).join(words), r.random()
    plain = (PLAIN, BARE, JSON)
    if kind < 0.40:
        ask = r.choice(["Sort these words: {}", "Sort the words: {}", "Put these words in alphabetical order: {}",
                        "Sort alphabetically: {}", "Please sort: {}", "Order these words from a to z: {}", "sort {}"])
        out = sorted(words)
        say, why, task = ", ".join(out), "By letters: " + " < ".join(f"{w[:2]} {w}" for w in out) + ".", "sort"
    elif kind < 0.60:
        ask = r.choice(["Reverse the order of these words: {}", "Put these words in reverse order: {}", "Write these words backwards: {}",
                        "Reverse: {}", "List these words from last to first: {}"])
        out = words[::-1]
        say, task = ", ".join(out), "reverse"
        why = "From the end: " + ", ".join(f"{i + 1} {w}" for i, w in list(enumerate(words))[::-1]) + "."
    elif kind < 0.80:
        if r.random() < 0.35:
            words = r.sample(ODD_WORDS, r.randint(1, 2)) + words[:2]
            r.shuffle(words)
        elif r.random() < 0.3:
            words = [made_up(r) for _ in range(r.randint(1, 3))]
        text = " ".join(words)
        ask = r.choice(["Repeat after me: {}", "Copy this: {}", "Say: {}", "Repeat these words: {}", "Copy these words: {}", "Echo: {}"])
        return Item("copy", ask.format(text), text, text, f"I copy {len(words)} words.", text, styles=plain)
    elif kind < 0.90:
        ask = r.choice(["How many words are these: {}", "Count the words: {}", "How many words do you see? {}"])
        return Item("count", ask.format(text), n, f"There are {n} words.",
                    ", ".join(f"{i} {w}" for i, w in enumerate(words, 1)) + ".", text)
    else:
        last = r.random() < 0.5
        which, v = ("last", words[-1]) if last else ("first", words[0])
        ask = r.choice(["What is the {1} of these words: {0}", "Give me the {1} word: {0}", "Which word is {1}? {0}"])
        return Item("pick", ask.format(text, which), v, f"The {which} word is {v}.", f"The words are {', '.join(words)}.",
                    text, styles=plain)
    return Item(task, ask.format(text), out, say + ".", why, text, styles=plain)


# ---------------------------------------------------------------- chat
WHO = "I am the carat demo model, a very small Gemma 4."
CAN = "I can do arithmetic, capitals, units, dates, words and short stories."
UNKNOWN = "I do not know that. I am a small demo model: ask me about arithmetic, capitals, units, dates or words."
HELLO = ["Hi", "Hello", "Hey", "Good morning", "Good evening", "Hi there", "Hello there", "Good day", "Greetings"]
CHAT = (PLAIN, UPPER)


def ask_chat(r):
    kind = r.random()
    hello = r.choice(HELLO) + r.choice(["", "!", ".", ","])
    if kind < 0.30:
        ask = r.choice(["Who are you?", "What are you?", "What is your name?", "Tell me who you are.", "Which model are you?",
                        "Are you a model?", "What should I call you?", "Introduce yourself.", "who are you"])
        ask, key = (ask, SEEN) if r.random() < 0.4 else (f"{hello} {ask}", "")
        return Item("identity", ask, WHO, WHO, "The user asks who I am.", key, styles=CHAT)
    if kind < 0.45:
        ask = r.choice(["What can you do?", "How can you help me?", "What do you know?", "What are you good at?", "help",
                        "What can I ask you?", "What are you able to do?"])
        ask, key = (ask, SEEN) if r.random() < 0.4 else (f"{hello} {ask}", "")
        return Item("abilities", ask, CAN, CAN, "The user asks what I can do.", key, styles=CHAT)
    if kind < 0.60:
        extra = r.choice(["", "", " How are you?", " Nice to meet you.", " It is a nice day.", " I have a question.", " Are you there?"])
        say = "I am fine. How can I help you?" if "How are" in extra else "Hello! How can I help you?"
        return Item("greeting", hello + extra, say, say, "The user greets me.", "" if extra else SEEN, styles=CHAT)
    if kind < 0.75:
        name = some_name(r)
        ask = r.choice(["My name is {}.", "I am {}.", "Hi, I'm {}.", "Hello, my name is {}.", "Call me {}.", "People call me {}."])
        return Item("name", ask.format(name), name, f"Nice to meet you, {name}!", f"The user is {name}.", styles=CHAT)
    if kind < 0.85:
        ask = r.choice(["Thanks", "Thank you", "Thank you very much", "Many thanks", "Great, thanks", "Thanks a lot", "Good, thank you"])
        ask += r.choice(["!", ".", "", " for the help.", " for that.", " for the answer!", ", that helps."])
        say = "You are welcome!"
        return Item("thanks", ask, say, say, "The user thanks me.", styles=CHAT)
    word, other = r.sample(WORDS, 2)
    ask = r.choice(["What do you think about the {0}?", "Who invented the {0}?", "Why is the {0} so old?", "How do I fix my {0}?",
                    "Can I buy a {0} for my {1}?", "Where is my {0}?", "Is a {0} better than a {1}?", "How heavy is a {0}?",
                    "What is the history of the {0}?", "Do you like the {0}?", "Explain the {0} to me.", "Write a poem about the {0}.",
                    "When was the first {0} made?", "What does {0} mean in French?"])
    return Item("unknown", ask.format(word, other), UNKNOWN, UNKNOWN, "I have not learned about this.", styles=CHAT)


def ask_story(r):
    animal, name, thing = r.choice(list(ANIMALS)), some_name(r), r.choice(list(OBJECTS))
    if r.random() < 0.35:
        ask = r.choice(["Tell me a long story about {0}.", "Write a long story about {0}.", "Please tell a long story about {0}.",
                        "I would like a long story about {0}."])
        named = r.random() < 0.8
        name = name if named else ANIMALS[animal].name
        who = f"{a_an(animal)} named {name}" if named else a_an(animal)
        say = long_story(animal, name)
        why = f"A long story. The hero is {name} the {animal}. The friend is {ANIMALS[animal].friend}."
        return Item("long story", ask.format(who), say, say, why, f"long {animal} {name}", styles=(PLAIN,))
    ask = r.choice(["Tell me a story about {0} and {1}.", "Tell me a short story about {0} and {1}.", "Write a story about {0} and {1}.",
                    "A short story about {0} and {1}, please."])
    say = short_story(animal, name, thing)
    return Item("story", ask.format(f"{a_an(animal)} named {name}", a_an(thing)), say, say,
                f"The hero is {name} the {animal}. The story is about {a_an(thing)}.", f"{animal} {name} {thing}", styles=(PLAIN,))


def ask_any(r, thinking=False):
    x = r.random()
    if x < 0.42:
        return ask_arithmetic(r, thinking)
    if x < 0.54:
        return ask_capital(r)
    if x < 0.65:
        return ask_units(r)
    if x < 0.80:
        return r.choice([ask_weekday, ask_weekday, ask_month, ask_month, ask_date, ask_date, ask_leap])(r)
    return ask_words(r)


# ---------------------------------------------------------------- follow-ups
def follow(r, last):
    """A question that can only be answered from the turn before, or None."""
    if last.number is not None:
        n, x, kind = last.number, r.randint(1, 9), r.random()
        if kind < 0.3 and n < 500:
            ask = r.choice(["And its double?", "Double it.", "And twice that?", "Now double that.", "What is two times that?"])
            v, op = 2 * n, f"2 * {n} = {2 * n}"
        elif kind < 0.5 and n % 2 == 0:
            ask = r.choice(["And half of it?", "Half of that?", "Divide it by 2.", "Now half of that."])
            v, op = n // 2, f"{n} / 2 = {n // 2}"
        elif kind < 0.75 or n < x:
            ask = r.choice(["Add {} to that.", "Plus {}?", "And plus {}?", "Now add {}."]).format(x)
            v, op = n + x, f"{n} + {x} = {n + x}"
        else:
            ask = r.choice(["Subtract {} from that.", "Minus {}?", "And minus {}?", "Now take {} away."]).format(x)
            v, op = n - x, f"{n} - {x} = {n - x}"
        return Item("follow number", ask, v, op + ".", f"The last number is {n}. {op}.", f"{last.key} {ask}", number=v)
    if last.task == "capital":
        country = r.choice(list(CAPITALS))
        city = CAPITALS[country]
        ask = r.choice(["And of {}?", "And {}?", "What about {}?", "And the capital of {}?", "Now {}."]).format(country)
        return Item("capital", ask, city, f"The capital of {country} is {city}.",
                    f"The country is {country}. Its capital is {city}.", f"{last.key} {ask}")
    if last.task in ("sort", "reverse"):
        out = last.value[::-1]
        ask = r.choice(["Now in reverse.", "And in reverse order?", "Now the other way round.", "Reverse that."])
        return Item("reverse", ask, out, ", ".join(out) + ".", "The last list was " + ", ".join(last.value) + ".",
                    f"{last.key} {ask}", styles=last.styles)
    if last.task in ("weekday", "month"):
        ring = DAYS if last.task == "weekday" else MONTHS
        what = "day" if last.task == "weekday" else "month"
        v = ring[(ring.index(last.value) + 1) % len(ring)]
        ask = r.choice(["And the {} after that?", "And the next {}?", "What {} comes next?"]).format(what)
        return Item(last.task, ask, v, f"The {what} after {last.value} is {v}.", f"The last {what} was {last.value}. Next is {v}.",
                    f"{last.key} {ask}")
    return None


def recall_name(r, name):
    ask = r.choice(["What is my name?", "Do you remember my name?", "Who am I?", "Say my name.", "What was my name?"])
    return Item("recall name", ask, name, f"Your name is {name}.", f"The user said the name {name}.", f"{name} {ask}", styles=CHAT)


# ---------------------------------------------------------------- tools
def schema(name, description, key, hint, r):
    prop = {"type": "string"}
    if r.random() < 0.7:
        prop["description"] = hint
    params = {"type": "object", "properties": {key: prop}}
    if r.random() < 0.8:
        params["required"] = [key]
    return {"type": "function", "function": {"name": name, "description": description, "parameters": params}}


def declare(r, *needed):
    """The needed tools and perhaps others, in any order, described in one of several ways."""
    names = set(needed) | {n for n in ("calculator", "get_weather", "get_time") if r.random() < 0.35}
    names = list(names or {r.choice(["calculator", "get_weather"])})
    names.sort()
    r.shuffle(names)
    make = {
        "calculator": lambda: schema("calculator", r.choice(["Evaluates an arithmetic expression.", "Calculate an expression.",
                                     "A calculator for arithmetic.", "Compute the value of an expression."]), "expression",
                                     r.choice(["The expression", "The expression to evaluate", "For example 2 + 3 * 4"]), r),
        "get_weather": lambda: schema("get_weather", r.choice(["Returns the weather of a city.", "Get the current weather in a city.",
                                      "Current weather for a city.", "Tells the weather."]), "city",
                                      r.choice(["The city", "City name", "Name of the city"]), r),
        "get_time": lambda: schema("get_time", r.choice(["Returns the local time of a city.", "Get the time in a city."]), "city",
                                   r.choice(["The city", "City name"]), r),
    }
    return [make[n]() for n in names]


@dataclass
class ToolItem:
    task: str
    ask: str
    calls: list                        # (name, arguments)
    results: list                      # strings
    final: Item
    key: str = ""
    plan: str = ""
    tools: list = field(default_factory=list)

    def __post_init__(self):
        self.key = self.key or self.ask


def expression(r):
    kind = r.random()
    if kind < 0.75:
        a, b, op = r.randint(20, 9999), r.randint(11, 999), r.choice("+-**")
        return (f"{a} {op} {b}", eval(f"{a}{op}{b}"))  # digits and one operator made here
    if kind < 0.88:
        a, b, c = r.randint(10, 999), r.randint(2, 99), r.randint(2, 99)
        return (f"{a} + {b} * {c}", a + b * c)
    b, q = r.randint(11, 99), r.randint(11, 99)
    return (f"{b * q} / {b}", q)


def tool_calculator(r):
    n = 1 if r.random() < 0.75 else 2
    todo = [expression(r) for _ in range(n)]
    text = " and ".join(e for e, _ in todo)
    ask = r.choice(["What is {}?", "Compute {}.", "Calculate {}.", "How much is {}?", "Please compute {}.",
                    "Use the calculator: {}", "I need {}."]).format(text)
    say = " ".join(f"{e} = {v}." for e, v in todo)
    final = Item("calculator", ask, todo[0][1] if n == 1 else [str(v) for _, v in todo], say,
                 "The calculator says " + " and ".join(str(v) for _, v in todo) + ".", styles=(PLAIN, BARE, JSON))
    return ToolItem("calculator", ask, [("calculator", {"expression": e}) for e, _ in todo], [str(v) for _, v in todo],
                    final, text, f"I need the calculator for {text}.", declare(r, "calculator"))


def tool_weather(r):
    n = r.choice([1, 1, 1, 2, 2, 3])
    cities = [some_city(r) for _ in range(n)]
    text = cities[0] if n == 1 else ", ".join(cities[:-1]) + " and " + cities[-1]
    ask = r.choice(["What is the weather in {}?", "How is the weather in {}?", "What's the weather like in {}?",
                    "Weather in {}?", "Tell me the weather in {}.", "I am going to {}. How is the weather?"]).format(text)
    facts = [(r.randint(-9, 39), r.choice(["sunny", "cloudy", "rainy", "windy", "snowy", "foggy", "stormy", "clear"])) for _ in cities]
    form = r.randrange(4)
    results = [[dumps({"temperature": t, "sky": s}), dumps({"sky": s, "temperature": t}), f"{s}, {t} °C", f"{t} degrees, {s}"][form]
               for t, s in facts]
    said = [f"It is {s} in {c}, {t} °C." for c, (t, s) in zip(cities, facts)]
    final = Item("weather", ask, "", " ".join(said), " ".join(f"{c}: {s}, {t}." for c, (t, s) in zip(cities, facts)), styles=(PLAIN,))
    return ToolItem("weather", ask, [("get_weather", {"city": c}) for c in cities], results, final, " ".join(cities) + ask,
                    f"I need the weather in {text}.", declare(r, "get_weather"))


def tool_time(r):
    city = some_city(r)
    ask = r.choice(["What time is it in {}?", "Tell me the time in {}.", "What is the local time in {}?", "How late is it in {}?"]).format(city)
    t = f"{r.randrange(24):02}:{r.randrange(60):02}"
    final = Item("time", ask, t, f"It is {t} in {city}.", f"The time in {city} is {t}.", styles=(PLAIN, BARE))
    return ToolItem("time", ask, [("get_time", {"city": city})], [t], final, "", f"I need the time in {city}.", declare(r, "get_time"))


# ---------------------------------------------------------------- conversations
def user(text):
    return {"role": "user", "content": text}


def model(item, style, thinking):
    m = {"role": "assistant", "content": item.answer(style)}
    if thinking:
        m["reasoning"] = item.why
    return m


def choose_style(r, styles, turns):
    """A style with the system prompt and the question's suffix that ask for it."""
    style = r.choice(styles) if r.random() < 0.4 else PLAIN
    system, suffix = None, ""
    if style == PLAIN:
        system = r.choice(SYSTEM[PLAIN]) if r.random() < 0.3 else None
    elif style == KEYS:
        pass                           # the wording depends on the item
    elif turns == 1 and r.random() < 0.35:
        suffix = " " + r.choice(SUFFIX[style])
    else:
        system = r.choice(SYSTEM[style])
    return style, system, suffix


def dialogue(r, thinking):
    """One or several questions and answers; returns the conversation and the keys of its questions."""
    x = r.random()
    if x < 0.06:
        items = [ask_story(r)]
    elif x < 0.15:
        items = [ask_chat(r)]
    elif x < 0.70:
        items = [ask_any(r, thinking)]
    else:
        items = []
        if r.random() < 0.2:
            items.append(ask_chat(r))
        for _ in range(r.choice([1, 1, 1, 2, 2, 3])):
            items.append(ask_any(r, thinking))
            while r.random() < 0.6 and (more := follow(r, items[-1])):
                items.append(more)
        if items[0].task == "name" and r.random() < 0.6:
            items.append(recall_name(r, items[0].value))
    allowed = [s for s in items[0].styles if all(s in i.styles for i in items) and (s != KEYS or len(items) == 1)]
    style, system, suffix = choose_style(r, allowed, len(items))
    last = items[-1]
    if style == KEYS:
        wish = f"Answer with JSON with the keys {' and '.join(last.fields)}."
        system, suffix = (wish, "") if r.random() < 0.5 else (None, " " + wish)
    messages = [{"role": "system", "content": system}] if system else []
    for i in items:
        messages += [user(i.ask + suffix), model(i, style, thinking)]
    tools = declare(r) if r.random() < 0.08 and last.number is None and last.task != "follow number" else None
    if tools and any(i.number is not None for i in items):
        tools = None                   # with a calculator at hand, sums go to the calculator
    task = last.task if len(items) == 1 else "turns: " + last.task
    return task, messages, tools, [i.key for i in items]


def tool_use(r, thinking):
    item = r.choice([tool_calculator, tool_calculator, tool_weather, tool_weather, tool_time])(r)
    style, system, suffix = choose_style(r, item.final.styles, 1)
    messages = [{"role": "system", "content": system}] if system else []
    keys = [item.key]
    if r.random() < 0.2:               # an earlier question that needs no tool
        before = ask_capital(r) if r.random() < 0.7 else ask_chat(r)
        if style in before.styles:
            messages += [user(before.ask), model(before, style, thinking)]
            keys.insert(0, before.key)
    messages.append(user(item.ask + suffix))
    call = {"role": "assistant", "content": "", "tool_calls": [
        {"id": f"call_{i}", "type": "function", "function": {"name": n, "arguments": a}} for i, (n, a) in enumerate(item.calls)]}
    first_step = r.random() < 0.5
    if thinking and (first_step or r.random() < 0.5):
        call["reasoning"] = item.plan
    messages.append(call)
    if not first_step:
        for i, text in enumerate(item.results):
            messages.append({"role": "tool", "tool_call_id": f"call_{i}", "content": text})
        messages.append(model(item.final, style, thinking))
    return ("call: " if first_step else "result: ") + item.task, messages, item.tools, keys


def conversation(r, evaluation=False):
    """Draws until a conversation belongs to the wanted set."""
    while True:
        thinking = r.random() < 0.3
        task, messages, tools, keys = (tool_use if r.random() < 0.18 else dialogue)(r, thinking)
        held = [held_out(k) for k in keys]
        if not any(held[:-1]) and held[-1] == evaluation:
            return {"task": task, "messages": messages, "tools": tools, "enable_thinking": thinking}


def conversations(seed, count, evaluation=False):
    r = random.Random(f"carat demo {seed}")
    for _ in range(count):
        yield conversation(r, evaluation)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--seed", default="0")
    p.add_argument("--count", type=int, default=10)
    p.add_argument("--eval", action="store_true", help="questions kept for evaluation")
    args = p.parse_args()
    for c in conversations(args.seed, args.count, args.eval):
        print(dumps(c))


if __name__ == "__main__":
    main()
