// The payload as the page works with it: checked against the schema, numbers as typed arrays.
import validate from "./generated/validate.js";

export type Fit = "free" | "retain" | "remove";
export type Direction = "promote" | "suppress";
export const DIRECTIONS: readonly Direction[] = ["promote", "suppress"];

export interface Model {
  readonly name: string;
  readonly architecture: string;
  readonly layers: number;
  readonly width: number;
  readonly heads: readonly number[];
  readonly kvHeads: readonly number[];
  /** null: unknown */
  readonly parameters: number | null;
  readonly dtype: string;
  readonly revision: string | null;
  readonly madeWith: Readonly<Record<string, string>>;
}

export interface Finding {
  readonly topic: string;
  readonly question: string;
  readonly text: string;
  readonly adjusted: number | null;
  readonly published: string | null;
}

/** Gates on their way: values [seed, update, place] in 0…255. */
export interface Path {
  readonly fit: Fit;
  readonly updates: readonly number[];
  readonly seeds: number;
  readonly values: Uint8Array;
}

/** Gates [seed, place]; a place is layer × width + head, and NaN where the model has no head. */
export interface Task {
  readonly name: string;
  readonly title: string;
  readonly seeds: readonly number[];
  readonly retain: Float32Array;
  readonly remove: Float32Array;
  readonly made: string;
  readonly doubts: readonly string[];
  readonly paths: readonly Path[] | null;
}

export interface Relation {
  readonly name: string;
  readonly title: string;
  readonly category: string;
  readonly kind: string;
  readonly pairs: number;
  /** of imported scores, whose mean this is; 0: none were named */
  readonly seeds: number;
  /** false: the atlas has only their mean */
  readonly seedsKept: boolean;
  /** how many heads have fewer than all seeds; empty if none has */
  readonly uneven: string;
  readonly promote: Float32Array;
  readonly suppress: Float32Array;
}

export interface Effect {
  readonly task: string;
  readonly method: string;
  /** of the values; nats: of loss */
  readonly unit: string;
  /** true: from a table, not measured here */
  readonly imported: boolean;
  /** how many heads have fewer than all seeds; empty if none has */
  readonly uneven: string;
  readonly values: Float32Array;
  /** how mediation corrupted prompts and where it patched heads; empty for other methods */
  readonly made: string;
  readonly doubts: readonly string[];
}

/** What is said of a task that two atlases have. */
export interface Comparison {
  readonly task: string;
  readonly verdict: string;
  readonly shared: readonly string[];
}

/** A held-out figure without the gates of a contrast, and with them: the mean over seeds and its interval. */
export interface Figure {
  readonly key: "retain_nll" | "retain_accuracy" | "forget_nll" | "forget_accuracy";
  readonly before: number;
  readonly after: number;
  readonly low: number | null;
  readonly high: number | null;
}

/** Gates [seed, place] that keep one task and destroy another. */
export interface Contrast {
  readonly name: string;
  readonly retain: string;
  readonly forget: string;
  readonly seeds: readonly number[];
  readonly gates: Float32Array;
  readonly figures: readonly Figure[];
  readonly made: string;
  readonly doubts: readonly string[];
}

/** A score made elsewhere; NaN where its table does not name a head. */
export interface Imported {
  readonly name: string;
  readonly title: string;
  readonly from: string;
  readonly seeds: number;
  /** how many heads have fewer than all seeds; empty if none has */
  readonly uneven: string;
  readonly values: Float32Array;
}

export interface Salient {
  readonly texts: readonly string[];
  readonly sources: Uint32Array;
  readonly strengths: Float32Array;
  readonly mapped: Uint32Array;
  readonly perHead: number;
  readonly perToken: number;
}

export interface Atlas {
  /** what tells it from another one */
  readonly label: string;
  readonly model: Model;
  readonly size: number;
  /** the places that hold a head, layer by layer */
  readonly places: readonly number[];
  readonly threshold: number;
  readonly implements: number;
  readonly headlines: readonly string[];
  readonly findings: readonly Finding[];
  readonly tasks: readonly Task[];
  readonly relations: readonly Relation[];
  readonly categories: readonly string[];
  readonly effects: readonly Effect[];
  readonly contrasts: readonly Contrast[];
  readonly imported: readonly Imported[];
  readonly labels: readonly string[];
  readonly salient: Salient | null;
}

export class PayloadError extends Error {}

/** The atlases of a payload: one, or two to compare. */
export function decode(payload: unknown): Atlas[] {
  if (!validate(payload)) {
    const first = validate.errors?.[0];
    throw new PayloadError(
      `this file is not a page of this version: ${first?.instancePath ?? ""} ${first?.message ?? ""}`,
    );
  }
  return (payload as { atlases: RawAtlas[] }).atlases.map(decodeAtlas);
}

/** The comparisons of a payload that `decode` accepts. */
export function comparisonsOf(payload: unknown): readonly Comparison[] {
  return (payload as { comparisons: Comparison[] }).comparisons;
}

interface RawAtlas {
  label: string;
  model: Model;
  threshold: number;
  implements: number;
  headlines: string[];
  findings: Finding[];
  tasks: (Omit<Task, "retain" | "remove" | "paths"> & {
    retain: string;
    remove: string;
    paths: (Omit<Path, "values"> & { values: string })[] | null;
  })[];
  relations: (Omit<Relation, Direction> & { scores: string })[];
  effects: (Omit<Effect, "values"> & { values: string })[];
  contrasts: (Omit<Contrast, "gates"> & { gates: string })[];
  imported: (Omit<Imported, "values"> & { values: string })[];
  labels: string[];
  salient: (Omit<Salient, "sources" | "strengths" | "mapped"> & {
    sources: string;
    strengths: string;
    mapped: string;
  }) | null;
}

