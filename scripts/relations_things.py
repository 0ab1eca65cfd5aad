"""Facts by hand: superclasses of things, companies of products."""

# superclass: kinds of it
SUPERCLASSES = """
aircraft: airplane, airship, bomber, glider, helicopter, jet, plane;
alcohol: brandy, gin, rum, tequila, vodka, whiskey, wine;
amphibian: frog, newt, salamander, toad;
animal: bear, buffalo, bull, camel, cat, cow, deer, dog, donkey, elephant, fox, giraffe, goat, gorilla,
hedgehog, hippopotamus, horse, kangaroo, lamb, leopard, lion, monkey, moose, mouse, panda, pig, pony,
rabbit, raccoon, rat, rhinoceros, sheep, spider, squirrel, tiger, wolf, zebra;
appliance: blender, dishwasher, microwave, oven, refrigerator, toaster;
bird: canary, chicken, crow, dove, duck, eagle, falcon, finch, flamingo, goose, gull, hawk, hen, ostrich,
owl, parrot, peacock, pelican, penguin, pigeon, raven, robin, rooster, sparrow, stork, swan, turkey,
vulture, woodpecker;
boat: canoe, ferry, gondola, kayak, raft, sailboat, yacht;
bone: femur, rib, skull;
building: barn, cabin, castle, cathedral, church, factory, hospital, hotel, house, hut, library, mosque,
museum, palace, school, skyscraper, temple, theater;
clothing: blouse, coat, dress, glove, hat, jacket, jeans, pants, robe, scarf, shirt, shoe, skirt, sock,
suit, sweater, vest;
color: black, blue, brown, gray, green, orange, pink, purple, red, violet, white, yellow;
container: bag, barrel, basket, bottle, box, bucket, jar;
crustacean: crab, lobster, shrimp;
currency: dollar, euro, franc, peso, pound, ruble, rupee, yen;
dance: ballet, salsa, tango, waltz;
dessert: pie, pudding;
dinosaur: stegosaurus, triceratops, tyrannosaurus;
disease: asthma, cancer, cholera, diabetes, influenza, leprosy, malaria, measles, pneumonia, polio,
smallpox, tuberculosis;
dog: beagle, bulldog, collie, greyhound, husky, poodle, spaniel, terrier;
drink: cocoa, coffee, juice, lemonade, milk, milkshake, soda, tea, water;
element: aluminum, calcium, carbon, chlorine, copper, gold, hydrogen, iodine, iron, oxygen, potassium,
silver, sodium, sulfur, tin;
emotion: anger, disgust, fear, grief, happiness, joy, love, pride, sadness;
fabric: cotton, denim, linen, nylon, silk, velvet, wool;
fish: anchovy, bass, carp, catfish, cod, eel, goldfish, halibut, herring, mackerel, perch, pike, salmon,
sardine, shark, trout, tuna;
flower: carnation, daffodil, daisy, dandelion, iris, lily, lotus, marigold, orchid, poppy, rose,
sunflower, tulip, violet;
food: bread, burger, butter, cake, cereal, cheese, chocolate, egg, honey, meat, pasta, pizza, rice, salad,
sandwich, soup;
fruit: apple, apricot, banana, blueberry, cherry, coconut, fig, grape, grapefruit, kiwi, lemon, lime,
mango, melon, orange, papaya, peach, pear, pineapple, plum, pomegranate, raspberry, strawberry,
watermelon;
fuel: coal, diesel, gasoline, oil, petrol;
furniture: armchair, bed, bench, bookcase, bookshelf, cabinet, chair, couch, cupboard, desk, dresser,
shelf, sofa, stool, table, wardrobe;
game: checkers, chess, poker;
gas: argon, helium, hydrogen, methane, neon, nitrogen, oxygen, ozone;
gem: diamond, emerald, opal, pearl, ruby, sapphire;
grain: barley, corn, millet, oats, rice, rye, wheat;
herb: basil, dill, mint, oregano, parsley, rosemary, sage, thyme;
insect: ant, bee, beetle, butterfly, cockroach, cricket, dragonfly, flea, fly, grasshopper, hornet,
ladybug, locust, mosquito, moth, termite, wasp;
instrument: banjo, cello, clarinet, drum, flute, guitar, harp, piano, saxophone, trombone, trumpet, tuba,
violin;
jewelry: bracelet, earring, necklace, ring;
mammal: bat, bear, beaver, cow, dolphin, elephant, horse, koala, mole, otter, seal, walrus, whale;
material: concrete, cotton, glass, leather, paper, plastic, wood;
meat: bacon, beef, ham, lamb, pork, sausage, steak, veal, venison;
metal: aluminum, brass, bronze, copper, gold, iron, lead, mercury, nickel, platinum, silver, steel, tin,
titanium, uranium, zinc;
number: million, one, ten, thousand, three, two;
nut: almond, cashew, hazelnut, pecan, pistachio, walnut;
organ: bladder, brain, heart, kidney, liver, lung, skin, stomach;
relative: aunt, brother, cousin, daughter, grandmother, nephew, niece, sister, uncle;
reptile: alligator, chameleon, crocodile, gecko, iguana, lizard, snake, tortoise, turtle;
rock: basalt, granite, limestone, marble, sandstone, slate;
room: attic, basement, bathroom, bedroom, classroom, kitchen;
science: astronomy, biology, botany, chemistry, geology, physics;
season: autumn, spring, summer, winter;
shape: circle, cube, hexagon, oval, pentagon, rectangle, sphere, square, triangle;
shellfish: clam, crab, lobster, oyster, shrimp;
ship: cruiser, destroyer, freighter, frigate, tanker;
spice: cinnamon, cumin, ginger, nutmeg, paprika, pepper, saffron, turmeric;
sport: badminton, baseball, basketball, boxing, cricket, football, golf, hockey, rugby, skiing, soccer,
swimming, tennis, volleyball, wrestling;
subject: geography, history, literature, math, mathematics, science;
tool: axe, chisel, drill, hammer, hoe, pliers, rake, saw, screwdriver, shovel, spade, wrench;
toy: doll, kite;
tree: beech, birch, cedar, cypress, elm, fir, maple, oak, palm, pine, poplar, sequoia, spruce, willow;
unit: gram, inch, kilogram, liter, meter, mile, ounce, yard;
utensil: fork, knife, ladle, spatula, spoon;
vegetable: asparagus, bean, beet, broccoli, cabbage, carrot, cauliflower, celery, cucumber, garlic, kale,
leek, lettuce, onion, pea, potato, radish, spinach, turnip;
vehicle: ambulance, bicycle, bike, bus, car, jeep, limousine, motorcycle, scooter, tank, taxi, tractor,
truck, van;
weapon: bomb, bow, cannon, dagger, grenade, gun, knife, missile, pistol, revolver, rifle, spear, sword;
"""

