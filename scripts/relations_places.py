"""Facts by hand: capitals, languages, workplaces."""

# Left out: countries whose capital is disputed, shared by cities, moving, or named just like the country.
CAPITALS = """
Afghanistan = Kabul, Albania = Tirana, Algeria = Algiers, Andorra = Andorra la Vella, Angola = Luanda,
Antigua and Barbuda = St. John's, Argentina = Buenos Aires, Armenia = Yerevan, Australia = Canberra,
Austria = Vienna, Azerbaijan = Baku, Bahamas = Nassau, Bahrain = Manama, Bangladesh = Dhaka, Barbados =
Bridgetown, Belarus = Minsk, Belgium = Brussels, Belize = Belmopan, Bhutan = Thimphu, Bosnia and
Herzegovina = Sarajevo, Botswana = Gaborone, Brazil = Brasilia, Britain = London, Brunei = Bandar Seri
Begawan, Bulgaria = Sofia, Burkina Faso = Ouagadougou, Cambodia = Phnom Penh, Cameroon = Yaounde, Canada =
Ottawa, Cape Verde = Praia, Central African Republic = Bangui, Chad = N'Djamena, Chile = Santiago, China =
Beijing, Colombia = Bogota, Comoros = Moroni, Costa Rica = San Jose, Croatia = Zagreb, Cuba = Havana,
Cyprus = Nicosia, Czech Republic = Prague, Czechia = Prague, Democratic Republic of the Congo = Kinshasa,
Denmark = Copenhagen, Dominica = Roseau, Dominican Republic = Santo Domingo, East Timor = Dili, Ecuador =
Quito, Egypt = Cairo, El Salvador = San Salvador, England = London, Eritrea = Asmara, Estonia = Tallinn,
Ethiopia = Addis Ababa, Fiji = Suva, Finland = Helsinki, France = Paris, Gabon = Libreville, Gambia =
Banjul, Georgia = Tbilisi, Germany = Berlin, Ghana = Accra, Greece = Athens, Greenland = Nuuk, Grenada =
St. George's, Guatemala = Guatemala City, Guinea = Conakry, Guinea-Bissau = Bissau, Guyana = Georgetown,
Haiti = Port-au-Prince, Holland = Amsterdam, Honduras = Tegucigalpa, Hungary = Budapest, Iceland =
Reykjavik, India = New Delhi, Iran = Tehran, Iraq = Baghdad, Ireland = Dublin, Italy = Rome, Jamaica =
Kingston, Japan = Tokyo, Jordan = Amman, Kazakhstan = Astana, Kenya = Nairobi, Kiribati = South Tarawa,
Kosovo = Pristina, Kuwait = Kuwait City, Kyrgyzstan = Bishkek, Laos = Vientiane, Latvia = Riga, Lebanon =
Beirut, Lesotho = Maseru, Liberia = Monrovia, Libya = Tripoli, Liechtenstein = Vaduz, Lithuania = Vilnius,
Madagascar = Antananarivo, Malawi = Lilongwe, Malaysia = Kuala Lumpur, Maldives = Male, Mali = Bamako,
Malta = Valletta, Marshall Islands = Majuro, Mauritania = Nouakchott, Mauritius = Port Louis, Mexico =
Mexico City, Micronesia = Palikir, Moldova = Chisinau, Mongolia = Ulaanbaatar, Montenegro = Podgorica,
Morocco = Rabat, Mozambique = Maputo, Myanmar = Naypyidaw, Namibia = Windhoek, Nepal = Kathmandu,
Netherlands = Amsterdam, New Zealand = Wellington, Nicaragua = Managua, Niger = Niamey, Nigeria = Abuja,
North Korea = Pyongyang, North Macedonia = Skopje, Northern Ireland = Belfast, Norway = Oslo, Oman =
Muscat, Pakistan = Islamabad, Palau = Ngerulmud, Panama = Panama City, Papua New Guinea = Port Moresby,
Paraguay = Asuncion, Peru = Lima, Philippines = Manila, Poland = Warsaw, Portugal = Lisbon, Qatar = Doha,
Republic of the Congo = Brazzaville, Romania = Bucharest, Russia = Moscow, Rwanda = Kigali, Saint Kitts
and Nevis = Basseterre, Saint Lucia = Castries, Saint Vincent and the Grenadines = Kingstown, Samoa =
Apia, Saudi Arabia = Riyadh, Scotland = Edinburgh, Senegal = Dakar, Serbia = Belgrade, Seychelles =
Victoria, Sierra Leone = Freetown, Slovakia = Bratislava, Slovenia = Ljubljana, Solomon Islands = Honiara,
Somalia = Mogadishu, South Korea = Seoul, South Sudan = Juba, Spain = Madrid, Sudan = Khartoum, Suriname =
Paramaribo, Sweden = Stockholm, Switzerland = Bern, Syria = Damascus, Taiwan = Taipei, Tajikistan =
Dushanbe, Tanzania = Dodoma, Thailand = Bangkok, Togo = Lome, Tonga = Nuku'alofa, Trinidad and Tobago =
Port of Spain, Tunisia = Tunis, Turkey = Ankara, Turkmenistan = Ashgabat, Tuvalu = Funafuti, UK = London,
USA = Washington, Uganda = Kampala, Ukraine = Kyiv, United Arab Emirates = Abu Dhabi, United Kingdom =
London, United States = Washington, Uruguay = Montevideo, Uzbekistan = Tashkent, Vanuatu = Port Vila,
Venezuela = Caracas, Vietnam = Hanoi, Wales = Cardiff, Yemen = Sanaa, Zambia = Lusaka, Zimbabwe = Harare
"""

