// Which heads a filter leaves.
import { layerOf, type Atlas } from "./atlas";
import { SCORE_OF, categoryMaps, scoreMap } from "./scores";
import type { State } from "./state";

/** 1 for every place that the filters leave out; null if nothing is filtered. */
export function dimmed(atlas: Atlas, state: State): Uint8Array | null {
  const last = state.to < 0 ? atlas.model.layers - 1 : state.to;
  const tests: ((place: number) => boolean)[] = [];
  if (state.from > 0 || last < atlas.model.layers - 1) {
    tests.push((place) => layerOf(atlas, place) >= state.from && layerOf(atlas, place) <= last);
  }
  const score = SCORE_OF[state.role];
  if (score && atlas.tasks.length) {
    const tasks = atlas.tasks.filter((task) => !state.task || task.name === state.task);
    const maps = tasks.map((task) => scoreMap(task, score, state.when));
    const least = Math.fround(state.threshold);
    tests.push((place) => maps.some((map) => (map[place] ?? NaN) >= least));
  }
  if (state.category) {
    const map = categoryMaps(atlas, state.direction, state.implements).get(state.category);
    tests.push((place) => map?.[place] === 1);
  }
  if (state.relation) {
    const relation = atlas.relations.find((one) => one.name === state.relation);
    const least = Math.fround(state.implements);
    tests.push((place) => (relation?.[state.direction][place] ?? NaN) >= least);
  }
  if (!tests.length) return null;
  const found = new Uint8Array(atlas.size);
  for (const place of atlas.places) if (!tests.every((test) => test(place))) found[place] = 1;
  return found;
}
