"""The word lists of the syntax items: words and what goes with what, no grammar.

Left out on purpose: verbs whose past equals the present (put) or has two common forms (dreamed, dreamt),
nouns with two common plurals (scarf) or none (rice), and words that British and American English spell
differently (travelled, colour), since an item must have one right answer.
"""

from __future__ import annotations

__all__ = [
    "ADJECTIVES",
    "ANIMAL_EVENTS",
    "AN_EXCEPTIONS",
    "DOUBLING_VERBS",
    "EVENTS",
    "FEMALE_NAMES",
    "FEMALE_NOUNS",
    "HABITS",
    "HABIT_VERBS",
    "INANIMATE_EVENTS",
    "IRREGULAR_NOUNS",
    "IRREGULAR_VERBS",
    "MALE_NAMES",
    "MALE_NOUNS",
    "MODALS",
    "NOUNS_BY_CLASS",
    "OES_NOUNS",
    "PERSON_EVENTS",
    "PHRASES_WITH_ATTRACTOR",
    "RELATIVE_VERBS",
    "STATES",
    "THING_RELATIVES",
    "UNINTENDED",
    "VERBS",
    "VERBS_BY_CLASS",
]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _table(text: str) -> dict[str, tuple[str, ...]]:
    """Lines `key: phrase, phrase` as a mapping from the key to its phrases."""
    table = {}
    for line in text.strip().splitlines():
        key, _, phrases = line.partition(":")
        table[key.strip()] = tuple(phrase.strip() for phrase in phrases.split(",") if phrase.strip())
    return table


def _verb_forms(text: str) -> dict[str, tuple[str, ...]]:
    """Groups `lemma past participle;` as a mapping from the lemma to the group."""
    groups = [_words(group) for group in text.split(";")]
    return {group[0]: group for group in groups}


#: lemma: lemma, past, past participle
IRREGULAR_VERBS = _verb_forms(
    """arise arose arisen; become became become; begin began begun; bend bent bent; bite bit bitten;
        bleed bled bled; blow blew blown; break broke broken; breed bred bred; bring brought brought;
        build built built; buy bought bought; catch caught caught; choose chose chosen; cling clung clung;
        come came come; creep crept crept; deal dealt dealt; dig dug dug; do did done; draw drew drawn;
        drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed fed; feel felt felt;
        fight fought fought; find found found; flee fled fled; fling flung flung; fly flew flown;
        foresee foresaw foreseen; forget forgot forgotten; forgive forgave forgiven; freeze froze frozen;
        give gave given; go went gone; grind ground ground; grow grew grown; have had had; hear heard heard;
        hide hid hidden; hold held held; keep kept kept; know knew known; lead led led;
        leave left left; lend lent lent; lose lost lost; make made made; mean meant meant; meet met met;
        mislead misled misled; mistake mistook mistaken; misunderstand misunderstood misunderstood;
        outgrow outgrew outgrown; overcome overcame overcome; overhear overheard overheard;
        oversleep overslept overslept; overtake overtook overtaken; overthrow overthrew overthrown;
        pay paid paid; rebuild rebuilt rebuilt; repay repaid repaid; retell retold retold;
        rewrite rewrote rewritten; ride rode ridden; ring rang rung; rise rose risen; run ran run;
        say said said; see saw seen; seek sought sought; sell sold sold; send sent sent; shake shook shaken;
        shoot shot shot; sing sang sung; sit sat sat; sleep slept slept; slide slid slid; speak spoke spoken;
        spend spent spent; spin spun spun; stand stood stood; steal stole stolen; stick stuck stuck;
        strike struck struck; swear swore sworn; sweep swept swept; swim swam swum;
        swing swung swung; take took taken; teach taught taught; tear tore torn; tell told told;
        think thought thought; throw threw thrown; undergo underwent undergone;
        understand understood understood; undertake undertook undertaken; wear wore worn;
        weep wept wept; win won won; withdraw withdrew withdrawn; withhold withheld withheld;
        withstand withstood withstood; wring wrung wrung; write wrote written"""
)

#: Verbs of two syllables with the stress on the last one, which double their last letter too.
DOUBLING_VERBS = frozenset(
    _words("admit begin commit compel control expel forget occur omit permit prefer refer regret")
)