# language: countries where it is official or the main one
LANGUAGES = """
Afrikaans: South Africa;
Albanian: Albania, Kosovo;
Amharic: Ethiopia;
Arabic: Algeria, Bahrain, Chad, Djibouti, Egypt, Iraq, Jordan, Kuwait, Lebanon, Libya, Mauritania,
Morocco, Oman, Palestine, Qatar, Saudi Arabia, Somalia, Sudan, Syria, Tunisia, United Arab Emirates,
Yemen;
Armenian: Armenia;
Aymara: Bolivia;
Azerbaijani: Azerbaijan;
Belarusian: Belarus;
Bengali: Bangladesh;
Bislama: Vanuatu;
Bosnian: Bosnia, Bosnia and Herzegovina;
Bulgarian: Bulgaria;
Burmese: Myanmar;
Catalan: Andorra;
Chinese: China, Taiwan;
Croatian: Bosnia and Herzegovina, Croatia;
Czech: Czech Republic, Czechia;
Danish: Denmark;
Dari: Afghanistan;
Dhivehi: Maldives;
Dutch: Belgium, Holland, Netherlands, Suriname;
Dzongkha: Bhutan;
English: America, Antigua and Barbuda, Australia, Bahamas, Barbados, Belize, Botswana, Britain, Cameroon,
Canada, Dominica, England, Eswatini, Fiji, Gambia, Ghana, Grenada, Guyana, India, Ireland, Jamaica, Kenya,
Kiribati, Lesotho, Liberia, Malawi, Malta, Marshall Islands, Mauritius, Micronesia, Namibia, New Zealand,
Nigeria, Northern Ireland, Pakistan, Palau, Papua New Guinea, Philippines, Rwanda, Saint Lucia, Samoa,
Scotland, Seychelles, Sierra Leone, Singapore, Solomon Islands, South Africa, South Sudan, Tanzania,
Tonga, Trinidad and Tobago, Uganda, UK, United Kingdom, United States, USA, Vanuatu, Wales, Zambia,
Zimbabwe;
Estonian: Estonia;
Fijian: Fiji;
Filipino: Philippines;
Finnish: Finland;
French: Belgium, Benin, Burundi, Cameroon, Canada, Central African Republic, Chad, Comoros, Democratic
Republic of the Congo, Djibouti, France, Gabon, Guinea, Haiti, Ivory Coast, Luxembourg, Madagascar,
Monaco, Republic of the Congo, Rwanda, Senegal, Seychelles, Switzerland, Togo, Vanuatu;
Gaelic: Scotland;
Georgian: Georgia;
German: Austria, Belgium, Germany, Liechtenstein, Luxembourg, Switzerland;
Greek: Cyprus, Greece;
Greenlandic: Greenland;
Guarani: Paraguay;
Hebrew: Israel;
Hindi: India;
Hungarian: Hungary;
Icelandic: Iceland;
Indonesian: Indonesia;
Irish: Ireland;
Italian: Italy, San Marino, Switzerland;
Japanese: Japan;
Kazakh: Kazakhstan;
Khmer: Cambodia;
Kinyarwanda: Rwanda;
Kirundi: Burundi;
Korean: Korea, North Korea, South Korea;
Kurdish: Iraq;
Kyrgyz: Kyrgyzstan;
Lao: Laos;
Latvian: Latvia;
Lithuanian: Lithuania;
Luxembourgish: Luxembourg;
Macedonian: North Macedonia;
Malagasy: Madagascar;
Malay: Brunei, Malaysia, Singapore;
Maltese: Malta;
Mandarin: China, Singapore, Taiwan;
Maori: New Zealand;
Marshallese: Marshall Islands;
Mongolian: Mongolia;
Montenegrin: Montenegro;
Nepali: Nepal;
Norwegian: Norway;
Palauan: Palau;
Pashto: Afghanistan;
Persian: Iran;
Polish: Poland;
Portuguese: Angola, Brazil, Cape Verde, East Timor, Guinea-Bissau, Mozambique, Portugal, Sao Tome and
Principe;
Quechua: Bolivia, Peru;
Romanian: Moldova, Romania;
Russian: Belarus, Kazakhstan, Kyrgyzstan, Russia;
Samoan: Samoa;
Serbian: Bosnia and Herzegovina, Kosovo, Serbia;
Sesotho: Lesotho;
Setswana: Botswana;
Shona: Zimbabwe;
Sinhala: Sri Lanka;
Slovak: Slovakia;
Slovenian: Slovenia;
Somali: Somalia;
Spanish: Argentina, Bolivia, Chile, Colombia, Costa Rica, Cuba, Dominican Republic, Ecuador, El Salvador,
Equatorial Guinea, Guatemala, Honduras, Mexico, Nicaragua, Panama, Paraguay, Peru, Spain, Uruguay,
Venezuela;
Swahili: Kenya, Tanzania, Uganda;
Swazi: Eswatini;
Swedish: Finland, Sweden;
Tagalog: Philippines;
Tajik: Tajikistan;
Tamil: Sri Lanka;
Tetum: East Timor;
Thai: Thailand;
Tigrinya: Eritrea;
Tongan: Tonga;
Turkish: Cyprus, Turkey;
Turkmen: Turkmenistan;
Ukrainian: Ukraine;
Urdu: Pakistan;
Uzbek: Uzbekistan;
Vietnamese: Vietnam;
Welsh: Wales;
Zulu: South Africa;
"""

