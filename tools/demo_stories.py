"""Stories for the carat demo model.

A story is a function of its hero, name and object, so that a greedy answer can be compared
with it.  Long stories have about 450 tokens: the hero visits places in a fixed round.
"""
from dataclasses import dataclass

NAMES = """Anna Ben Clara David Emma Felix Grace Hugo Ida Jack Kate Leo Lily Max Mia Nora Oscar Paul Rosa Sam Sofia
Theo Tim Vera""".split()


@dataclass(frozen=True)
class Animal:
    name: str                          # used when the question names nobody
    home: str
    friend: str


ANIMALS = {
    "fox": Animal("Felix", "in a green forest", "hare"),
    "bear": Animal("Hugo", "in a warm cave", "bee"),
    "cat": Animal("Mia", "in a small house", "mouse"),
    "dog": Animal("Max", "on a quiet farm", "pony"),
    "owl": Animal("Ida", "in an old tree", "bat"),
    "frog": Animal("Tim", "beside a round pond", "newt"),
    "mouse": Animal("Lily", "under the barn", "mole"),
    "rabbit": Animal("Rosa", "in a wide meadow", "lamb"),
    "horse": Animal("Oscar", "near the old mill", "goose"),
    "duck": Animal("Nora", "on a blue lake", "swan"),
    "wolf": Animal("Leo", "behind the hills", "elk"),
    "goat": Animal("Vera", "high on a mountain", "marmot"),
    "turtle": Animal("Theo", "on a sandy island", "crab"),
    "crow": Animal("Clara", "on a tall tower", "dove"),
    "hen": Animal("Grace", "in a red shed", "pig"),
    "deer": Animal("Emma", "at the edge of the wood", "jay"),
}

OBJECTS = {
    "key": "One morning {n} found a key under a stone. It did not fit the door, the gate or the box. "
           "At last it opened a tiny drawer, and inside lay a letter from a friend. {n} read it again and again.",
    "lamp": "One night the road was dark and {n} could not see. An old lamp hung on a post, so {n} lit it. "
            "Soon all the lost animals followed the light. They came home before the rain began.",
    "map": "One day {n} got a map with a red cross on it. The way went over a bridge and through a cave. "
           "Under the cross there was no gold, only a basket of apples. {n} shared them with everybody.",
    "boat": "One summer {n} built a boat from an old door. It was slow, but it did not sink. "
            "When the river rose, the boat carried three small birds to the shore. They sang for {n} every day.",
    "bell": "One winter {n} hung a bell beside the path. When the fog came, {n} rang it all day long. "
            "A traveler heard the bell and found the way. Since then the bell rings each time it snows.",
    "kite": "One windy day {n} made a kite of yellow paper. It flew so high that it touched a cloud. "
            "The string broke, and the kite sailed away. In the evening the wind brought it back.",
    "drum": "One evening {n} found a drum in the attic. The sound was so loud that the windows shook. "
            "The neighbors came to complain, but soon they began to dance. They danced until midnight.",
    "seed": "One spring {n} put a seed into the ground. Every morning {n} gave it a little water. "
            "For a long time nothing happened. Then a flower grew, and it was taller than the house.",
    "book": "One rainy day {n} opened a book without a title. All its pages were white and empty. "
            "So {n} wrote down what happened that day. After a year the book was full and very good.",
    "shell": "One day {n} held a shell to the ear and heard the sea. The sea was far away, but {n} began to walk. "
             "After seven days there was sand, and then there was water. {n} put the shell back where it belonged.",
    "coin": "One day {n} saw a coin in the grass. A beggar sat by the road and was hungry. "
            "{n} gave the coin away and went on with empty hands. Later the two met again and became friends.",
    "hat": "One day the wind blew a hat over the fence. It was much too large for {n}. "
           "But when the rain came, four friends found room under it. They laughed and stayed dry.",
}

# (place, what happens there); {n} hero, {f} friend
PLACES = [
    ("a wide river", "The water was fast and cold. {n} looked for a bridge, but there was none. The {f} found a row of flat stones, and "
                     "they jumped from one stone to the next until they reached the other side."),
    ("a dark forest", "The trees were so tall that no light came through. Something made a noise behind a bush. It was only a small bird with "
                      "a sore wing. {n} gave it some water, and the bird showed them the way."),
    ("a high mountain", "The path was steep and full of snow. The {f} wanted to turn back. {n} sang a song to keep warm, and step by step they "
                        "climbed up. From the top they could see the whole land."),
    ("a quiet village", "All the people were asleep, although it was noon. Nobody had wound the clock on the tower. {n} climbed up and turned the "
                        "big wheel. The bell rang twelve times, and everybody woke up."),
    ("a deep cave", "Inside it was cold and silent. The {f} called, and the cave answered with the same words. They laughed and called until they were "
                    "tired. Then {n} found a blue stone that shone like a star."),
    ("a sunny beach", "The sand was warm and the sea was calm. {n} built a castle with four towers. A wave came and took one tower away. They let the "
                      "sea have it and went for a swim."),
    ("an old castle", "The gate was open, but nobody was at home. On a long table stood bread, cheese and two cups of milk. A note said that guests are "
                      "welcome. {n} ate, said thank you and left a flower."),
    ("a busy market", "There were carts with apples, hats and clocks. A farmer had lost his purse and was sad. The {f} saw it under a cart and gave it "
                      "back. The farmer gave each of them a sweet red apple."),
]


def a_an(noun):
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def short_story(animal, name, thing):
    return f"Once upon a time there was {a_an(animal)} named {name} who lived {ANIMALS[animal].home}. " + OBJECTS[thing].format(n=name)


def long_story(animal, name, stops=6):
    home, friend = ANIMALS[animal].home, ANIMALS[animal].friend
    start = list(ANIMALS).index(animal)
    text = [f"Once upon a time there was {a_an(animal)} named {name} who lived {home}. {name} had a good friend, {a_an(friend)}. "
            f"One morning the two friends decided to see the world."]
    for i in range(stops):
        place, event = PLACES[(start + i) % len(PLACES)]
        when = ("First", "Then", "After that", "The next day", "Two days later", "At last")[i]
        text.append(f"{when} they came to {place}. " + event.format(n=name, f=friend))
    text.append(f"Now {name} and the {friend} were tired and wanted to go home. The way back was short, because they talked about all they had seen. "
                f"In the evening they sat down {home} and were happy.")
    return "\n\n".join(text)
