// What each map shows: a title, a note, the colour and the words of every head, and what the colours mean.
import { NOT_IMPORTED, isImported, methodWords, relationWords, seedWords, type Atlas, type Contrast, type Effect, type Imported, type Relation, type Task } from "./atlas";
import { PALETTES, UNKNOWN, blend, categoryColours, css, diverging, heat, rgb, type Palette, type Rgb } from "./colour";
import { decimal, percent } from "./dom";
import { OPEN, OVER, SCORES, categoryMaps, categoryNames, categoryWords, count, meanGates, reaches, scoreMap, share, unscored, type Over, type Source } from "./scores";
import type { State } from "./state";

/** What a reader looks at: an atlas, with all that was chosen. */
export interface View {
  readonly atlas: Atlas;
  readonly state: State;
}

/** Colours with names, or a scale from one number to another; `hatched`: what hatched cells mean, if there are any. */
export type Legend = { readonly hatched?: string | undefined } & (
  | { readonly swatches: readonly (readonly [colour: string, text: string])[] }
  | { readonly stops: readonly string[]; readonly from: string; readonly to: string }
);

export interface Shown {
  readonly title: string;
  /** where the rest of the title stands above it */
  readonly short?: string;
  readonly note: string;
  /** as published, does x count layers? */
  readonly layersAcross: boolean;
  /** what the colours depend on: with the same, the same picture */
  readonly key: string;
  readonly colour: (place: number) => Rgb;
  readonly words: (place: number) => string;
  /** heads without a value, which are hatched */
  readonly unknown?: (place: number) => boolean;
  readonly legend: Legend;
}

export const OVER_WORDS: Readonly<Record<Over, string>> = { always: "Always", any: "Any", mean: "Mean" };

export function paletteOf(state: State): Palette {
  return PALETTES[state.colours] as Palette;
}

export function roleLegend(palette: Palette): Legend {
  return {
    swatches: [
      [css(palette.helps), "facilitates"],
      [css(palette.hurts), "interferes"],
      [css(palette.both), "both"],
      [css(palette.neither), "neither"],
    ],
  };
}

/** Facilitation and interference of a task in one picture. */
export function agreement({ atlas, state }: View, task: Task, over: "always" | "any"): Shown {
  const helping = scoreMap(task, "facilitation", over);
  const hurting = scoreMap(task, "interference", over);
  const { threshold, cut } = state;
  const palette = paletteOf(state);
  const at = (map: Float32Array, place: number): number => {
    const value = map[place] ?? NaN;
    return cut && !Number.isNaN(value) ? Number(reaches(value, threshold)) : value;
  };
  const shares = [helping, hurting].map((map) => percent(share(atlas, map, threshold)).replace(" ", "\u00a0"));
  return {
    title: `${task.title} (${OVER_WORDS[over]})`,
    short: OVER_WORDS[over],
    note: `${shares[0]}\u00a0help, ${shares[1]}\u00a0hurt`,
    layersAcross: false,
    key: `${state.colours} ${task.name} ${over} ${cut ? threshold : ""}`,
    colour: (place) => blend(palette, at(helping, place), at(hurting, place)),
    words: (place) => `facilitation ${fixed(helping[place])}, interference ${fixed(hurting[place])}`,
    legend: roleLegend(palette),
  };
}

/** The colours of the categories that some head has, and of those of the atlas. */
export function categoryLegend({ atlas, state }: View, source: Source = "all"): Legend {
  const words = new Set(categoryWords(atlas, state.direction, state.implements, source));
  const colours = [...categoryColours(paletteOf(state), atlas.categories)];
  const names = categoryNames(atlas, source);
  const used = colours.filter(([word]) => words.has(word) || names.includes(word));
  const missing = source === "imported" && ["", ...names].some((name) => atlas.places.some(unscored(atlas, state.direction, name, source)));
  return { swatches: used.map(([word, colour]) => [colour, word || "unclassified"]), hatched: missing ? NOT_IMPORTED : undefined };
}

