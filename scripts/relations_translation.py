"""Translations by hand: English words with their usual French and Spanish ones."""

FRENCH = """
after après, again encore, against contre, agreement accord, all tout, almost presque, alone seul, already
déjà, also aussi, always toujours, analysis analyse, and et, anger colère, answer répondre, answer
réponse, apple pomme, April avril, arm bras, arrive arriver, ask demander, August août, aunt tante, autumn
automne, back dos, bad mauvais, badly mal, bag sac, baker boulanger, bank banque, be être, bear ours,
beautiful beau, beauty beauté, become devenir, bed lit, bee abeille, beer bière, before avant, begin
commencer, beginning début, behind derrière, Belgium Belgique, believe croire, belly ventre, between
entre, bicycle vélo, big grand, bird oiseau, birth naissance, birthday anniversaire, black noir, blood
sang, blue bleu, boat bateau, body corps, bone os, book livre, boss patron, bottle bouteille, bottom fond,
boy garçon, brain cerveau, bread pain, break casser, bridge pont, brother frère, brown brun, build
construire, but mais, butcher boucher, butter beurre, butterfly papillon, buy acheter, by par, cake
gâteau, can pouvoir, car voiture, carrot carotte, carry porter, case cas, castle château, cat chat,
century siècle, chair chaise, change changer, cheese fromage, cherry cerise, chicken poulet, chief chef,
child enfant, children enfants, China Chine, choose choisir, church église, circle cercle, city ville,
clean propre, close fermer, closed fermé, clothes vêtements, cloud nuage, coat manteau, coffee café, cold
froid, color couleur, come venir, common commun, company entreprise, complete complet, cook cuisiner, cook
cuisinier, cotton coton, count compter, country pays, court cour, cow vache, cry pleurer, cup tasse, cut
couper, dance danser, daughter fille, day jour, days jours, dead mort, dear cher, death mort, December
décembre, development développement, die mourir, difficult difficile, dinner dîner, dirty
sale, disease maladie, do faire, doctor médecin, dog chien, door porte, dream rêver, dream rêve, dress
robe, drink boire, drive conduire, dry sec, duck canard, during pendant, each chaque, ear oreille, earth
terre, east est, easy facile, eat manger, egg œuf, eight huit, elephant éléphant, empty vide, end fin,
enemy ennemi, engine moteur, England Angleterre, English anglais, enough assez, enter entrer, evening
soir, exhibition exposition, eye œil, eyes yeux, face visage, fall tomber, false faux, family famille, far
loin, farmer agriculteur, fast rapide, father père, fear peur, February février, feel sentir, field champ,
find trouver, finger doigt, finish finir, fire feu, first premier, fish poisson, five cinq, floor sol,
flower fleur, fly voler, follow suivre, foot pied, for pour, forest forêt, forget oublier, fork
fourchette, four quatre, fox renard, free libre, freedom liberté, French français, Friday vendredi, friend
ami, friends amis, frog grenouille, from de, full plein, game jeu, garden jardin, garlic ail, gas gaz,
German allemand, Germany Allemagne, gift cadeau, girl fille, give donner, glass verre, glasses lunettes,
glove gant, go aller, goat chèvre, god dieu, gold or, good bon, government gouvernement, grape raisin,
grass herbe, gray gris, Greece Grèce, green vert, group groupe, guest invité, hair cheveux, half moitié,
ham jambon, hand main, hands mains, happiness bonheur, happy heureux, hard dur, hat chapeau, have avoir,
he il, head tête, health santé, hear entendre, heart cœur, heavy lourd, hello bonjour, help aider, help
aide, here ici, hide cacher, high haut, his son, his sa, history histoire, holiday vacances, holy saint,
honey miel, hope espérer, hope espoir, horse cheval, hospital hôpital, hot chaud, hour heure, house
maison, how comment, hundred cent, hunger faim, husband mari, I je, ice glace, idea idée, if si, in dans,
in en, increase augmentation, inside dedans, insurance assurance, iron fer, island île, Italian italien,
Italy Italie, January janvier, Japan Japon, job emploi, journey voyage, joy joie, judge juge, juice jus,
July juillet, June juin, keep garder, key clé, kill tuer, king roi, kitchen cuisine, knife couteau, know
savoir, knowledge connaissance, lady dame, lake lac, lamp lampe, land terre, language langue, large grand,
last dernier, laugh rire, law loi, lawyer avocat, leaf feuille, learn apprendre, leave partir, left
gauche, leg jambe, lemon citron, less moins, letter lettre, lie mensonge, life vie, light lumière, like
aimer, line ligne, listen écouter, live vivre, London Londres, look regarder, lose perdre, love amour,
love aimer, low bas, luck chance, lunch déjeuner, mad fou, madam madame, make faire, man homme, many
beaucoup, March mars, market marché, marriage mariage, master maître, May mai, meat viande, member membre,
men hommes, middle milieu, milk lait, mind esprit, minister ministre, Monday lundi, money argent, monkey
singe, month mois, moon lune, more plus, morning matin, mother mère, mountain montagne, mouse souris,
mouth bouche, much beaucoup, music musique, must devoir, my mon, my ma, name nom, near près, neck cou,
neighbor voisin, never jamais, new nouveau, newspaper journal, night nuit, nine neuf, no non, nor ni,
north nord, nose nez, not pas, nothing rien, November novembre, now maintenant, number nombre, October
octobre, of de, often souvent, oil huile, old vieux, on sur, one un, one une, onion oignon, only
seulement, open ouvert, open ouvrir, opportunity occasion, or ou, other autre, our notre, outside dehors,
pain douleur, painter peintre, painting peinture, paper papier, part partie, party fête, pay payer, peace
paix, peach pêche, pear poire, pen stylo, pencil crayon, people peuple, people gens, pepper poivre,
perhaps peut-être, person personne, physics physique, picture image, pig cochon, pink rose, place lieu,
plane avion, plate assiette, play jouer, poor pauvre, power pouvoir, president président, price prix,
priest prêtre, problem problème, put mettre, queen reine, rabbit lapin, rain pluie, read lire, reason
raison, receive recevoir, red rouge, report rapport, return retourner, rice riz, rich riche, right droit,
river rivière, road route, roof toit, run courir, Russia Russie, sad triste, sadness tristesse, salt sel,
same même, sand sable, Saturday samedi, say dire, school école, sea mer, search chercher, second deuxième,
see voir, sell vendre, send envoyer, sense sens, September septembre, seven sept, several plusieurs, she
elle, sheep mouton, ship navire, shirt chemise, shoe chaussure, shop magasin, short court, show montrer,
show spectacle, sick malade, side côté, silk soie, silver argent, since depuis, sing chanter, singer
chanteur, sir monsieur, sister sœur, skin peau, skirt jupe, sky ciel, sleep dormir, sleep sommeil, slow
lent, small petit, smile sourire, snake serpent, snow neige, society société, soft doux, soldier soldat,
some quelques, son fils, song chanson, soul âme, soup soupe, south sud, Spain Espagne, Spanish espagnol,
speak parler, spider araignée, spirit esprit, spoon cuillère, spring printemps, square carré, star étoile,
state état, stay rester, steel acier, still encore, stomach estomac, stone pierre, stop arrêter, storm
tempête, story histoire, strange étrange, strawberry fraise, street rue, strength force, strong fort,
student étudiant, such tel, sugar sucre, summer été, sun soleil, Sunday dimanche, swim nager, system
système, take prendre, tall grand, tea thé, teach enseigner, teacher professeur, teeth dents, ten dix,
thanks merci, that cela, that que, the le, the la, the les, their leur, then puis, there là, they ils,
thief voleur, thing chose, think penser, thirst soif, thirty trente, this ce, thought pensée, thousand
mille, three trois, throw jeter, Thursday jeudi, thus ainsi, time temps, tired fatigué, to à, today
aujourd'hui, together ensemble, tomato tomate, tomorrow demain, tongue langue, too trop, tooth dent, touch
toucher, towards vers, tower tour, toy jouet, travel voyager, tree arbre, true vrai, truth vérité, Tuesday
mardi, twenty vingt, two deux, uncle oncle, under sous, understand comprendre, universe univers, use
utiliser, vegetable légume, very très, voice voix, wait attendre, walk marcher, wall mur, want vouloir,
war guerre, wash laver, water eau, we nous, weak faible, weather temps, Wednesday mercredi, week semaine,
well bien, west ouest, wet mouillé, what quoi, wheel roue, when quand, where où, white blanc, who qui, why
pourquoi, wife épouse, wife femme, win gagner, wind vent, window fenêtre, wine vin, winter hiver, wire
fil, with avec, without sans, wolf loup, woman femme, women femmes, wood bois, wool laine, word mot, words
mots, work travail, work travailler, worker ouvrier, world monde, write écrire, writer écrivain, year
année, years ans, yellow jaune, yes oui, yesterday hier, you vous, you tu, young jeune, your votre
"""

