// From gates to scores, roles, Always and Any: the same numbers as headatlas.atlas.scores and agreement, in the
// same single precision, so that a threshold means the same on both sides.
import { isImported, type Atlas, type Contrast, type Direction, type Relation, type Task } from "./atlas";

export type Score = "facilitation" | "interference" | "irrelevance";
export type Over = "always" | "any" | "mean";
export type Role = "facilitating" | "interfering" | "irrelevant" | "anomaly" | "unclear";
export const SCORES: readonly Score[] = ["facilitation", "interference", "irrelevance"];
export const OVER: readonly Over[] = ["always", "any", "mean"];
export const ROLES: readonly Role[] = ["facilitating", "interfering", "irrelevant"];
export const SCORE_OF: Readonly<Record<string, Score>> = {
  facilitating: "facilitation",
  interfering: "interference",
  irrelevant: "irrelevance",
};

const single = Math.fround;

/** Does a score reach a threshold? In single precision, as in Python; what is not measured does not. */
export function reaches(value: number | undefined, threshold: number): boolean {
  return (value ?? NaN) >= single(threshold);
}

/** One score of a head in one seed (by its place in `task.seeds`). */
export function scoreAt(task: Task, score: Score, seed: number, place: number): number {
  const at = seed * (task.retain.length / task.seeds.length) + place;
  const high = task.retain[at] ?? NaN;
  const low = task.remove[at] ?? NaN;
  if (score === "facilitation") return low;
  if (score === "interference") return single(1 - high);
  return single(high * single(1 - low));
}

const known = new WeakMap<Task, Map<string, Float32Array>>();

/** A score of all heads over the seeds: the smallest, the largest or the mean. Worked out once. */
export function scoreMap(task: Task, score: Score, over: Over): Float32Array {
  const maps = known.get(task) ?? new Map<string, Float32Array>();
  known.set(task, maps);
  const key = `${score} ${over}`;
  const found = maps.get(key) ?? makeScoreMap(task, score, over);
  maps.set(key, found);
  return found;
}

function makeScoreMap(task: Task, score: Score, over: Over): Float32Array {
  const size = task.retain.length / task.seeds.length;
  const found = new Float32Array(size);
  for (let place = 0; place < size; place++) {
    let value = scoreAt(task, score, 0, place);
    for (let seed = 1; seed < task.seeds.length; seed++) {
      const next = scoreAt(task, score, seed, place);
      if (over === "always") value = next < value ? next : value;
      else if (over === "any") value = next > value ? next : value;
      else value += next;
    }
    found[place] = over === "mean" ? value / task.seeds.length : value;
  }
  return found;
}

/** The share of the model's heads whose score reaches the threshold. */
export function share(atlas: Atlas, map: Float32Array, threshold: number): number {
  return count(atlas, map, threshold) / atlas.places.length;
}

export function count(atlas: Atlas, map: Float32Array, threshold: number): number {
  let found = 0;
  for (const place of atlas.places) if (reaches(map[place], threshold)) found++;
  return found;
}

/** The role of a head in each seed. */
export function rolesOf(task: Task, place: number, threshold: number): Role[] {
  return task.seeds.map((_, seed) => roleAt(task, seed, place, threshold));
}

function roleAt(task: Task, seed: number, place: number, threshold: number): Role {
  const [helps, hurts, idle] = SCORES.map((score) => reaches(scoreAt(task, score, seed, place), threshold));
  if (helps && hurts) return "anomaly";
  if (helps) return "facilitating";
  if (hurts) return "interfering";
  return idle ? "irrelevant" : "unclear";
}

// Relations

interface Categories {
  readonly key: string;
  readonly maps: Map<string, Uint8Array>;
  readonly words: string[];
}

/** Relations to count: all, those that were measured here, or those that were imported. */
export type Source = "all" | "measured" | "imported";

export function relationsOf(atlas: Atlas, source: Source): Relation[] {
  return atlas.relations.filter((one) => source === "all" || isImported(one) === (source === "imported"));
}

/** The categories of these relations, in the order of the atlas. */
export function categoryNames(atlas: Atlas, source: Source): string[] {
  const used = new Set(relationsOf(atlas, source).map((one) => one.category));
  return atlas.categories.filter((name) => used.has(name));
}