/** All categories in one picture (no name), or the heads of one. */
export function categories(view: View, name: string, source: Source = "all"): Shown {
  const { atlas, state } = view;
  const unknown = source === "imported" ? unscored(atlas, state.direction, name, source) : (): boolean => false;
  const colours = categoryColours(paletteOf(state), atlas.categories);
  const rgbs = new Map([...colours].map(([word, hex]) => [word, rgb(hex)] as const));
  const words = categoryWords(atlas, state.direction, state.implements, source);
  const map = name ? categoryMaps(atlas, state.direction, state.implements, source).get(name) : null;
  const word = (place: number): string => (map ? (map[place] ? name : "") : (words[place] ?? ""));
  const total = atlas.places.filter((place) => word(place)).length;
  return {
    title: `${name ? name.charAt(0).toUpperCase() + name.slice(1) : "All categories"} (${state.direction})`,
    short: name ? name.charAt(0).toUpperCase() + name.slice(1) : "All categories",
    note: heads(total),
    layersAcross: true,
    key: `${state.colours} ${name} ${state.direction} ${state.implements}`,
    colour: (place) => (unknown(place) ? UNKNOWN : (rgbs.get(word(place)) as Rgb)),
    words: (place) => word(place) || (unknown(place) ? NOT_IMPORTED : "unclassified"),
    unknown,
    legend: categoryLegend(view, source),
  };
}

/** Something that the map of one score can show. */
export interface Choice {
  readonly key: string;
  readonly text: string;
  readonly shown: (state: State) => Shown;
}

const known = new WeakMap<Atlas, Choice[]>();

export function choices(atlas: Atlas): Choice[] {
  const found = known.get(atlas) ?? makeChoices(atlas);
  known.set(atlas, found);
  return found;
}

function makeChoices(atlas: Atlas): Choice[] {
  const scores = atlas.tasks.flatMap((task) =>
    SCORES.flatMap((score) =>
      OVER.map((over): Choice => {
        const title = `${task.title}: ${score}, ${over}`;
        const map = (): Float32Array => scoreMap(task, score, over);
        const shown = (state: State): Shown => heated(atlas, state, map(), title, state.threshold, false);
        return { key: `task|${task.name}|${score}|${over}`, text: title, shown };
      }),
    ),
  );
  const relations = atlas.relations.map((relation): Choice => {
    const measured = atlas.places.some((place) => !Number.isNaN(relation.promote[place]) || !Number.isNaN(relation.suppress[place]));
    const text = `relation: ${relationWords(relation)}${measured ? "" : " (not measured)"}`;
    return { key: `relation|${relation.name}`, text, shown: (state) => ofRelation(atlas, state, relation) };
  });
  const effects = atlas.effects.map((effect): Choice => ({
    key: `effect|${effect.task}|${effect.method}`,
    text: `effect: ${effect.task}, ${methodWords(effect)}`,
    shown: () => ofEffect(atlas, effect),
  }));
  const contrasts = atlas.contrasts.map((contrast): Choice => ({
    key: `contrast|${contrast.name}`,
    text: `contrast: keep ${contrast.retain}, forget ${contrast.forget}`,
    shown: (state) => contrasted({ atlas, state }, contrast),
  }));
  const imported = atlas.imported.map((score): Choice => ({
    key: `imported|${score.name}`,
    text: `imported: ${score.title}`,
    shown: () => ofImported(atlas, score),
  }));
  return [...scores, ...relations, ...effects, ...contrasts, ...imported];
}

export function single({ atlas, state }: View): Shown | null {
  const all = choices(atlas);
  return (all.find((one) => one.key === state.show) ?? all[0])?.shown(state) ?? null;
}

function ofRelation(atlas: Atlas, state: State, relation: Relation): Shown {
  const title = `${relationWords(relation)} (${state.direction})`;
  return heated(atlas, state, relation[state.direction], title, state.implements, true, isImported(relation) ? NOT_IMPORTED : NOT_MEASURED);
}

function heated(atlas: Atlas, state: State, map: Float32Array, title: string, least: number, layersAcross: boolean, missing = NOT_MEASURED): Shown {
  const palette = paletteOf(state);
  const unknown = isNaNIn(map);
  return {
    title,
    note: `${heads(count(atlas, map, least))} from ${least.toFixed(2)}`,
    layersAcross,
    key: `${state.colours} ${state.show} ${title}`,
    colour: (place) => heat(palette, map[place] ?? NaN),
    words: (place) => fixed(map[place], 2, "", missing),
    unknown,
    legend: { stops: palette.heat.map(css), from: "0", to: "1", hatched: atlas.places.some(unknown) ? missing : undefined },
  };
}

const NOT_MEASURED = "not measured";

function isNaNIn(map: Float32Array): (place: number) => boolean {
  return (place) => Number.isNaN(map[place] ?? NaN);
}

