"""Word lists by hand: verbs, nouns, adjectives, numbers, the calendar, and nouns by their pronoun."""

# Left out: verbs whose past tense is spelt like the verb, or that have two usual past tenses.
VERBS = """
abandon accept access accompany accuse achieve acquire act adapt add address adjust admire admit adopt
advance advise affect afford agree aid aim allow alter amaze amuse analyze announce annoy answer
anticipate apologize appear apply appoint appreciate approach approve argue arise arrange arrest arrive
ask assemble assess assign assist associate assume assure attach attack attain attempt attend attract
avoid award bake balance ban base become beg begin behave believe belong bend benefit bind bite blame
bleed bless block blow boil book boost borrow bother bounce break breathe breed bring brush build burn
bury buy calculate call calm cancel capture care carry carve catch cause cease celebrate challenge change
charge chase chat check cheer chew choose claim clarify classify clean clear climb close coach collapse
collect combine come comfort command comment commit communicate compare compete compile complain complete
compose conceive concentrate concern conclude conduct confess confirm confuse connect conquer consider
consist construct consult consume contact contain continue contribute control convert convey convince cook
cool cope copy correct count cover crash crawl create creep criticize cross cry cultivate cure damage
dance deal decide declare decline decorate decrease defeat defend define delay delete deliver demand
demonstrate deny depart depend deploy derive descend describe deserve design desire destroy detect
determine develop devote die differ dig disagree disappear discover discuss display distinguish distribute
divide do document donate drag draw dream dress drink drive drop drown dry earn eat educate elect
eliminate embrace emerge emphasize employ enable encounter encourage end endure engage enhance enjoy
ensure enter entertain equip escape establish estimate evaluate evolve examine exceed exchange excite
exclude execute exercise exist expand expect experience explain explode explore export expose express
extend extract face fail fall favor fear feature feed feel fight fill film find finish fire fix flash flee
float flow fly focus fold follow force forget forgive form frame freeze fry fulfill function fund gain
gather generate get give go govern grab grant grasp greet grind grow guarantee guard guess guide handle
hang happen harm hate haunt have head heal hear heat help hesitate hide highlight hire hold honor hope
hunt hurry identify ignore illustrate imagine implement imply import impose impress improve include
incorporate increase indicate influence inform inherit injure insist inspect inspire install instruct
integrate intend interpret introduce invade invent invest investigate invite involve isolate issue join
judge jump justify keep kick kill kiss knock know label lack land last laugh launch lay lead lean learn
leave lend lift light like limit link listen live load locate lock look lose love lower maintain make
manage manufacture march mark marry master match matter mean measure meet melt mention merge mind miss mix
modify monitor motivate move multiply name need negotiate note notice obtain occupy occur offer open
operate oppose order organize overcome owe own pack paint park participate pass pause pay perceive perform
permit persuade pick place plan plant play please point poison pour practice praise pray predict prefer
prepare present preserve press pretend prevent print proceed process produce promise promote prompt
propose protect prove provide publish pull punish purchase pursue push qualify question race raise range
reach react realize receive recognize recommend record recover reduce refer reflect refuse regard reject
relate relax release rely remain remember remind remove rent repair repeat replace reply report represent
request require rescue resemble resist resolve respond rest restore restrict result retain retire return
reveal review revise reward ride ring rise risk roll rub ruin rule run rush save say scare score scream
search secure see seek seem seize select sell send separate serve settle sew shake shape share shift shine
shoot shout show shrink sign signal sing sink sit sleep slide slip smell smile smoke solve sort speak
specify spell spend spin sponsor spring stand stare start state stay steal step stick stimulate stop store
strengthen stress stretch strike struggle study submit succeed suffer suggest supply support suppose
surprise surround survive suspect swallow sweep swim swing switch take talk target taste teach tear tell
tend test thank think threaten throw tie touch trace track trade train transfer transform translate
transmit transport travel treat trigger trust try turn type understand unite update upgrade urge use
utilize vary view violate visit vote wait wake walk want warn wash waste watch wave weaken wear weigh
welcome whisper win wind wipe wish withdraw wonder work worry wrap write yield
"""