_REGULAR_VERBS = _words(
    """accept achieve add admire admit adopt advise agree aim allow amuse announce annoy answer appear apply
    approve argue arrange arrest arrive ask assist attach attack attend avoid bake balance ban bathe beg
    behave belong blame blink block boast boil borrow bounce bow brag breathe brush bury call calm camp care
    carry carve cause celebrate change charge chase chat chatter cheat check cheer chew chop claim clap
    clean clear climb clip close collapse collect comb combine comfort commit compare compel complain
    complete confess confuse connect consider contain continue control cook copy correct cough count cover
    crash crawl cross crush cry cure damage dance deceive decide declare decorate defend delay deliver
    demand deny depend describe deserve destroy develop dip disappear discover discuss divide double doubt
    drag dress drift drip drop drown dry dust earn employ empty encourage end enjoy enter envy escape
    examine excite excuse exercise exist expand expect expel explain explode explore express fade fail
    fasten fear fetch fill film finish fix flap flip float flood flow fold follow force frighten fry gather
    glow grab greet grin grip groan guard guess guide hammer hand handle happen harm hate haunt heal heat
    help hesitate hop hope hug hum hunt hurry identify imagine impress improve include increase inform
    inject insist inspect intend introduce invent invite jog join joke juggle jump kick kiss knock land last
    laugh launch lick lift like listen live load lock look love manage march mark marry match mend miss mix
    mop move mumble multiply need nod note notice obey observe obtain occur offer omit open order own pack
    paint pass paste pat pause peel permit phone pick pin plan plant play plug point polish pop pour praise
    pray prefer prepare present press pretend prevent print produce promise protect provide pull pump punish
    push race rain raise reach receive refer reflect refuse regret relax rely remain remember remind remove
    rent repair repeat replace reply report rescue rest return rinse rob roll rub rule rush sail satisfy
    save scan scare scatter scold scratch scream scrub search seem serve settle share shave ship shiver shop
    shout shrug sign sip skate skip slam slap slip smile smoke snap sneeze sniff snore sob solve sparkle
    spot spray squeeze stare start state stay step stir stop store stretch study stumble succeed suffer
    suggest supply support surprise surround suspect swallow switch talk tame tap taste tease tempt test
    thank tie tip touch trace trade train trap treat tremble trick trim trip trot trust try tug turn twist
    type unite unlock unpack use vanish visit wag wait walk wander want warm warn wash waste watch water
    wave weigh welcome whisper whistle wink wipe wish wonder work worry wrap yawn yell zip"""
)

VERBS = tuple(sorted((*IRREGULAR_VERBS, *_REGULAR_VERBS)))

#: singular, plural
IRREGULAR_NOUNS = {
    "calf": "calves",
    "child": "children",
    "crisis": "crises",
    "elf": "elves",
    "fireman": "firemen",
    "fisherman": "fishermen",
    "foot": "feet",
    "goose": "geese",
    "grandchild": "grandchildren",
    "knife": "knives",
    "leaf": "leaves",
    "loaf": "loaves",
    "man": "men",
    "mouse": "mice",
    "oasis": "oases",
    "policeman": "policemen",
    "postman": "postmen",
    "shelf": "shelves",
    "thief": "thieves",
    "tooth": "teeth",
    "wife": "wives",
    "wolf": "wolves",
    "woman": "women",
}

#: Nouns in -o that take -es; the others take -s.
OES_NOUNS = frozenset(_words("echo hero potato tomato"))