SPANISH = """
academy academia, after después, afternoon tarde, against contra, air aire, alive vivo, all todo, almost
casi, alone solo, already ya, also también, always siempre, and y, angel ángel, anger ira, answer
responder, answer respuesta, apple manzana, April abril, arm brazo, arrive llegar, art arte, ask
preguntar, August agosto, aunt tía, autumn otoño, back espalda, bad malo, badly mal, bag bolsa, baker
panadero, bank banco, be ser, beach playa, bear oso, beautiful hermoso, beauty belleza, because porque,
bed cama, bee abeja, beer cerveza, before antes, begin empezar, beginning principio, behind detrás,
Belgium Bélgica, believe creer, belly vientre, between entre, bicycle bicicleta, big grande, bird pájaro,
birth nacimiento, birthday cumpleaños, bitter amargo, blood sangre, blue azul, boat barco,
body cuerpo, bone hueso, book libro, books libros, bottle botella, boy chico, brain cerebro, brave
valiente, bread pan, break romper, breakfast desayuno, bridge puente, brother hermano, brown marrón, build
construir, bull toro, bus autobús, but pero, butcher carnicero, butter mantequilla, butterfly mariposa,
buy comprar, by por, cake pastel, can poder, car coche, carrot zanahoria, carry llevar, castle castillo,
cat gato, century siglo, chair silla, change cambiar, channel canal, cheese queso, cherry cereza, chicken
pollo, chief jefe, child niño, children niños, choose elegir, church iglesia, circle círculo, city ciudad,
clean limpio, close cerrar, closed cerrado, clothes ropa, cloud nube, coast costa, coat abrigo, coffee
café, cold frío, come venir, company empresa, cook cocinar, cotton algodón, count contar, country país,
court corte, court tribunal, cow vaca, cross cruz, crown corona, cry llorar, cup taza, current actual, cut
cortar, dance bailar, data datos, daughter hija, day día, dead muerto, death muerte, December diciembre,
deep profundo, desert desierto, development desarrollo, devil diablo, die morir, difficult difícil, dinner
cena, dirty sucio, disease enfermedad, do hacer, doctor médico, dog perro, door puerta, dove paloma, dream
soñar, dream sueño, dress vestido, drink beber, drive conducir, driver conductor, dry seco, duck pato,
during durante, each cada, ear oreja, earth tierra, east este, easy fácil, eat comer, egg huevo, eight
ocho, elephant elefante, eleven once, empty vacío, end fin, enemy enemigo, England Inglaterra, English
inglés, enter entrar, every cada, everything todo, eye ojo, eyes ojos, face cara, faith fe, fall caer,
false falso, family familia, far lejos, farmer agricultor, fashion moda, fast rápido, fat gordo, father
padre, fear miedo, February febrero, feel sentir, feet pies, field campo, find encontrar, finger dedo,
finish terminar, fire fuego, first primero, first primer, fish pescado, five cinco, floor suelo, flower
flor, fly volar, follow seguir, foot pie, for para, forest bosque, forget olvidar, fork tenedor, four
cuatro, fox zorro, France Francia, free libre, freedom libertad, French francés, Friday viernes, friend
amigo, friends amigos, frog rana, from de, fruit fruta, full lleno, game juego, garden jardín, garlic ajo,
German alemán, Germany Alemania, gift regalo, girl chica, give dar, glass vidrio, glasses gafas, glove
guante, go ir, goal meta, goat cabra, god dios, gold oro, golden dorado, good bueno, goodbye adiós,
government gobierno, grape uva, grass hierba, gray gris, great gran, greater mayor, Greece Grecia, green
verde, group grupo, guest invitado, hair pelo, half mitad, ham jamón, hand mano, hands manos, happiness
felicidad, happy feliz, hard duro, hat sombrero, have tener, he él, head cabeza, health salud, hear oír,
heart corazón, heavy pesado, hello hola, help ayudar, here aquí, hide esconder, high alto, hill colina,
his su, history historia, holy santo, honey miel, hope esperar, hope esperanza, horse caballo, hot
caliente, hour hora, house casa, houses casas, hundred cien, hunger hambre, husband marido, I yo, ice
hielo, if si, in en, inside dentro, iron hierro, island isla, Italian italiano, Italy Italia, January
enero, Japan Japón, job trabajo, journey viaje, joy alegría, judge juez, juice jugo, July julio, June
junio, justice justicia, keep guardar, key llave, kill matar, king rey, kitchen cocina, knife cuchillo,
know saber, knowledge conocimiento, lady dama, lake lago, lamp lámpara, language idioma, large grande,
last último, laugh reír, law ley, lawyer abogado, leaf hoja, learn aprender, leave salir, left izquierda,
leg pierna, lemon limón, less menos, letter carta, lie mentira, life vida, light luz, likely probable,
line línea, lion león, listen escuchar, live vivir, London Londres, long largo, look mirar, lose perder,
love amor, love amar, low bajo, lower inferior, luck suerte, lunch almuerzo, madam señora, main principal,
make hacer, man hombre, many muchos, March marzo, market mercado, marriage matrimonio, master maestro, May
mayo, meat carne, member miembro, men hombres, middle medio, military militar, milk leche, mill molino,
mind mente, minister ministro, mistake error, Monday lunes, money dinero, monkey mono, month mes, moon
luna, more más, morning mañana, mother madre, mountain montaña, mouse ratón, mouth boca, much mucho, music
música, must deber, my mi, my mis, name nombre, nation nación, near cerca, neck cuello, neighbor vecino,
network red, never nunca, new nuevo, newspaper periódico, night noche, nine nueve, nor ni, north norte,
nose nariz, nothing nada, November noviembre, now ahora, number número, October octubre, of de, oil
aceite, old viejo, on sobre, one uno, one un, one una, onion cebolla, open abierto, open abrir, or o,
orange naranja, other otro, our nuestro, outside fuera, page página, pain dolor, painter pintor, painting
pintura, pair par, paper papel, part parte, party fiesta, party partido, pay pagar, peace paz, peach
melocotón, pear pera, pencil lápiz, people gente, people pueblo, pepper pimienta, perhaps quizás, person
persona, picture imagen, pig cerdo, pink rosa, place lugar, plane avión, plate plato, play jugar, poor
pobre, port puerto, potato patata, power poder, president presidente, previous anterior, price precio,
priest sacerdote, prince príncipe, problem problema, pure puro, put poner, queen reina, question pregunta,
rabbit conejo, rain lluvia, read leer, reason razón, receive recibir, red rojo, return volver, rice arroz,
rich rico, right derecho, rise subir, river río, road camino, roof techo, room habitación, rose rosa,
round redondo, royal real, run correr, Russia Rusia, sad triste, sadness tristeza, saint santo, salt sal,
same mismo, sand arena, Saturday sábado, sauce salsa, say decir, school escuela, science ciencia, sea mar,
search buscar, second segundo, see ver, sell vender, send enviar, sensitive sensible, September
septiembre, service servicio, seven siete, several varios, she ella, sheep oveja, ship barco, shirt
camisa, shoe zapato, shop tienda, short corto, show mostrar, sick enfermo, side lado, silk seda, silver
plata, since desde, sing cantar, singer cantante, sir señor, sister hermana, six seis, skin piel, skirt
falda, sky cielo, sleep dormir, slow lento, small pequeño, smile sonreír, snake serpiente, snow nieve, so
tan, society sociedad, soft suave, soldier soldado, some algunos, something algo, son hijo, song canción,
soul alma, soup sopa, sour agrio, south sur, Spain España, Spanish español, speak hablar, spider araña,
spirit espíritu, spoon cuchara, spring primavera, square cuadrado, square plaza, staff personal, star
estrella, state estado, steel acero, still todavía, stomach estómago, stone piedra, stop parar, storm
tormenta, story cuento, strawberry fresa, street calle, strength fuerza, strong fuerte, student
estudiante, such tal, sugar azúcar, summer verano, sun sol, Sunday domingo, sweet dulce, swim nadar,
system sistema, table mesa, take tomar, tall alto, tea té, teach enseñar, teacher profesor, teeth dientes,
ten diez, thanks gracias, that ese, that que, the el, the la, the los, their su, then entonces, there
allí, they ellos, thief ladrón, thin delgado, thing cosa, think pensar, thirst sed, thirty treinta, this
este, thought pensamiento, thousand mil, three tres, throw lanzar, Thursday jueves, tiger tigre, time
tiempo, tired cansado, to a, today hoy, together juntos, tomato tomate, tomorrow mañana, tongue lengua,
too demasiado, tooth diente, touch tocar, towards hacia, tower torre, toy juguete, train tren, travel
viajar, tree árbol, true verdadero, truth verdad, Tuesday martes, twenty veinte, two dos, uncle tío, under
bajo, understand entender, union unión, until hasta, upper superior, use usar, valley valle, value valor,
vegetable verdura, very muy, village pueblo, voice voz, wait esperar, walk caminar, wall pared, want
querer, war guerra, wash lavar, water agua, we nosotros, weak débil, weather tiempo, Wednesday miércoles,
week semana, well bien, west oeste, wet mojado, wheel rueda, when cuando, where donde, white blanco, who
quien, wide ancho, wife esposa, win ganar, wind viento, window ventana, wine vino, winter invierno, with
con, without sin, wolf lobo, woman mujer, women mujeres, wood madera, wool lana, word palabra, words
palabras, work trabajo, work trabajar, worker trabajador, workshop taller, world mundo, write escribir,
writer escritor, year año, yellow amarillo, yes sí, yesterday ayer, young joven, your tu, zone zona
"""