const KNOWN = ["algorithmic", "knowledge", "linguistic", "translation"];

function decodeAtlas(raw: RawAtlas): Atlas {
  const { model } = raw;
  const size = model.layers * model.width;
  for (const [part, length] of [[model.heads, model.layers], [model.kvHeads, model.layers], [raw.labels, size]] as const) sized(part, length);
  const places: number[] = [];
  model.heads.forEach((count, layer) => {
    for (let head = 0; head < count; head++) places.push(layer * model.width + head);
  });
  const there = new Set(raw.relations.map((one) => one.category));
  const own = [...there].filter((name) => !KNOWN.includes(name)).sort();
  return {
    label: raw.label,
    model,
    size,
    places,
    threshold: raw.threshold,
    implements: raw.implements,
    headlines: raw.headlines,
    findings: raw.findings,
    tasks: raw.tasks.map((task) => ({
      ...task,
      retain: floats(task.retain, task.seeds.length * size),
      remove: floats(task.remove, task.seeds.length * size),
      paths:
        task.paths?.map((path) => ({
          ...path,
          values: sized(bytes(path.values), path.seeds * path.updates.length * size),
        })) ?? null,
    })),
    relations: raw.relations.map(({ scores, ...relation }) => {
      const both = floats(scores, 2 * size);
      return { ...relation, promote: both.subarray(0, size), suppress: both.subarray(size) };
    }),
    categories: [...KNOWN.filter((name) => there.has(name)), ...own],
    effects: raw.effects.map((one) => ({ ...one, values: floats(one.values, size) })),
    contrasts: raw.contrasts.map((one) => ({ ...one, gates: floats(one.gates, one.seeds.length * size) })),
    imported: raw.imported.map((one) => ({ ...one, values: floats(one.values, size) })),
    labels: raw.labels,
    salient: raw.salient && {
      ...raw.salient,
      sources: numbers(raw.salient.sources, size * raw.salient.perHead),
      strengths: floats(raw.salient.strengths, size * raw.salient.perHead),
      mapped: numbers(raw.salient.mapped, size * raw.salient.perHead * raw.salient.perToken),
    },
  };
}

function bytes(text: string): Uint8Array {
  const raw = atob(text);
  const found = new Uint8Array(raw.length);
  for (let place = 0; place < raw.length; place++) found[place] = raw.charCodeAt(place);
  return found;
}

function floats(text: string, length: number): Float32Array {
  return new Float32Array(sized(bytes(text), 4 * length).buffer);
}

function numbers(text: string, length: number): Uint32Array {
  return new Uint32Array(sized(bytes(text), 4 * length).buffer);
}

function sized<Values extends { readonly length: number }>(values: Values, length: number): Values {
  if (values.length !== length) {
    throw new PayloadError(`this file is damaged: a part of length ${values.length} where ${length} belongs`);
  }
  return values;
}

/** What is said of a head for which nothing was imported. */
export const NOT_IMPORTED = "not in the imported table";

export function isImported(relation: Relation): boolean {
  return relation.kind === "imported";
}

/** "mean of 2 seeds", or nothing to say; "of up to" where heads have fewer than all of them. */
export function seedWords({ seeds, uneven }: { seeds: number; uneven: string }, kept = true): string {
  if (seeds < 2) return "";
  if (uneven) return `, mean of up to ${seeds} seeds (${uneven})`;
  return `, mean of ${seeds} seeds${kept ? "" : ", which were not kept"}`;
}

export function methodWords(effect: Effect): string {
  return effect.imported ? `${effect.method}, imported` : effect.method;
}

/** Scores that come from texts or from a table, not from weights alone, say so. */
export function relationWords(relation: Relation): string {
  if (isImported(relation)) return `${relation.title}, imported${seedWords(relation, relation.seedsKept)}`;
  return relation.kind === "multi-token" ? `${relation.title}, in texts` : relation.title;
}

// Heads by name

export function nameOf(atlas: Atlas, place: number): string {
  const { width } = atlas.model;
  return `L${Math.floor(place / width)}H${place % width}`;
}

export function layerOf(atlas: Atlas, place: number): number {
  return Math.floor(place / atlas.model.width);
}

/** The place of a head by its name (`L5H3`, `5.3`, `a5.h3`), or null if there is none. */
export function placeOf(atlas: Atlas, name: string): number | null {
  const found = /^\s*\(?\s*(?:[la])?(\d+)\s*[.,hH ]\s*[.hH]?\s*(\d+)\s*\)?\s*$/i.exec(name);
  if (!found) return null;
  const layer = Number(found[1]);
  const head = Number(found[2]);
  if (head >= (atlas.model.heads[layer] ?? 0)) return null;
  return layer * atlas.model.width + head;
}

/** Other heads that share keys and values with this one. */
export function group(atlas: Atlas, place: number): number[] {
  const layer = layerOf(atlas, place);
  const heads = atlas.model.heads[layer] ?? 0;
  const shared = heads / (atlas.model.kvHeads[layer] || heads);
  const first = layer * atlas.model.width;
  const mine = Math.floor((place - first) / shared);
  const found: number[] = [];
  for (let head = 0; head < heads; head++) {
    if (Math.floor(head / shared) === mine && first + head !== place) found.push(first + head);
  }
  return found;
}
