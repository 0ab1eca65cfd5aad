"""Word pairs by hand: antonyms, synonyms, homophones, compounds, genders."""

# Read in both directions.
ANTONYMS = """
ability inability, able unable, abnormal normal, above below, absence presence, absent present, absolute
relative, abstract concrete, abundance scarcity, abundant scarce, accept reject, accept refuse, acceptable
unacceptable, acceptance rejection, accidental deliberate, accurate inaccurate, active inactive, active
passive, actively passively, acute chronic, add subtract, addition subtraction, adequate inadequate, admit
deny, adult child, advantage disadvantage, after before, agree disagree, agreement disagreement, alive
dead, allow forbid, always never, amateur professional, ancestor descendant, ancient modern, answer
question, appear disappear, appearance disappearance, appropriate inappropriate, arrival departure, arrive
depart, artificial natural, ascend descend, ascent descent, asleep awake, asset liability, attach detach,
attack defend, attract repel, automatic manual, available unavailable, aware unaware, back front,
background foreground, backward forward, bad good, badly well, balance imbalance, beautiful ugly, begin
end, beginning end, benefit harm, benign malignant, best worst, better worse, big small, big little, birth
death, bitter sweet, black white, bless curse, blunt sharp, bold timid, boring interesting, borrow lend,
bottom top, brave cowardly, bright dim, bright dull, broad narrow, broken fixed, build destroy, busy idle,
buy sell, buyer seller, calm agitated, capable incapable, careful careless, carefully carelessly, ceiling
floor, central peripheral, certain uncertain, certainty uncertainty, charge discharge, cheap expensive,
clean dirty, clear unclear, clockwise counterclockwise, close open, close distant, closed open, closing
opening, cold hot, come go, comedy tragedy, comfort discomfort, comfortable uncomfortable, common rare,
common uncommon, compatible incompatible, competent incompetent, competition cooperation, complete
incomplete, complex simple, complexity simplicity, complicate simplify, conceal reveal, confirm deny,
connect disconnect, conscious unconscious, conservative liberal, consistent inconsistent, constant
variable, constructive destructive, consumer producer, continue stop, contract expand, contraction
expansion, convenient inconvenient, convergence divergence, cooked raw, cool warm, correct incorrect,
correct wrong, correctly incorrectly, courage cowardice, cover uncover, create destroy, creation
destruction, credit debit, cruel kind, cry laugh, curved straight, danger safety, dangerous safe, dark
light, darkness light, dawn dusk, day night, dead living, deadly harmless, decode encode, decrease
increase, decreased increased, decreasing increasing, deep shallow, defeat victory, defense offense,
defensive offensive, deficit surplus, definite indefinite, demand supply, deny affirm, dependent
independent, deposit withdraw, descending ascending, despair hope, die live, different same, difficult
easy, difficulty ease, disable enable, discourage encourage, dishonest honest, dislike like, disobey obey,
disorder order, divide multiply, divide unite, divided united, domestic foreign, dominant recessive,
dominant submissive, double single, down up, download upload, downstream upstream, downward upward, dry
wet, early late, earn spend, east west, eastern western, easy hard, effective ineffective, efficient
inefficient, employed unemployed, employee employer, employment unemployment, empty full, end start, enemy
friend, enter exit, entrance exit, equal unequal, equality inequality, even odd, ever never, everyone
nobody, everything nothing, evil good, exclude include, exclusion inclusion, exclusive inclusive, exhale
inhale, explicit implicit, explicitly implicitly, export import, exterior interior, external internal,
extraordinary ordinary, extrinsic intrinsic, fail succeed, failure success, fair unfair, fake real, fall
rise, falling rising, false true, familiar unfamiliar, far near, fast slow, fat thin, few many, fewer
more, fiction nonfiction, finish start, finite infinite, fire hire, first last, flexible rigid, float
sink, follow lead, follower leader, foolish wise, forget remember, formal informal, former latter,
fortunate unfortunate, fortunately unfortunately, freedom slavery, freeze melt, frequent infrequent,
frequently rarely, fresh stale, friendly hostile, future past, gain loss, general specific, generally
specifically, generous selfish, gentle rough, give take, given taken, global local, gradual sudden,
gradually suddenly, greater lesser, grow shrink, growth decline, guest host, guilt innocence, guilty
innocent, happiness sadness, happy sad, happy unhappy, hard soft, harmful harmless, hate love, healthy
sick, healthy unhealthy, heaven hell, heavy light, here there, hero villain, hide show, high low, higher
lower, highest lowest, hit miss, horizontal vertical, huge tiny, humble arrogant, ignorance knowledge,
illegal legal, illness health, immature mature, immoral moral, immortal mortal, impatient patient,
imperfect perfect, important unimportant, impossible possible, improve worsen, incoming outgoing, indirect
direct, indirectly directly, indoor outdoor, indoors outdoors, inferior superior, inhibit promote, inner
outer, input output, insert remove, inside outside, insignificant significant, insufficient sufficient,
intentional unintentional, intentionally accidentally, introvert extrovert, invalid valid, invisible
visible, inward outward, irrational rational, irregular regular, irrelevant relevant, joy sorrow, junior
senior, justice injustice, keep discard, known unknown, large small, largest smallest, lazy hardworking,
least most, leave stay, left right, lengthen shorten, less more, lie truth, likely unlikely, limited
unlimited, linear nonlinear, liquid solid, lock unlock, long short, longest shortest, loose tight, lose
win, loser winner, lost found, loud quiet, loudly quietly, lower raise, major minor, majority minority,
male female, married single, masculine feminine, maximize minimize, maximum minimum, meaningful
meaningless, minus plus, mobile stationary, morning evening, multiple single, multiplication division,
natural unnatural, necessary unnecessary, negative positive, nervous relaxed, new old, newest oldest,
noise silence, noisy quiet, north south, northeast southwest, northern southern, northwest southeast,
objective subjective, off on, often seldom, old young, older younger, oldest youngest, optimism pessimism,
optimistic pessimistic, optional mandatory, over under, pack unpack, pain pleasure, painful painless,
parent child, partial complete, pass fail, peace war, permanent temporary, permanently temporarily,
pleasant unpleasant, plural singular, polite rude, poor rich, popular unpopular, poverty wealth, powerful
powerless, praise criticize, predictable unpredictable, prefix suffix, private public, privately publicly,
profit loss, proud ashamed, pull push, punish reward, punishment reward, qualitative quantitative, quick
slow, quickly slowly, reliable unreliable, religious secular, right wrong, rough smooth, rural urban, send
receive, sender receiver, shorter longer, shout whisper, shy outgoing, similar different, sit stand,
slower faster, smaller larger, something nothing, sooner later, sour sweet, stability instability, stable
unstable, start stop, strength weakness, strengthen weaken, strict lenient, strong weak, stronger weaker,
strongly weakly, stupid smart, successful unsuccessful, sunrise sunset, tall short, tame wild, thick thin,
thicker thinner, together apart, trust distrust, useful useless, usual unusual, vacant occupied, vague
precise, wake sleep, warmer cooler, wealthy poor, wide narrow, wider narrower, with without, worthless
valuable, yes no
"""