const lastCategories = new WeakMap<Atlas, Map<Source, Categories>>();

/** The last answer is kept: many maps ask for the same. */
function categoriesOf(atlas: Atlas, direction: Direction, threshold: number, source: Source): Categories {
  const key = `${direction} ${threshold}`;
  const bySource = lastCategories.get(atlas) ?? new Map<Source, Categories>();
  lastCategories.set(atlas, bySource);
  const last = bySource.get(source);
  if (last?.key === key) return last;
  const maps = makeCategoryMaps(atlas, direction, threshold, source);
  const found = { key, maps, words: makeCategoryWords(atlas, maps) };
  bySource.set(source, found);
  return found;
}

/** For each category: 1 where a head implements a relation of it. */
export function categoryMaps(atlas: Atlas, direction: Direction, threshold: number, source: Source = "all"): Map<string, Uint8Array> {
  return categoriesOf(atlas, direction, threshold, source).maps;
}

/** The category of each head, "2 categories" and so on where it has several, "" where it has none. */
export function categoryWords(atlas: Atlas, direction: Direction, threshold: number, source: Source = "all"): string[] {
  return categoriesOf(atlas, direction, threshold, source).words;
}

/** Heads for which no relation (of a category, if one is named) has a score: their category is unknown. */
export function unscored(atlas: Atlas, direction: Direction, name: string, source: Source = "all"): (place: number) => boolean {
  const maps = relationsOf(atlas, source).filter((one) => !name || one.category === name).map((one) => one[direction]);
  return (place) => maps.every((map) => Number.isNaN(map[place] ?? NaN));
}

function makeCategoryMaps(atlas: Atlas, direction: Direction, threshold: number, source: Source): Map<string, Uint8Array> {
  const found = new Map(atlas.categories.map((name) => [name, new Uint8Array(atlas.size)]));
  for (const relation of relationsOf(atlas, source)) {
    const map = found.get(relation.category);
    const scores = relation[direction];
    if (map) for (const place of atlas.places) if (reaches(scores[place], threshold)) map[place] = 1;
  }
  return found;
}

function makeCategoryWords(atlas: Atlas, all: Map<string, Uint8Array>): string[] {
  const maps = [...all];
  const words = new Array<string>(atlas.size).fill("");
  for (const place of atlas.places) {
    const names = maps.filter(([, map]) => map[place]).map(([name]) => name);
    words[place] = names.length > 1 ? `${names.length} categories` : (names[0] ?? "");
  }
  return words;
}

// Neighbours

/** Numbers that say what a head is like: its gates in every task, its scores for every relation. */
export function profiles(atlas: Atlas): Float32Array[] {
  const parts: Float32Array[] = [];
  for (const task of atlas.tasks) {
    parts.push(scoreMap(task, "facilitation", "mean"), scoreMap(task, "interference", "mean"));
  }
  for (const relation of atlas.relations) parts.push(relation.promote, relation.suppress);
  return parts;
}

/** The heads with the smallest distance to a head's profile, nearest first. */
export function similar(atlas: Atlas, parts: readonly Float32Array[], place: number, most: number): number[] {
  const distances = atlas.places
    .filter((other) => other !== place)
    .map((other) => {
      let sum = 0;
      let shared = 0;
      for (const part of parts) {
        const gap = (part[place] ?? NaN) - (part[other] ?? NaN);
        if (gap === gap) {
          sum += gap * gap;
          shared++;
        }
      }
      return [sum / shared, other] as const;
    })
    .filter(([distance]) => !Number.isNaN(distance)); // heads with nothing to compare are not alike
  distances.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  return distances.slice(0, most).map(([, other]) => other);
}

/** a gate of a contrast from here on is open */
export const OPEN = 0.5;

/** The mean gate of each place over the seeds of a contrast; NaN where the model has no head. */
export function meanGates(atlas: Atlas, contrast: Contrast): Float32Array {
  const mean = new Float32Array(atlas.size);
  for (let at = 0; at < contrast.gates.length; at++) {
    const place = at % atlas.size;
    mean[place] = (mean[place] ?? NaN) + (contrast.gates[at] ?? NaN) / contrast.seeds.length;
  }
  return mean;
}