NOUNS_BY_CLASS = {
    "person": _words(
        """actor artist aunt author baker boy butcher captain carpenter child clerk cook cousin customer
        dancer daughter dentist doctor driver emperor engineer farmer father fireman fisherman friend
        gardener girl grandchild guard guest guide hero hunter judge king knight lady lawyer leader man monk
        mother nephew niece nurse officer owner painter pianist pilot pirate player poet policeman postman
        priest prince princess queen rider sailor scientist secretary servant singer sister soldier son spy
        student tailor teacher thief tourist uncle visitor waiter waitress widow wife witch witness woman
        worker writer"""
    ),
    "creature": _words(
        """ant baby bat bear bee beetle bird bull butterfly calf camel cat chicken cow crab crow dog dolphin
        donkey dragon duck eagle elephant elf fly fox frog giraffe goat goose gorilla hamster hawk hen horse
        kitten lamb leopard lion lizard monkey monster mouse ostrich owl panda parrot peacock penguin pig
        pigeon pony puppy rabbit rat raven seal shark snail snake spider swan tiger turkey turtle walrus
        wasp whale wolf worm zebra"""
    ),
    "thing": _words(
        """bag ball basket battery bed bell belt bench bike blanket blouse boat book boot bottle bowl box
        bracelet branch brick brush bucket bus button cabinet camera candle cap car carpet chair chimney
        clock coat coin comb cradle crown cup curtain desk diamond diary dictionary dish doll door drawer
        dress drum engine envelope fence flag flower flute fork fountain gate gift glass glove guitar hammer
        hat helmet jar jewel key kite knife ladder lamp leaf letter lock lorry machine magnet map mask match
        mattress mirror mug nail necklace needle oven painting parcel pen pencil phone photo piano picture
        pillow pipe plane plate pocket poster pot radio raft ribbon ring rope rose ruler sandal saw shelf
        ship shirt shoe sofa spoon stamp statue stone stove suitcase sword table tent ticket tie toothbrush
        torch towel toy tractor train tray tree truck trumpet tunnel umbrella uniform vase video violin wall
        watch wheel whistle window wire"""
    ),
    "food": _words(
        """apple banana berry biscuit cabbage cake carrot cherry coconut cookie grape lemon loaf melon
        mushroom nut onion orange pancake peach pear pepper pie plum potato radish salad sandwich sausage
        strawberry tomato"""
    ),
    "place": _words(
        """airport attic bakery balcony bank bay beach bridge cabin camp castle cave cellar cemetery church
        city clinic cottage country desert factory farm field forest garden hill hospital hotel
        house hut island jungle kitchen lake library market mountain museum oasis palace park playground
        pond port prison river road roof room school shop station street studio temple tower town valley
        village yard zoo"""
    ),
    "notion": _words(
        """accident answer class concert crisis debate dream duty echo essay event film game hobby hour idea
        joke journey lesson lunch method mistake movie name party plan planet poem problem question reason
        report rule secret song speech storm story task team test theory wish word year"""
    ),
    "body": _words("arm cheek ear elbow eye finger foot hand knee leg nose shoulder thumb toe tooth wing"),
}

#: Adjectives that suit every noun of the class.
ADJECTIVES = {
    "person": _words("young tall kind happy"),
    "creature": _words("small big young hungry"),
    "thing": _words("small large old strange"),
    "food": _words("small large fresh"),
    "place": _words("small large quiet strange"),
    "notion": _words("strange terrible"),
    "body": _words("small big cold"),
}

#: Words whose first letter misleads about "a" and "an".
AN_EXCEPTIONS = {"hour": "an", "uniform": "a"}

#: Verbs of the agreement items that suit every noun of the class.
VERBS_BY_CLASS = {
    "person": _words("be be_past have laugh smile wait sing dance sleep work walk listen"),
    "creature": _words("be be_past have move sleep eat wait look"),
    "thing": _words("be be_past have look seem remain"),
}

#: head, preposition, attractor, by the class of the head
PHRASES_WITH_ATTRACTOR = {
    "thing": _table(
        """key: to cabinet, in drawer, on table
        picture: of horse, of boy, on wall
        door: of car, of house
        book: on shelf, about planet, about king
        cup: on table, on shelf
        box: under bed, behind door
        lamp: near window, on desk
        house: near river, on hill, behind school
        letter: from teacher, from aunt, to queen
        road: to village, to city, near lake
        bridge: over river, near town
        tree: behind house, near road
        photo: of actor, of castle
        story: about king, about pirate, about wolf
        song: about hero, about soldier
        gift: for child, for guest
        ticket: for concert, for game
        coin: in box, under bed
        apple: in basket, on plate
        flower: in vase, near window
        window: of house, of shop
        wheel: of bus, of truck
        map: of city, of island
        button: on shirt, on coat
        knife: on plate, near fork
        bag: behind door, under chair
        toy: under chair, in box"""
    ),
    "person": _table(
        """friend: of king, of singer, of boy
        doctor: near window, with nurse
        girl: behind tree, near horse, with ball
        boy: near dog, with kite, near bike
        woman: with dog, near door, with ticket
        man: with hat, behind car, near boat
        child: near bus, near swan, with toy
        farmer: with cow, near fence
        guard: of prince, near gate
        player: near fence, with ball
        student: near desk, with book
        nurse: beside doctor, near bed
        driver: of truck, of bus
        owner: of shop, of boat
        author: of book, of poem
        customer: in shop, with bag"""
    ),
    "creature": _table(
        """dog: near boy, behind fence, of farmer
        cat: on chair, under table, near mouse
        bird: in tree, on roof
        horse: behind fence, near river, of king
        cow: in field, near road
        mouse: under box, behind wall
        duck: on pond, near bridge
        goat: on hill, near farm"""
    ),
}

#: Present-tense verbs of relative clauses between two persons.
RELATIVE_VERBS = _words("know like help thank visit follow admire")

#: things and what persons have done with them: "the cake that the girls baked"
THING_RELATIVES = _table(
    """book: write, find
    cake: bake, eat
    house: build, sell, paint
    key: find, lose
    song: sing, write
    picture: paint, draw, buy
    letter: write, send
    toy: make, break
    car: sell, wash, repair
    cup: break, wash
    bridge: build, cross
    flower: plant, water"""
)