# Read as written: the second word is the more common one, or as common.
SYNONYMS = """
ability capability, able capable, abroad overseas, accurate precise, achieve accomplish, acquire obtain,
actual real, actually really, additional extra, adequate sufficient, advice guidance, aid help, aim goal,
allow permit, also too, alter change, amazing astonishing, amount quantity, angry mad, annual yearly,
answer reply, answer response, appear seem, area region, argue quarrel, ask inquire, assist help,
assistance help, attempt try, automobile car, autumn fall, awful terrible, baby infant, battle fight,
begin start, beginning start, behavior conduct, belief faith, big large, brave courageous, bravery
courage, brief short, broad wide, build construct, buy purchase, calm peaceful, career profession, careful
cautious, cause reason, center middle, certain sure, chance opportunity, cheap inexpensive, cheerful
happy, child kid, choice option, choose select, choose pick, clever smart, close near, close shut, clothes
clothing, coast shore, collect gather, combine merge, common frequent, complete finish, completely
entirely, completely totally, complicated complex, conclusion end, constant steady, contemporary modern,
continue proceed, correct right, country nation, create make, crime offense, crucial vital, cruel brutal,
cry weep, cure remedy, damage harm, danger peril, danger risk, dangerous hazardous, deadly lethal, deadly
fatal, decide determine, decline decrease, defend protect, delay postpone, delicious tasty, demonstrate
show, depart leave, desire wish, desire want, destroy ruin, die perish, different distinct, difficult
hard, disappear vanish, discover find, disease illness, display show, dispute argument, distant far,
doctor physician, drug medication, eager keen, earth world, easy simple, edge border, effect result,
effort attempt, elderly old, end finish, end conclude, enemy foe, enormous huge, enough sufficient, ensure
guarantee, entire whole, entirely wholly, error mistake, essential necessary, evaluate assess, evil
wicked, exact precise, exactly precisely, exam test, examine inspect, example instance, excellent superb,
expensive costly, explain clarify, extremely very, fair just, fake false, false untrue, famous renowned,
fantastic wonderful, fast quick, fast rapid, father dad, fault flaw, fear fright, feeling emotion, film
movie, final last, fire blaze, fix repair, foolish silly, force compel, form shape, fortunate lucky,
frequently often, friend pal, frightened afraid, funny humorous, gain obtain, garbage trash, gather
assemble, gift present, glad happy, global worldwide, goal objective, grab seize, grave tomb, great
excellent, ground soil, guard protect, happen occur, happiness joy, hard tough, hate despise, hide
conceal, hint clue, hire employ, hit strike, honest truthful, hope wish, hug embrace, huge gigantic, huge
massive, hurry rush, hurt injure, idea thought, identical same, identify recognize, ill sick, illegal
unlawful, illness sickness, imagine envision, immediately instantly, important significant, improve
enhance, incorrect wrong, increase rise, inform tell, initial first, injury wound, insect bug, instructor
teacher, intelligent smart, investigate examine, job work, join unite, journey trip, jump leap, keep
retain, kind type, kind sort, lack shortage, large sizable, largely mostly, lawyer attorney, leave exit,
legal lawful, likely probable, limit restrict, little small, location place, loud noisy, love adore, luck
fortune, mail post, main primary, main chief, maintain preserve, manage handle, manager boss, maybe
perhaps, measure gauge, method technique, mind intellect, mix blend, modify change, modify alter, mother
mom, motive reason, move shift, mystery puzzle, naked nude, near nearby, nearly almost, neat tidy, need
require, new novel, nice pleasant, normal usual, notice observe, numerous many, objective aim, observe
watch, obtain get, obvious clear, obviously clearly, occupation job, ocean sea, odd strange, odor smell,
old aged, opponent rival, oppose resist, order command, ordinary normal, origin source, outcome result,
own possess, pain ache, path trail, pause break, perfect ideal, perform execute, phase stage, phone
telephone, photo picture, photograph photo, picture image, piece part, pile heap, place spot, plan scheme,
polite courteous, pollute contaminate, portion share, power strength, powerful strong, praise compliment,
precious valuable, predict forecast, present current, pretty beautiful, pretty lovely, price cost,
principal main, prison jail, probably likely, problem issue, produce generate, profit gain, prohibit ban,
promise pledge, proof evidence, proper suitable, propose suggest, protect shield, prove verify, provide
supply, pull drag, pupil student, push shove, quick rapid, quickly rapidly, quiet silent, quit stop, rage
fury, rare uncommon, ready prepared, rear back, rebel revolt, receive get, reduce decrease, reduce lessen,
refuse decline, regularly routinely, reject refuse, relax rest, reliable dependable, remain stay, remark
comment, remember recall, remove eliminate, rent lease, repeat reiterate, request ask, required necessary,
rescue save, respond reply, rich wealthy, risk hazard, rock stone, rough uneven, round circular, rubbish
garbage, rude impolite, sad unhappy, sadness sorrow, safe secure, scare frighten, scared afraid, scream
yell, section part, separate divide, serious grave, severe harsh, shout yell, show exhibit, shy timid,
similar alike, slender thin, slim thin, smell scent, soil dirt, sometimes occasionally, soon shortly,
speak talk, speech talk, speed velocity, spread scatter, start commence, state declare, stop cease, stop
halt, story tale, strange weird, strong sturdy, struggle fight, student learner, suddenly abruptly, summit
peak, suspend pause, sweets candy, swift fast, symbol sign, target goal, task job, teach educate, teenager
adolescent, tendency trend, terrible horrible, throw toss, tired weary, tool instrument, top peak, total
sum, trade commerce, traditional conventional, trash rubbish, true correct, trust confidence, typical
normal, understand comprehend, upset distressed, use utilize, useful helpful, usually normally, vacant
empty, vacation holiday, value worth, vast immense, verify confirm, victory win, vision sight, war
warfare, warn alert, weak feeble, win triumph, wonderful marvelous, wood timber, work labor, worker
employee, world globe, worry concern, writer author, zero nil
"""

