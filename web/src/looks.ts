// What each map shows: a title, a note, the colour and the words of every head, and what the colours mean.
import type { Atlas, Task } from "./atlas";
import { PALETTES, blend, categoryColours, css, diverging, heat, rgb, type Palette, type Rgb } from "./colour";
import { percent } from "./dom";
import { OVER, SCORES, categoryMaps, categoryWords, count, scoreMap, share, type Over, type Score } from "./scores";
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
      [css(palette.both), "both, in different seeds"],
      [css(palette.neither), "neither"],
    ],
  };
}

/** Facilitation and interference of a task in one picture. */
export function agreement({ atlas, state }: View, task: Task, over: "always" | "any"): Shown {
  const helping = scoreMap(task, "facilitation", over);
  const hurting = scoreMap(task, "interference", over);
  const { threshold, cut } = state;
  const least = Math.fround(threshold);
  const palette = paletteOf(state);
  const at = (map: Float32Array, place: number): number => {
    const value = map[place] ?? 0;
    return cut ? Number(value >= least) : value;
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
    title: name ? name.charAt(0).toUpperCase() + name.slice(1) : "All categories",
    note: `${total} head${total === 1 ? "" : "s"}`,
    layersAcross: true,
    key: `${state.colours} ${name} ${state.direction} ${state.implements}`,
    colour: (place) => rgbs.get(word(place)) as Rgb,
    words: (place) => word(place) || "unclassified",
    legend: categoryLegend(view),
  };
}

/** What the map of one score can show: key and text. */
export function choices(atlas: Atlas): (readonly [string, string])[] {
  const scores = atlas.tasks.flatMap((task) =>
    SCORES.flatMap((score) =>
      OVER.map((over) => [`task|${task.name}|${score}|${over}`, `${task.title}: ${score}, ${over}`] as const),
    ),
  );
  return [
    ...scores,
    ...atlas.relations.map((one) => [`relation|${one.name}`, `relation: ${one.title}`] as const),
    ...atlas.effects.map((one) => [`effect|${one.task}|${one.method}`, `effect: ${one.task}, ${one.method}`] as const),
  ];
}

export function single(view: View): Shown | null {
  const { atlas, state } = view;
  const known = choices(atlas).map(([key]) => key);
  const key = known.includes(state.show) ? state.show : (known[0] ?? "");
  const [kind, first, second, third] = key.split("|");
  if (kind === "effect") return effect(view, first ?? "", second ?? "");
  const relation = kind === "relation" ? atlas.relations.find((one) => one.name === first) : undefined;
  const task = kind === "task" ? atlas.tasks.find((one) => one.name === first) : undefined;
  const map = relation ? relation[state.direction] : task ? scoreMap(task, second as Score, third as Over) : null;
  if (!map) return null;
  const least = relation ? state.implements : state.threshold;
  const palette = paletteOf(state);
  return {
    title: relation ? `${relation.title} (${state.direction})` : `${task?.title}: ${second}, ${third}`,
    note: `${count(atlas, map, least)} heads from ${least.toFixed(2)}`,
    layersAcross: Boolean(relation),
    key: `${state.colours} ${key} ${relation ? state.direction : ""}`,
    colour: (place) => heat(palette, map[place] ?? 0),
    words: (place) => fixed(map[place]),
    legend: { stops: palette.heat.map(css), from: "0", to: "1" },
  };
}

/** Beyond the strongest 2 % of the heads the colour no longer grows. */
function effect({ atlas, state }: View, task: string, method: string): Shown | null {
  const found = atlas.effects.find((one) => one.task === task && one.method === method);
  if (!found) return null;
  const sizes = atlas.places.map((place) => Math.abs(found.values[place] ?? 0)).sort((one, other) => one - other);
  const most = sizes[Math.floor(0.98 * (sizes.length - 1))] || 1;
  const palette = paletteOf(state);
  return {
    title: `${task}: ${method}`,
    note: "nats of loss; above 0 the task wants the head",
    layersAcross: false,
    key: `${state.colours} ${task} ${method}`,
    colour: (place) => diverging(palette, (found.values[place] ?? 0) / most),
    words: (place) => `${fixed(found.values[place], 3)} nats`,
    legend: both(palette, `−${most.toPrecision(2)}`, `+${most.toPrecision(2)}`),
  };
}

export function difference(view: View): Shown | null {
  const { atlas, state } = view;
  const [one, other] = [state.one, state.other].map((name) => atlas.tasks.find((task) => task.name === name));
  return one && other ? less(state, `${one.title} less ${other.title}`, one, other) : null;
}

/** A task in this model less the same task in another one of the same shape. */
export function between({ state }: View, task: Task, atlas: Atlas): Shown | null {
  const other = atlas.tasks.find((one) => one.name === task.name);
  return other ? less(state, task.title, task, other) : null;
}

function less(state: State, title: string, task: Task, from: Task): Shown {
  const [one, other] = [task, from].map((each) => scoreMap(each, state.score, "mean")) as [Float32Array, Float32Array];
  const palette = paletteOf(state);
  return {
    title,
    note: `mean ${state.score}`,
    layersAcross: false,
    key: `${state.colours} ${title} ${state.score}`,
    colour: (place) => diverging(palette, (one[place] ?? 0) - (other[place] ?? 0)),
    words: (place) => `${fixed(one[place])} less ${fixed(other[place])}`,
    legend: both(palette, "−1", "+1"),
  };
}

function both(palette: Palette, from: string, to: string): Legend {
  return { stops: [-1, 0, 1].map((value) => css(diverging(palette, value))), from, to };
}

function fixed(value: number | undefined, digits = 2): string {
  return (value ?? NaN).toFixed(digits);
}
