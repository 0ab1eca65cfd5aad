// Which heads a filter leaves.
import { layerOf, type Atlas } from "./atlas";
import { SCORE_OF, categoryMaps, reaches, scoreMap } from "./scores";
import type { State } from "./state";

let last: { atlas: Atlas; state: State; found: Uint8Array | null } | null = null;

/** 1 for every place that the filters leave out; null if nothing is filtered. The last answer is kept. */
export function dimmed(atlas: Atlas, state: State): Uint8Array | null {
  if (last?.atlas !== atlas || last.state !== state) last = { atlas, state, found: makeDimmed(atlas, state) };
  return last.found;
}

function makeDimmed(atlas: Atlas, state: State): Uint8Array | null {
  const upper = state.to < 0 ? atlas.model.layers - 1 : state.to;
  const tests: ((place: number) => boolean)[] = [];
  if (state.from > 0 || upper < atlas.model.layers - 1) {
    tests.push((place) => layerOf(atlas, place) >= state.from && layerOf(atlas, place) <= upper);
  }
  const score = SCORE_OF[state.role];
  if (score && atlas.tasks.length) {
    const tasks = atlas.tasks.filter((task) => !state.task || task.name === state.task);
    const maps = tasks.map((task) => scoreMap(task, score, state.when));
    tests.push((place) => maps.some((map) => reaches(map[place], state.threshold)));
    const other = atlas.tasks.find((task) => task.name === state.without);
    const spared = other && scoreMap(other, score, state.when);
    if (spared) tests.push((place) => !reaches(spared[place], state.threshold));
  }
  if (state.category) {
    const map = categoryMaps(atlas, state.direction, state.implements).get(state.category);
    tests.push((place) => map?.[place] === 1);
  }
  if (state.relation) {
    const relation = atlas.relations.find((one) => one.name === state.relation);
    tests.push((place) => reaches(relation?.[state.direction][place], state.implements));
  }
  if (!tests.length) return null;
  const found = new Uint8Array(atlas.size);
  for (const place of atlas.places) if (!tests.every((test) => test(place))) found[place] = 1;
  return found;
}