/** The mean gate of a contrast over its seeds. */
export function contrasted({ atlas, state }: View, contrast: Contrast): Shown {
  const mean = meanGates(atlas, contrast);
  const palette = paletteOf(state);
  const shut = atlas.places.filter((place) => (mean[place] ?? NaN) < OPEN).length;
  return {
    title: `Keep ${contrast.retain}, forget ${contrast.forget}`,
    note: `mean gate; ${heads(shut)} shut (below ${OPEN})`,
    layersAcross: false,
    key: `${state.colours} contrast ${contrast.name}`,
    colour: (place) => heat(palette, mean[place] ?? NaN),
    words: (place) => `gate ${fixed(mean[place])}`,
    legend: { stops: palette.heat.map(css), from: "0", to: "1" },
  };
}

/** Beyond the strongest 2 % of the heads the colour no longer grows. */
function ofEffect(atlas: Atlas, effect: Effect): Shown {
  const title = `${effect.task}: ${methodWords(effect)}`;
  const unit = effect.unit === "nats" ? "nats of loss" : `unit: ${effect.unit}`;
  const missing = effect.imported ? NOT_IMPORTED : NOT_MEASURED;
  const reading = `${unit}; above 0 the task wants the head${effect.uneven ? `; ${effect.uneven}` : ""}`;
  return signed(atlas, effect.values, title, reading, 3, ` ${effect.unit}`, missing);
}

/** A score under its own name, in a unit that only its author knows. */
export function ofImported(atlas: Atlas, score: Imported): Shown {
  const note = `imported from ${score.from}, not measured here${seedWords(score)}`;
  return signed(atlas, score.values, `${score.title} (imported)`, note, 3, "", NOT_IMPORTED);
}

/** Above and below zero. Beyond the strongest 2 % of the heads the colour no longer grows. */
function signed(atlas: Atlas, values: Float32Array, title: string, note: string, digits: number, unit: string, missing: string): Shown {
  const sizes = atlas.places.map((place) => Math.abs(values[place] ?? NaN)).filter(Number.isFinite);
  sizes.sort((one, other) => one - other);
  const at = 0.98 * (sizes.length - 1); // between two values, as numpy does it: with few heads it is no median
  const below = sizes[Math.floor(at)] ?? 0;
  const most = below + (at % 1) * ((sizes[Math.ceil(at)] ?? below) - below) || 1;
  const unknown = isNaNIn(values);
  return {
    title,
    note,
    layersAcross: false,
    key: title,
    colour: (place) => diverging((values[place] ?? NaN) / most),
    words: (place) => fixed(values[place], digits, unit, missing),
    unknown,
    legend: { ...both(`≤ −${most.toPrecision(2)}`, `≥ +${most.toPrecision(2)}`), hatched: atlas.places.some(unknown) ? missing : undefined },
  };
}

export function difference(view: View): Shown | null {
  const { atlas, state } = view;
  const [one, other] = [state.one, state.other].map((name) => atlas.tasks.find((task) => task.name === name));
  return one && other ? less(state, `${one.title} less ${other.title}`, one, other, `${one.name}|${other.name}`) : null;
}

/** A task in this model less the same task in another one of the same shape. */
export function between({ atlas, state }: View, task: Task, from: Atlas): Shown | null {
  const other = from.tasks.find((one) => one.name === task.name);
  const title = `${task.title}: ${atlas.label} less ${from.label}`;
  return other ? less(state, title, task, other, task.name) : null;
}

function less(state: State, title: string, task: Task, from: Task, key: string): Shown {
  const [one, other] = [task, from].map((each) => scoreMap(each, state.score, "mean")) as [Float32Array, Float32Array];
  return {
    title,
    note: `mean ${state.score}`,
    layersAcross: false,
    key: `${key} ${state.score}`,
    colour: (place) => diverging((one[place] ?? NaN) - (other[place] ?? NaN)),
    words: (place) => `${fixed(one[place])} less ${fixed(other[place])}`,
    legend: both("−1", "+1"),
  };
}

function both(from: string, to: string): Legend {
  return { stops: [-1, 0, 1].map((value) => css(diverging(value))), from, to };
}

function heads(count: number): string {
  return `${count} head${count === 1 ? "" : "s"}`;
}

function fixed(value: number | undefined, digits = 2, unit = "", missing = NOT_MEASURED): string {
  return value === undefined || Number.isNaN(value) ? missing : `${decimal(value, digits)}${unit}`;
}