# Left out: nouns whose plural is spelt like the singular, and nouns seldom seen in the plural.
NOUNS = """
accident account ache action activity actor adult age agency agent aim airline airport album analysis
ancestor angel angle animal ankle answer apple approach area argument arm army arrow article artist aspect
asset athlete attack attempt attitude audience author baby bag ball balloon banana band bank barrel
barrier base basis basket bat battery battle beach beam bean bear beast bed bee belief bell belt bench
benefit bicycle bird birthday bishop blade blanket block board boat body bomb bone book boot border bottle
bowl box boy brain branch brand bridge brother brush bubble bucket budget bug building bullet bus bush
business button cabin cable cake calendar camera camp campaign candle cap captain car card career carpet
case castle cat category cause cave cell center century ceremony chain chair champion chance change
channel chapter charge chart chef chemical chicken chief child choice church circle citizen city claim
class client cliff clock cloud club clue coach coast coat code coin college color column comment company
computer concept concert conflict contract cookie corner cost country couple course court cousin cow
creature crime crisis crop crowd crown culture cup curve customer cycle date daughter day deal decade
decision degree desert desk detail device diamond diary disaster disease dish doctor dog doll dollar
dolphin door dragon drawing dream dress drink driver drop drug drum duck duty eagle ear edge editor effect
effort egg election element elephant email emotion employee enemy engine engineer entry episode error
essay event example exercise expert eye face fact factor factory family fan farm farmer father feather
feature fee feeling fence festival field fight figure file film finger fire flag flame flight floor flower
fly folder foot force forest fork form fox frame friend frog fruit function game garden gate gene
gentleman giant gift girl glass glove goal goat god goose grade grape graph group guard guest guide guitar
gun guy habit hall hand harbor hat hawk head heart hero hill hobby hole holiday horse hospital hotel hour
house human husband hypothesis idea image incident industry injury insect instance island issue item
jacket job joke journal journey judge key kid king kingdom kitchen knee knife knight label lady lake lamp
language laptop law lawyer layer leader leaf league leg lesson letter level library license lie life light
limit line lion lip list location lock loss lover machine magazine man manager map mark market mask match
material matter meal meaning measure meeting member memory message metal method mile mind minister minute
mirror mistake mixture model moment monkey month moon mother mountain mouse mouth movement movie muscle
museum name nation neck need neighbor nerve nest network night nose note novel number nurse object ocean
offer office officer onion opera opinion orange organ origin owner package page painting pair palace paper
parent park part partner party path patient pattern payment peach pen pencil period phase phenomenon phone
photo phrase picture piece pig pilot pipe place plan plane planet plant plate player poem poet point
policy pond pool port position post pot potato predator price priest prince prison prize problem process
product program project promise property proposal protein province queen question rabbit race radio radius
rat reader reason recipe record region relation report republic request resource response result reward
rider rifle right ring risk rival river road robot rock role roof room root rope rose route row rule
sailor salad sample scale scarf scene schedule school score screen sea season seat second secret section
sector seed sentence servant service session shadow shape shark shelf shell ship shirt shoe shop shot
shoulder show side sign signal singer sister site skill skirt slave smile snake society sock soldier
solution son song soul sound source speaker speech spider spirit sport spot spy square stage stair star
state station statue step stone store storm story stranger strategy stream street string student study
subject suit supplier surface surgeon survey sword symbol symptom table tail tale talent target task tax
teacher team temple tenant term test text theme theory thesis thief thing thought threat throat ticket tie
tiger title toe tomato tone tongue tool tooth topic tour tourist towel tower town toy track trail train
treaty tree trend trial tribe trick trip truck tube tunnel turtle twin type union unit user valley value
variable vehicle version vessel victim video view village virus visitor voice volcano vote voter wage
wagon wall war warrior watch wave way weapon wedding week whale wheel wife window wing winner wire witness
wolf woman word worker world worm wound writer yard year zone
"""

# Only adjectives that usually take -er and -est.
ADJECTIVES = """
angry bald big black bold brave brief bright broad bumpy busy calm cheap chilly clean clear clever close
cloudy clumsy coarse cold cool costly cozy crazy creamy creepy crisp crude crunchy curly cute damp dark
deadly dear deep dense dirty dry dull dumb dusty early easy empty faint fair fancy fast fat feeble few
fierce filthy fine firm fit flat fluffy foggy fond fresh friendly full funny fuzzy gentle glad gloomy
grand grave gray greasy great greedy green grim guilty hairy handy happy hard hardy harsh hasty healthy
heavy high hilly hot huge humble hungry icy juicy keen kind large late lazy lean light likely lively lofty
lonely long loose loud lovely low lucky mad mean mellow messy mighty mild moist muddy narrow nasty near
neat new nice noble noisy odd oily old pale plain plump poor pretty proud pure quick quiet rainy rare
ready red rich ripe risky rocky rosy rough round rude rusty sad safe salty sandy scary shaggy shallow
sharp shiny short shy sick silly simple skinny sleepy slight slim slimy slow small smart smelly smoky
smooth sneaky snowy soft soggy soon sore sorry sour spicy steady steep stern sticky stiff stormy strange
strict strong sturdy subtle sunny sure sweet swift tall tame tasty tense thick thin thirsty tidy tight
tiny tough tricky ugly unhappy vast warm wary wavy weak wealthy weary weird wet white wide wild windy wise
worthy young
"""

# Irregular ones, which no rule gives.
COMPARATIVES = """
bad worse, badly worse, far farther, far further, free freer, good better, ill worse, little less, many
more, much more, true truer, vague vaguer, well better
"""

