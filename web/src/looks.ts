// What each map shows: a title, a note, the colour and the words of every head, and what the colours mean.
import { relationWords, type Atlas, type Effect, type Relation, type Task } from "./atlas";
import { PALETTES, blend, categoryColours, css, diverging, heat, rgb, type Palette, type Rgb } from "./colour";
import { decimal, percent } from "./dom";
import { OVER, SCORES, categoryMaps, categoryWords, count, reaches, scoreMap, share, type Over } from "./scores";
import type { State } from "./state";

/** What a reader looks at: an atlas, with all that was chosen. */
export interface View {
  readonly atlas: Atlas;
  readonly state: State;
}

/** Colours with names, or a scale from one number to another. */
export type Legend =
  | { readonly swatches: readonly (readonly [colour: string, text: string])[] }
  | { readonly stops: readonly string[]; readonly from: string; readonly to: string };

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
export function categoryLegend({ atlas, state }: View): Legend {
  const words = new Set(categoryWords(atlas, state.direction, state.implements));
  const colours = [...categoryColours(paletteOf(state), atlas.categories)];
  const used = colours.filter(([word]) => words.has(word) || atlas.categories.includes(word));
  return { swatches: used.map(([word, colour]) => [colour, word || "unclassified"]) };
}

/** All categories in one picture (no name), or the heads of one. */
export function categories(view: View, name: string): Shown {
  const { atlas, state } = view;
  const colours = categoryColours(paletteOf(state), atlas.categories);
  const rgbs = new Map([...colours].map(([word, hex]) => [word, rgb(hex)] as const));
  const words = categoryWords(atlas, state.direction, state.implements);
  const map = name ? categoryMaps(atlas, state.direction, state.implements).get(name) : null;
  const word = (place: number): string => (map ? (map[place] ? name : "") : (words[place] ?? ""));
  const total = atlas.places.filter((place) => word(place)).length;
  return {
    title: `${name ? name.charAt(0).toUpperCase() + name.slice(1) : "All categories"} (${state.direction})`,
    short: name ? name.charAt(0).toUpperCase() + name.slice(1) : "All categories",
    note: heads(total),
    layersAcross: true,
    key: `${state.colours} ${name} ${state.direction} ${state.implements}`,
    colour: (place) => rgbs.get(word(place)) as Rgb,
    words: (place) => word(place) || "unclassified",
    legend: categoryLegend(view),
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
    text: `effect: ${effect.task}, ${effect.method}`,
    shown: () => ofEffect(atlas, effect),
  }));
  return [...scores, ...relations, ...effects];
}

export function single({ atlas, state }: View): Shown | null {
  const all = choices(atlas);
  return (all.find((one) => one.key === state.show) ?? all[0])?.shown(state) ?? null;
}

function ofRelation(atlas: Atlas, state: State, relation: Relation): Shown {
  const title = `${relationWords(relation)} (${state.direction})`;
  return heated(atlas, state, relation[state.direction], title, state.implements, true);
}

function heated(atlas: Atlas, state: State, map: Float32Array, title: string, least: number, layersAcross: boolean): Shown {
  const palette = paletteOf(state);
  return {
    title,
    note: `${heads(count(atlas, map, least))} from ${least.toFixed(2)}`,
    layersAcross,
    key: `${state.colours} ${state.show} ${title}`,
    colour: (place) => heat(palette, map[place] ?? NaN),
    words: (place) => fixed(map[place]),
    legend: { stops: palette.heat.map(css), from: "0", to: "1" },
  };
}

/** Beyond the strongest 2 % of the heads the colour no longer grows. */
function ofEffect(atlas: Atlas, effect: Effect): Shown {
  const sizes = atlas.places.map((place) => Math.abs(effect.values[place] ?? NaN)).filter(Number.isFinite);
  sizes.sort((one, other) => one - other);
  const most = sizes[Math.floor(0.98 * (sizes.length - 1))] || 1;
  return {
    title: `${effect.task}: ${effect.method}`,
    note: "nats of loss; above 0 the task wants the head",
    layersAcross: false,
    key: `${effect.task} ${effect.method}`,
    colour: (place) => diverging((effect.values[place] ?? NaN) / most),
    words: (place) => fixed(effect.values[place], 3, " nats"),
    legend: both(`≤ −${most.toPrecision(2)}`, `≥ +${most.toPrecision(2)}`),
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

function fixed(value: number | undefined, digits = 2, unit = ""): string {
  return value === undefined || Number.isNaN(value) ? "not measured" : `${decimal(value, digits)}${unit}`;
}