# Read in both directions.
HOMOPHONES = """
adds ads, aid aide, air heir, aisle isle, allowed aloud, altar alter, arc ark, ascent assent, ate eight,
aye eye, bail bale, band banned, bard barred, bare bear, baron barren, base bass, be bee, beach beech,
beat beet, beats beets, beau bow, bell belle, berry bury, berth birth, billed build, bite byte, bites
bytes, blew blue, bloc block, boar bore, board bored, boarder border, bold bowled, bolder boulder, bough
bow, brake break, brakes breaks, braking breaking, bread bred, brewed brood, brews bruise, bridal bridle,
brows browse, but butt, buy by, buy bye, by bye, cache cash, cannon canon, canvas canvass, capital
capitol, carat carrot, cast caste, castes casts, cede seed, ceiling sealing, cell sell, cellar seller,
cells sells, censor sensor, cent scent, cent sent, cents scents, cereal serial, chased chaste, chews
choose, choral coral, chord cord, chords cords, chute shoot, cite sight, cite site, cited sighted, cites
sights, cites sites, clause claws, coarse course, colonel kernel, complement compliment, coo coup, core
corps, council counsel, crews cruise, cue queue, cymbal symbol, dam damn, days daze, dear deer, dew due,
die dye, died dyed, dies dyes, discreet discrete, doe dough, dual duel, ducked duct, dyeing dying, earn
urn, ewe you, fair fare, faze phase, feat feet, few phew, find fined, fir fur, flair flare, flea flee,
flew flu, flew flue, flour flower, for four, forth fourth, foul fowl, four fore, franc frank, frees
freeze, friar fryer, gait gate, genes jeans, gilt guilt, gorilla guerrilla, grate great, groan grown,
guessed guest, guise guys, hail hale, hair hare, hall haul, hangar hanger, hart heart, hay hey, heal heel,
heals heels, hear here, heard herd, heroin heroine, hi high, higher hire, him hymn, hoard horde, hoarse
horse, hole whole, holy wholly, hour our, hours ours, hue hew, idle idol, in inn, key quay, knead need,
knew new, knight night, knights nights, knit nit, knot not, know no, knows nose, lacks lax, lain lane,
laps lapse, leach leech, lead led, leak leek, lean lien, leased least, lessen lesson, levee levy, lie lye,
links lynx, load lode, loan lone, loot lute, made maid, mail male, main mane, maize maze, mall maul,
manner manor, mantel mantle, marshal martial, meat meet, meats meets, medal meddle, metal mettle, might
mite, mind mined, miner minor, miners minors, missed mist, moat mote, mode mowed, moose mousse, morning
mourning, muscle mussel, muscles mussels, mustard mustered, naval navel, none nun, oar ore, ode owed, oh
owe, one won, or ore, overdo overdue, paced paste, packed pact, pail pale, pain pane, pair pear, pair
pare, pairs pears, palate palette, pallet palette, passed past, pause paws, peace piece, peak peek, pedal
peddle, peer pier, pi pie, plain plane, plains planes, pleas please, plum plumb, pole poll, poles polls,
pore pour, praise prays, pray prey, principal principle, principals principles, profit prophet, pros
prose, quarts quartz, rain reign, rain rein, rains reigns, rains reins, raise rays, rap wrap, rapper
wrapper, read red, read reed, reads reeds, real reel, reign rein, rest wrest, right rite, right write,
rights rites, rights writes, ring wring, rite write, road rode, roe row, role roll, roles rolls, rose
rows, rote wrote, rough ruff, rye wry, sac sack, sacks sax, sail sale, sails sales, scene seen, scent
sent, sea see, seam seem, seams seems, seas sees, seas seize, sees seize, sew so, sew sow, sewing sowing,
sewn sown, shear sheer, shoe shoo, shone shown, side sighed, sight site, sights sites, sign sine, sink
sync, size sighs, slay sleigh, so sow, soar sore, soared sword, sole soul, soles souls, some sum, son sun,
sons suns, staid stayed, stair stare, stairs stares, stake steak, stakes steaks, stationary stationery,
steal steel, step steppe, straight strait, suede swayed, suite sweet, tacks tax, tail tale, tails tales,
taught taut, tea tee, tear tier, teas tease, tern turn, their there, threw through, throne thrown, thyme
time, tic tick, tide tied, to too, to two, toad towed, toe tow, too two, tracked tract, tray trey, troop
troupe, undo undue, vain vein, vain vane, vale veil, wade weighed, wail whale, waist waste, wait weight,
waits weights, waive wave, waived waved, ware wear, wares wears, warn worn, way weigh, ways weighs, we
wee, weak week, weakly weekly, wear where, weather whether, wet whet, wheeled wield, which witch, whine
wine, wood would, yew you, yoke yolk
"""