FEMALE_NAMES = _words("Anna Maria Lucy Emma Julia Sarah Alice")
MALE_NAMES = _words("Tom Peter Paul David James Robert John")
FEMALE_NOUNS = _words("girl woman queen princess lady")
MALE_NOUNS = _words("boy man king prince")

MODALS = _words("can will must should could")

#: What persons can be at a time.
STATES = (
    *_words("tired hungry thirsty happy sad ready busy late angry safe strong sick calm rich lonely proud"),
    "at home",
    "at school",
    "in the garden",
    "in the kitchen",
    "on the train",
)

#: What persons do without an object.
HABIT_VERBS = _words(
    """sing dance swim run sleep laugh smile work wait arrive leave cry walk talk shout cook jump rest win
    speak write drive stop listen whisper hurry pray wave"""
)

#: What persons hardly mean to do or cannot be in the midst of: left out after modals and "is".
UNINTENDED = frozenset(_words("break cry drop find forget hear lose see"))

#: What persons do time and again; fits the present tense best.
HABITS = _table(
    """like: tea, music, cheese, cats
    love: jazz, soup, flowers
    drink: tea, milk, water, coffee
    eat: bread, rice, fish, apples
    play: chess, tennis, football, cards
    bake: bread, cakes, pies
    sell: books, shoes, bikes
    teach: music, history, art
    study: law, art, history
    speak: French, Greek, Spanish
    write: poems, stories, letters, songs
    collect: stamps, coins, shells
    grow: roses, beans, tomatoes
    paint: houses, pictures
    wear: hats, gloves, boots
    need: help, money, water
    want: coffee, money
    make: toys, candles, cheese
    drive: trucks, buses
    know: Latin, French
    fear: spiders, snakes, storms
    hate: noise, rain
    watch: films, birds
    draw: maps, horses
    own: land, horses
    repair: clocks, cars
    build: boats, bridges
    cook: rice, soup
    keep: bees, hens
    enjoy: sports, music
    prefer: tea, coffee
    avoid: sugar, traffic
    ride: horses, bikes
    carry: bags, boxes
    tell: stories, jokes"""
)

#: What persons do once, to things.
EVENTS = _table(
    """open: door, window, box, letter
    close: door, window, book
    break: cup, plate, vase
    bake: cake, pie, loaf
    wash: car, shirt, dish
    clean: kitchen, room, table
    find: key, ring, map, coin
    lose: key, ticket, ring
    write: letter, story, report
    paint: wall, fence, picture
    carry: bag, box, basket
    sell: house, car, boat
    buy: house, hat, lamp
    repair: bike, clock, radio
    build: house, bridge, tower
    hide: gift, letter, key
    eat: cake, apple, sandwich
    cook: potato, sausage
    choose: dress, song, name
    bring: cake, map, lamp
    throw: ball, stone
    catch: ball, coin
    drop: plate, phone, spoon
    forget: name, song, key
    sign: letter, report
    move: table, piano, chair
    fill: glass, bottle, bucket
    draw: house, map, tree
    sing: song
    watch: film, game
    study: map, poem, plan
    plant: tree, rose
    pack: bag, suitcase
    use: knife, pen, hammer
    visit: museum, castle, church
    sweep: room, street
    hear: bell, song, story
    see: castle, tower, bridge"""
)

#: What persons do to animals; these objects are left out where "it" and "she" would compete.
ANIMAL_EVENTS = _table(
    """feed: dog, cat, hen
    chase: goat, goose
    ride: horse, donkey
    wash: dog, pony"""
)

#: What persons do to persons.
PERSON_EVENTS = _words("call meet help thank greet visit follow invite teach hug praise watch")

#: What things do by themselves.
INANIMATE_EVENTS = _table(
    """lamp: fall, break
    cup: fall, break
    vase: fall, break
    train: arrive, stop, leave
    bus: arrive, stop, leave
    plane: land, arrive, leave
    door: open, close
    window: open, close
    gate: open, close
    ball: roll, bounce
    stone: roll, fall
    bell: ring, fall
    phone: ring, break
    clock: stop, fall
    car: stop, crash, start
    engine: stop, start
    machine: stop, start
    leaf: fall, dry
    tree: grow, fall
    flower: grow, fade
    storm: begin, end
    party: begin, end
    kite: fly, fall
    rope: break, fall
    bridge: collapse, shake
    wall: collapse, fall
    tower: collapse, shake
    story: begin, end
    film: begin, end
    game: begin, end
    concert: begin, end"""
)