# workplace: who works there
WORKPLACES = """
airport: customs officer;
ambulance: paramedic;
aquarium: aquarist;
bakery: baker;
bank: banker, loan officer, teller;
bar: barmaid, barman, bartender;
barbershop: barber;
barracks: soldier;
base: soldier;
beach: lifeguard;
boat: ferryman, fisherman;
bookstore: bookseller;
brewery: brewer;
bus: bus driver;
cafe: barista;
casino: croupier;
cathedral: archbishop, bishop;
cemetery: gravedigger;
church: clergyman, minister, organist, pastor, preacher, priest, vicar;
circus: acrobat, clown, juggler, lion tamer, ringmaster;
city hall: mayor;
classroom: teacher;
clinic: dentist, dermatologist, doctor, nurse, physiotherapist, psychiatrist, psychologist, therapist,
veterinarian;
cockpit: copilot, pilot;
college: professor;
congress: congressman, representative;
construction site: bricklayer, builder, crane operator;
consulate: consul;
convent: nun;
court: attorney, bailiff, barrister, basketball player, clerk, judge, lawyer, magistrate, prosecutor,
stenographer, tennis player;
dairy: dairyman, milkmaid;
distillery: distiller;
dock: stevedore;
embassy: ambassador, diplomat;
factory: assembler, foreman, machinist, welder, worker;
farm: farmer, farmhand;
field: farmer, peasant;
fire station: firefighter;
forest: forester, logger, lumberjack, ranger, woodcutter;
forge: blacksmith, smith;
gallery: curator;
garage: mechanic;
garden: gardener;
greenhouse: horticulturist;
gym: gymnast, trainer;
harbor: harbormaster;
home: homemaker, nanny;
hospital: anesthesiologist, cardiologist, doctor, midwife, neurologist, neurosurgeon, nurse, oncologist,
orderly, pediatrician, physician, psychiatrist, radiologist, surgeon;
hotel: bellboy, concierge, housekeeper, maid, porter, receptionist;
house: butler, housekeeper, maid, servant;
jail: jailer;
kindergarten: kindergarten teacher;
kitchen: chef, cook, dishwasher, pastry chef;
lab: biologist, chemist, scientist, technician;
laboratory: biologist, chemist, geneticist, microbiologist, physicist, researcher, scientist, technician;
library: librarian;
lighthouse: lighthouse keeper;
market: fishmonger, merchant, vendor;
mill: miller;
mine: miner;
monastery: abbot, monk;
morgue: coroner;
mortuary: embalmer, mortician;
mosque: imam, muezzin;
museum: curator;
newspaper: columnist, editor, journalist, reporter;
newsroom: editor, journalist, reporter;
observatory: astronomer;
ocean: diver;
office: accountant, administrator, analyst, architect, clerk, consultant, editor, engineer, executive,
manager, programmer, receptionist, secretary, typist;
orchard: fruit picker;
park: ranger;
parliament: lawmaker, legislator, politician;
pharmacy: pharmacist;
plane: flight attendant, pilot, steward, stewardess;
police station: detective, policeman;
pool: diver, lifeguard, swimmer;
port: docker, longshoreman;
prison: guard, jailer, warden;
pub: barman;
quarry: quarryman;
ranch: cowboy, rancher;
restaurant: busboy, chef, cook, dishwasher, server, sommelier, waiter, waitress;
ring: boxer, wrestler;
rink: skater;
salon: beautician, hairdresser, manicurist, stylist;
sawmill: sawyer;
school: counselor, headmaster, janitor, principal, schoolteacher, teacher;
sea: fisherman, sailor;
senate: senator;
ship: boatswain, captain, sailor, steward;
shipyard: shipbuilder;
shop: baker, barber, butcher, florist, jeweler, mechanic, shopkeeper, tailor;
space: astronaut, cosmonaut;
stadium: athlete, footballer, goalkeeper, quarterback, referee;
stage: actor, ballerina, comedian, dancer, musician, performer, singer;
stock exchange: stockbroker;
store: cashier, grocer, merchant, salesman, saleswoman, shopkeeper;
street: busker, sweeper;
studio: actor, artist, painter, photographer, potter, producer, sculptor;
submarine: submariner;
supermarket: cashier, stocker;
synagogue: cantor, rabbi;
taxi: taxi driver;
theater: actor, actress, director, stagehand, usher;
track: runner, sprinter;
train: conductor;
truck: trucker;
university: academic, dean, lecturer, professor, provost, researcher, scholar;
Vatican: pope;
vineyard: winegrower;
winery: winemaker;
workshop: carpenter, cobbler, craftsman, mechanic, woodworker;
zoo: zookeeper;
"""