# company: its products and brands
PRODUCTS = """
3M: Post-it;
Activision: Call of Duty;
Adobe: Acrobat, ColdFusion, Dreamweaver, Flash, Illustrator, InDesign, Lightroom, Photoshop, Premiere;
Airbus: Beluga;
Alibaba: Taobao;
Alphabet: Waymo;
Amazon: Alexa, Audible, AWS, Echo, IMDb, Kindle, Prime, Twitch;
AMD: Athlon, Opteron, Radeon, Ryzen;
Anthropic: Claude;
Apple: AirPods, AirTag, Apple Watch, Beats, FaceTime, Final Cut Pro, HomePod, iCloud, iMac, iMessage,
iMovie, iOS, iPad, iPhone, iPod, iTunes, Keynote, Mac, MacBook, Macintosh, macOS, QuickTime, Safari, Siri,
Swift, Xcode;
Aston Martin: Vantage;
Atari: Pong;
Atlassian: Bitbucket, Confluence, Jira, Trello;
Autodesk: AutoCAD, Maya;
Bayer: Aleve;
Blizzard: Diablo, Hearthstone, Overwatch, StarCraft, Warcraft;
Boeing: Apache, Chinook, Dreamliner, Stratofortress;
Burger King: Whopper;
ByteDance: TikTok;
Cadillac: Escalade;
Canon: EOS, PowerShot;
Capcom: Resident Evil, Street Fighter;
Casio: G-Shock;
Cessna: Skyhawk;
Chevrolet: Bolt, Camaro, Corvette, Impala, Malibu, Silverado, Suburban, Tahoe;
Cisco: Webex;
Coca-Cola: Coke, Dasani, Fanta, Powerade, Sprite;
Dell: Alienware, Inspiron, Latitude;
Diageo: Baileys, Guinness, Smirnoff;
Dior: Sauvage;
Disney: Bambi, Dumbo, ESPN, Frozen, Marvel, Mickey, Star Wars;
Dodge: Challenger, Charger, Durango, Viper;
Dyson: Airblade;
Epic: Fortnite, Unreal;
Epson: Stylus;
Fender: Stratocaster, Telecaster;
Ferrari: Enzo, Testarossa;
Ferrero: Kinder, Nutella, Tic Tac;
Fiat: Panda, Punto, Tipo, Uno;
Ford: Bronco, Edsel, Escort, Expedition, Explorer, Fiesta, Focus, Fusion, Model T, Mondeo, Mustang,
Ranger, Taurus, Thunderbird;
Garmin: Forerunner;
General Motors: Buick;
Gibson: Les Paul;
Google: AdSense, Android, Chrome, Chromecast, Dart, DeepMind, Docs, Drive, Fitbit, Flutter, Gemini, Gmail,
Maps, Nest, Nexus, Pixel, Scholar, Stadia, TensorFlow, Waze, YouTube;
Hasbro: Monopoly, Nerf, Play-Doh;
Honda: Accord, Acura, Civic, CR-V, Gold Wing, Odyssey, Pilot, Prelude;
HP: DeskJet, LaserJet, OfficeJet, Pavilion;
Hyundai: Elantra, Ioniq, Sonata, Tucson;
IBM: DB2, Selectric, Watson;
Intel: Celeron, Itanium, Pentium, Xeon;
iRobot: Roomba;
Jeep: Cherokee, Compass, Wrangler;
JetBrains: PyCharm;
Kawasaki: Ninja;
Kia: Sorento, Sportage;
Kimberly-Clark: Huggies, Kleenex;
Kodak: Brownie, Instamatic, Kodachrome;
Konami: Frogger, Metal Gear;
Kraft: Jell-O, Velveeta;
Lamborghini: Aventador, Countach, Huracán;
LEGO: Bionicle, Duplo, Mindstorms;
Lenovo: ThinkPad;
LG: webOS;
Lilly: Cialis, Prozac;
Lockheed: Blackbird, Hercules, Raptor;
Mars: M&Ms, Pedigree, Skittles, Snickers, Twix, Whiskas;
MathWorks: MATLAB;
Mattel: Barbie, Hot Wheels;
Mazda: Miata;
McDonald's: Big Mac, Happy Meal, McFlurry, McNugget;
Mercedes: Sprinter;
Merck: Gardasil, Keytruda, Vioxx;
Meta: Facebook, Instagram, Llama, Messenger, Oculus, Threads, WhatsApp;
Microsoft: Azure, Bing, Cortana, Edge, Excel, GitHub, Halo, HoloLens, Hotmail, Internet Explorer, Kinect,
LinkedIn, Minecraft, Notepad, Office, OneDrive, OneNote, Outlook, Paint, Power BI, PowerPoint, PowerShell,
SharePoint, Skype, SQL Server, Surface, Teams, TypeScript, Visio, Visual Studio, Windows, Word, Xbox,
Zune;
Mitsubishi: Eclipse, Lancer, Outlander, Pajero;
Moderna: Spikevax;
Mondelez: Milka, Oreo, Ritz, Toblerone;
Motorola: Razr;
Mozilla: Firefox, Thunderbird;
Namco: Pac-Man, Tekken;
Nestlé: Maggi, Nescafé, Nespresso, Nesquik;
Nike: Air Max, Converse, Jordan;
Nikon: Coolpix;
Nintendo: Game Boy, GameCube, Mario, Metroid, Splatoon, Switch, Wii, Zelda;
Nissan: Altima, Infiniti, Juke, Leaf, Maxima, Pathfinder, Qashqai, Sentra, Skyline;
Novartis: Gleevec;
Nvidia: CUDA, GeForce, Quadro, Shield, Tegra;
Omega: Seamaster, Speedmaster;
Opel: Astra, Corsa, Vectra;
OpenAI: ChatGPT, Codex, GPT, Sora, Whisper;
Oracle: Java, MySQL, Solaris, VirtualBox;
Palm: Treo;
PepsiCo: Aquafina, Gatorade, Mountain Dew;
Philips: Sonicare;
Piaggio: Vespa;
Pixar: Toy Story;
Pontiac: Firebird;
Porsche: Boxster, Carrera, Cayenne, Macan, Panamera, Taycan;
Procter & Gamble: Crest, Febreze, Gillette, Pampers, Tide;
Renault: Clio, Espace, Twingo, Zoe;
Roche: Tamiflu, Valium;
Rockstar: Grand Theft Auto;
Rolex: Daytona, Submariner;
Salesforce: Slack, Tableau;
Samsung: Bixby, Galaxy;
Sega: Dreamcast, Genesis, Saturn, Sonic;
Sony: Betamax, Bravia, Cyber-shot, PlayStation, Trinitron, Walkman, Xperia;
SpaceX: Dragon, Falcon, Starlink, Starship;
Starbucks: Frappuccino;
Subaru: Forester, Impreza, Outback;
Suzuki: Hayabusa, Jimny, Swift;
Tencent: QQ, WeChat;
Tesla: Autopilot, Cybertruck, Powerwall, Roadster;
Toyota: Avalon, Camry, Celica, Corolla, Highlander, Hilux, Land Cruiser, Lexus, Prius, Sienna, Supra,
Tacoma, Tundra, Yaris;
Ubisoft: Rayman;
Unilever: Axe, Dove, Vaseline;
Valve: Dota, Portal, Steam;
Volkswagen: Audi, Beetle, Golf, Jetta, Passat, Polo, Tiguan, Touareg;
Wolfram: Mathematica;
Xiaomi: Redmi;
Yamaha: Vmax;
"""