SUPERLATIVES = """
bad worst, badly worst, far farthest, far furthest, free freest, good best, little least, many most, much
most, true truest, vague vaguest, well best
"""

# zero to nineteen, then the tens
SMALL_NUMBERS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen
"""

TENS = """
twenty thirty forty fifty sixty seventy eighty ninety
"""

MONTHS = """
January February March April May June July August September October November December
"""

DAYS = """
Monday Tuesday Wednesday Thursday Friday Saturday Sunday
"""

# pronoun: nouns and given names it stands for
PRONOUNS = """
he: abbot, Adam, Albert, Andrew, Anthony, Arthur, bachelor, baron, batsman, boy, boyfriend, Brian,
bridegroom, brother, brother-in-law, businessman, Carl, chairman, Charles, clergyman, congressman, cowboy,
craftsman, dad, daddy, Daniel, David, duke, Edward, emperor, Englishman, Eric, father, father-in-law,
fireman, fisherman, Frank, Frenchman, Gary, gentleman, George, godfather, godson, grandfather, grandpa,
grandson, groom, guy, Henry, horseman, husband, Irishman, Jack, James, Jason, John, Joseph, Kenneth,
Kevin, king, lad, Larry, lord, male, man, Mark, Matthew, Michael, monk, nephew, nobleman, papa, Paul,
Peter, Philip, policeman, pope, postman, prince, Richard, Robert, Roger, salesman, Scott, Simon, sir, son,
son-in-law, spokesman, statesman, stepbrother, stepfather, Stephen, stepson, Steven, sultan, Thomas,
Timothy, tsar, uncle, waiter, widower, William, wizard;
it: air, answer, bag, bed, bicycle, boat, book, bottle, box, brain, bread, bridge, building, bus, cake,
camera, car, castle, chair, church, city, clock, coat, coffee, coin, company, computer, cup, decision,
desert, desk, disease, door, economy, engine, field, film, fire, floor, flower, forest, freedom, game,
garden, gold, government, guitar, gun, hat, heart, hospital, hotel, house, ice, idea, industry, internet,
iron, island, kitchen, knife, knowledge, lake, lamp, language, law, leaf, letter, library, machine, map,
market, meal, milk, money, moon, mountain, movie, museum, music, newspaper, number, ocean, office,
organization, painting, paper, peace, pencil, phone, piano, picture, plan, plane, planet, plant, plate,
poem, problem, question, radio, reason, river, road, rock, roof, rule, school, ship, shirt, shoe, snow,
software, song, star, stone, storm, story, street, sword, table, tea, television, theory, ticket, tower,
town, train, tree, truck, university, village, virus, wall, war, water, weather, wheel, wind, window,
word;
she: abbess, actress, Alice, Amy, Anna, aunt, ballerina, Barbara, baroness, Betty, bride, businesswoman,
Carol, Catherine, chairwoman, Charlotte, congresswoman, countess, daughter, daughter-in-law, Deborah,
Donna, Dorothy, duchess, Elizabeth, Emily, Emma, empress, female, girl, girlfriend, goddess, godmother,
granddaughter, grandma, grandmother, heiress, Helen, heroine, hostess, housewife, Jane, Jennifer, Jessica,
Julia, Karen, Kate, Kimberly, lady, landlady, Laura, Linda, Lisa, madam, maid, mama, Margaret, Maria,
Mary, Michelle, mistress, mom, mommy, mother, mother-in-law, mum, Nancy, niece, noblewoman, nun, Patricia,
policewoman, priestess, princess, queen, Rachel, Rebecca, Rose, Ruth, saleswoman, Sandra, Sarah,
schoolgirl, Sharon, sister, sister-in-law, sorceress, spokeswoman, stepdaughter, stepmother, stepsister,
stewardess, Susan, tsarina, Victoria, waitress, widow, wife, witch, woman;
they: adults, animals, answers, ants, apples, artists, babies, bananas, bees, birds, boats, books, boots,
boys, bridges, brothers, buildings, cars, cats, chairs, children, churches, cities, citizens, clothes,
computers, cookies, countries, couples, cousins, cows, customers, doctors, dogs, doors, eggs, elephants,
employees, families, fans, farmers, films, flowers, friends, fruits, games, girls, gloves, grandparents,
guests, horses, hospitals, houses, ideas, insects, islands, kids, languages, laws, lawyers, leaders,
leaves, letters, lions, machines, members, men, mountains, movies, neighbors, numbers, nurses, oranges,
parents, passengers, patients, people, phones, pigs, planes, planets, plants, players, politicians,
potatoes, prisoners, problems, questions, rivers, roads, rocks, rules, schools, scientists, ships, shoes,
siblings, sisters, snakes, soldiers, songs, stars, stones, stories, streets, students, tables, teachers,
teams, teenagers, tools, tourists, towns, trains, trees, trucks, twins, vegetables, victims, villages,
voters, walls, whales, windows, wolves, women, words, workers, writers;
"""