# first part, whole
COMPOUNDS = """
after afternoon, air airport, air aircraft, air airline, along alongside, any anyone, any anything, any
anyway, arm armchair, arm armpit, art artwork, ash ashtray, back background, back backbone, ball ballroom,
ball ballpark, band bandwidth, bar barcode, bare barefoot, base baseball, base baseline, basket
basketball, bath bathroom, bath bathtub, battle battlefield, battle battleship, beach beachfront, bed
bedroom, bed bedtime, bed bedrock, bee beehive, bee beekeeping, before beforehand, bell bellboy, bench
benchmark, bird birdhouse, birth birthday, birth birthplace, birth birthright, black blackboard, black
blackberry, black blackmail, blind blindfold, block blockbuster, block blockchain, blood bloodstream,
blood bloodshed, blue blueprint, blue blueberry, board boardroom, boat boathouse, body bodyguard, bomb
bombshell, book bookstore, book bookshelf, book bookmark, border borderline, bottle bottleneck, brain
brainstorm, bread breadcrumb, bread breadwinner, break breakfast, break breakdown, break breakthrough,
breast breastfeeding, breath breathtaking, brick bricklayer, broad broadcast, broad broadband, bull
bulldog, burn burnout, business businessman, butter butterfly, button buttonhole, call callback, camp
campfire, camp campground, candle candlelight, car carpool, card cardboard, care caretaker, cat catfish,
chair chairman, chalk chalkboard, check checklist, check checkpoint, cheese cheesecake, chess chessboard,
child childbirth, child childcare, church churchyard, class classroom, class classmate, clock clockwork,
cloud cloudburst, coast coastline, common commonplace,
congress congressman, cook cookbook, cook cookware, copy copyright, cork corkscrew, corn cornbread, corner
cornerstone, count countdown, country countryside, course coursework, court courtroom, court courthouse,
cow cowboy, crafts craftsman, cross crossover, cup cupcake, cup cupboard, cut cutoff, dash dashboard, data
database, data dataset, day daylight, day daytime, day daydream, dead deadline, dead deadlock, desk
desktop, dish dishwasher, dog doghouse, door doorbell, door doorway, door doorstep, down download, down
downtown, down downstairs, dragon dragonfly, draw drawback, dream dreamland, drive driveway, drop dropout,
drug drugstore, drum drumstick, dust dustpan, ear earring, ear eardrum, earth earthquake, earth earthworm,
egg eggplant, egg eggshell, else elsewhere, end endpoint, ever evergreen, ever everlasting, every
everyone, every everything, every everywhere, eye eyebrow, eye eyewitness, eye eyesight, face facelift,
fall fallout, fare farewell, farm farmhouse, farm farmland, father fatherland, feed feedback, feed
feedstock, fiber fiberglass, field fieldwork, file filename, film filmmaker, finger fingerprint, finger
fingertip, fire firefighter, fire fireplace, fire firewall, first firsthand, fish fishbowl, flash
flashlight, flash flashback, flood floodplain, floor floorboard, flower flowerpot, folk folklore, foot
football, foot footprint, foot footnote, fork forklift, frame framework, free freeway, free freelance,
fresh freshwater, front frontline, frost frostbite, fund fundraiser, further furthermore, game gameplay,
gate gateway, gem gemstone, gentle gentleman, ginger gingerbread, girl girlfriend, glass glassware, goal
goalkeeper, god godfather, gold goldfish, good goodwill, grand grandmother, grand grandfather, grape
grapefruit, grass grasshopper, grass grassland, grave graveyard, green greenhouse, ground groundwater,
ground groundwork, guide guideline, guide guidebook, gun gunpowder, gun gunshot, hair haircut, hair
hairstyle, half halfway, hall hallway, hall hallmark, hand handbook, hand handshake, hand handmade, hard
hardware, hard hardwood, hard hardworking, head headline, head headquarters, head headphones, health
healthcare, heart heartbeat, heart heartburn, hedge hedgehog, high highway, high highlight, hill hillside,
home homework, home homeland, home homepage, honey honeymoon, honey honeycomb, horse horseshoe, horse
horsepower, hot hotspot, house household, house housewife, house housekeeper, how however, ice iceberg, in
income, in insight, in input, jelly jellyfish, key keyboard, key keyhole, key keyword, knee kneecap, lady
ladybug, lamp lamppost, land landmark, land landscape, land landfill, lap laptop, law lawsuit, law
lawmaker, lay layout, left leftover, life lifetime, life lifestyle, life lifespan, light lighthouse, light
lightweight, lime limestone, line lineup, lip lipstick, live livestock, lock locksmith, lock lockdown,
long longtime, look lookout, look lookup, loud loudspeaker, low lowland, lower lowercase, lunch lunchtime,
mail mailbox, main mainland, main mainstream, make makeup, make makeshift, man mankind, man manpower,
market marketplace, master masterpiece, mean meantime, mean meanwhile, melt meltdown, mile milestone, milk
milkshake, mill millstone, mind mindset, mine minefield, moon moonlight, more moreover, moth mothball,
mother motherland, mother motherboard, motor motorcycle, mountain mountainside, mouth mouthpiece, mouth
mouthwash, name nameplate, name namespace, neck necklace, neck necktie, net network,
new newborn, news newspaper, news newsletter, night nightmare, night nightclub, night nighttime, no
nobody, no nowhere, north northwest, north northeast, note notebook, note noteworthy, nut nutshell, oat
oatmeal, off offspring, off offline, off offshore, often oftentimes, oil oilfield, on online, on ongoing,
out outcome, out output, over overview, over overlook, over overnight, pace pacemaker, pan pancake, paper
paperback, paper paperwork, pass password, pass passport, path pathway, pay payroll, pay paycheck, pay
payload, pea peanut, pepper peppermint, pick pickpocket, pig pigtail, pin pinpoint, pine pineapple, pipe
pipeline, play playground, play playlist, pocket pocketknife, police policeman, pop popcorn, post
postcard, post postman, pot pothole, power powerhouse, quarter quarterback, race racecar, race racetrack,
rail railroad, rail railway, rain rainbow, rain rainfall, rain rainforest, rattle rattlesnake, river
riverbank, road roadblock, road roadside, road roadmap, rock rockslide, roof rooftop, room roommate, rose
rosebud, row rowboat, run runway, run runtime, run runaway, saddle saddlebag, safe safeguard, sail
sailboat, sales salesman, salt saltwater, sand sandpaper, sand sandstone, scare scarecrow, school
schoolhouse, school schoolteacher, score scoreboard, scrap scrapbook, screen screenplay, screen
screenshot, screw screwdriver, sea seafood, sea seaweed, seat seatbelt, second secondhand, set setback,
share shareholder, shell shellfish, ship shipwreck, ship shipyard, shoe shoelace, shop shopkeeper, shore
shoreline, short shortcut, short shortstop, short shorthand, show showcase, shut shutdown, side sidewalk,
silver silverware, skate skateboard, skin skincare, sky skyscraper, sky skyline, sleep
sleepwalk, smart smartphone, snap snapshot, snow snowball, snow snowflake, snow snowman, soft software,
some someone, some something, some sometimes, song songwriter, south southwest, south southeast, soy
soybean, space spaceship, space spacecraft, sports sportsman, spot spotlight, spread spreadsheet, spring
springtime, stair staircase, stair stairway, stake stakeholder, stand standpoint, stand standalone, star
starfish, star starlight, state statewide, steam steamboat, step stepmother, stone stonework, store
storefront, store storehouse, storm stormwater, story storyteller, story storyline, straight
straightforward, straw strawberry, stream streamline, street streetcar, strong stronghold, sugar
sugarcane, suit suitcase, summer summertime, sun sunlight, sun sunrise, sun sunset, table tablespoon, tail
tailgate, take takeoff, take takeover, tax taxpayer, tea teapot, tea teaspoon, team teamwork, team
teammate, text textbook, through throughout, through throughput, thumb thumbnail, thunder thunderstorm,
time timeline, time timestamp, tip tiptoe, tomb tombstone, tool toolbox, tool toolkit, tooth toothbrush,
tooth toothpaste, top topsoil, touch touchdown, trade trademark, trade tradeoff, trap trapdoor, tread
treadmill, tree treetop, trouble troublemaker, trouble troubleshooting, trust trustworthy, turn turnover,
turn turnout, turtle turtleneck, under underground, under underwater, under underline, up upgrade, up
update, up upload, upper uppercase, user username, view viewpoint, vine vineyard, wall wallpaper, war
warfare, war wartime, ware warehouse, wash washcloth, waste wasteland, waste wastewater, watch watchdog,
watch watchman, water waterfall, water watershed, wave wavelength, wave waveform, way wayside, web
website, web webpage, week weekend, weight weightlifting, well wellbeing, wet wetland, what whatever,
wheel wheelchair, when whenever, whirl whirlpool, white whitewash, white whiteboard, who whoever, whole
wholesale, wide widespread, wild wildlife, wild wildfire, wind windmill, wind windshield, wind windfall,
window windowsill, wine winemaker, wing wingspan, winter wintertime, witch witchcraft, wood woodland, wood
woodworking, word wordplay, work workshop, work workplace, work workflow, world worldwide, world
worldview, worm wormhole, worth worthwhile, wrist wristwatch, wrong wrongdoing, yard yardstick, year
yearbook, zebra zebrafish
"""

# male, female; read in both directions
GENDERS = """
abbot abbess, actor actress, actors actresses, airman airwoman, alderman alderwoman, anchorman
anchorwoman, assemblyman assemblywoman, ballboy ballgirl, baron baroness, boar sow, boy girl, boyfriend
girlfriend, boyfriends girlfriends, boys girls, bridegroom bride, bro sis, brother sister, brothers
sisters, buck doe, bull cow, bulls cows, businessman businesswoman, businessmen businesswomen, cameraman
camerawoman, caveman cavewoman, chairman chairwoman, chairmen chairwomen, clergyman clergywoman, colt
filly, congressman congresswoman, Cornishman Cornishwoman, councilman councilwoman, count countess,
countryman countrywoman, cowboy cowgirl, craftsman craftswoman, dad mom, daddy mommy, dads moms, drake
duck, duke duchess, dukes duchesses, Dutchman Dutchwoman, earl countess, emperor empress, emperors
empresses, enchanter enchantress, Englishman Englishwoman, father mother, fathers mothers, fiancé fiancée,
fisherman fisherwoman, fox vixen, Frenchman Frenchwoman, frontman frontwoman, gander goose, gentleman
lady, gentlemen ladies, giant giantess, god goddess, godfather godmother, gods goddesses, godson
goddaughter, granddad grandma, grandfather grandmother, grandfathers grandmothers, grandpa grandma,
grandson granddaughter, grandsons granddaughters, groom bride, grooms brides, guy gal, guys gals, he she,
heir heiress, hero heroine, heroes heroines, him her, himself herself, horseman horsewoman, host hostess,
hosts hostesses, husband wife, husbands wives, Irishman Irishwoman, king queen, kings queens, lad lass,
landlord landlady, layman laywoman, leopard leopardess, lion lioness, lions lionesses, lord lady, lords
ladies, maharaja maharani, male female, males females, man woman, marquis marchioness, masseur masseuse,
master mistress, men women, merman mermaid, monk nun, monks nuns, monsieur madame, Mr Mrs, nephew niece,
nephews nieces, nobleman noblewoman, ombudsman ombudswoman, papa mama, patriarch matriarch, peacock
peahen, policeman policewoman, policemen policewomen, postman postwoman, priest priestess, priests
priestesses, prince princess, princes princesses, prophet prophetess, ram ewe, rams ewes, rooster hen,
roosters hens, salesman saleswoman, salesmen saleswomen, schoolboy schoolgirl, Scotsman Scotswoman,
serviceman servicewoman, servicemen servicewomen, señor señora, sheikh sheikha, shepherd shepherdess,
signor signora, sir madam, son daughter, sons daughters, sorcerer sorceress, spokesman spokeswoman,
spokesmen spokeswomen, sportsman sportswoman, sportsmen sportswomen, stallion mare, stallions mares,
stepbrother stepsister, stepdad stepmom, stepfather stepmother, stepson stepdaughter, steward stewardess,
stuntman stuntwoman, sultan sultana, superhero superheroine, tiger tigress, tsar tsarina, uncle aunt,
uncles aunts, viscount viscountess, waiter waitress, waiters waitresses, weatherman weatherwoman, Welshman
Welshwoman, widower widow, yachtsman yachtswoman
"""
