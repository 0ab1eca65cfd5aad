// All heads as a table: sorted, filtered, taken along as CSV.
import { NOT_IMPORTED, layerOf, nameOf, type Atlas } from "./atlas";
import { h, put } from "./dom";
import { categoryWords, relationsOf, scoreMap, unscored } from "./scores";
import type { State } from "./state";

export interface Column {
  readonly key: string;
  readonly title: string;
  readonly value: (place: number) => number | string;
  /** what it is sorted by, if not by its value */
  readonly order?: (place: number) => number;
}

export function columns(atlas: Atlas, state: State): Column[] {
  const found: Column[] = [
    { key: "head", title: "head", value: (place) => nameOf(atlas, place) },
    { key: "layer", title: "layer", value: (place) => layerOf(atlas, place) },
  ];
  for (const task of atlas.tasks) {
    for (const score of ["facilitation", "interference"] as const) {
      const map = scoreMap(task, score, state.when);
      found.push({ key: `${task.name}.${score}`, title: `${task.title} ${score} (${state.when})`, value: (place) => map[place] ?? NaN });
    }
  }
  if (atlas.relations.length) {
    const source = relationsOf(atlas, "measured").length ? "measured" : "imported"; // never both in one column
    const words = categoryWords(atlas, state.direction, state.implements, source);
    const unknown = source === "measured" ? (): boolean => false : unscored(atlas, state.direction, "");
    found.push({ key: "category", title: "category", value: (place) => (unknown(place) ? NOT_IMPORTED : (words[place] ?? "")) });
    const best = (place: number): readonly [number, string] => {
      let found: readonly [number, string] = [0, ""];
      for (const relation of relationsOf(atlas, source)) {
        const value = relation[state.direction][place] ?? 0;
        if (value > found[0]) found = [value, relation.title];
      }
      return found;
    };
    const text = ([value, name]: readonly [number, string]): string => (name ? `${name} ${value.toFixed(2)}` : "");
    found.push({ key: "relation", title: "best relation", value: (place) => text(best(place)), order: (place) => best(place)[0] });
    const chosen = atlas.relations.find((one) => one.name === state.relation);
    if (chosen) found.push({ key: "chosen", title: chosen.title, value: (place) => chosen[state.direction][place] ?? NaN });
  }
  for (const score of atlas.imported) {
    found.push({ key: `imported.${score.name}`, title: `${score.title} (imported)`, value: (place) => score.values[place] ?? NaN });
  }
  found.push({ key: "label", title: "in words", value: (place) => atlas.labels[place] ?? "" });
  return found;
}

/** Which column, and does it fall? A minus in front says so, unless that is how a column is called. */
function sorting(all: readonly Column[], sort: string): { column: Column | undefined; falling: boolean } {
  const rising = all.find((one) => one.key === sort);
  if (rising) return { column: rising, falling: false };
  return { column: all.find((one) => `-${one.key}` === sort), falling: sort.startsWith("-") };
}

/** The places that are left, in the order of a column. */
export function sorted(left: readonly number[], all: readonly Column[], sort: string): number[] {
  const { column, falling } = sorting(all, sort);
  if (!column || column.key === "head") return falling ? [...left].reverse() : [...left];
  const values = new Map(left.map((place) => [place, (column.order ?? column.value)(place)]));
  return [...left].sort((one, other) => {
    const [a, b] = [values.get(one) ?? "", values.get(other) ?? ""];
    if (typeof a === "number" && typeof b === "number") {
      if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b)) || one - other;
      return (falling ? b - a : a - b) || one - other;
    }
    const order = String(a).localeCompare(String(b));
    return (falling ? -order : order) || one - other;
  });
}

/** columns of which most is best begin with the most */
const rises = (column: Column): boolean => ["head", "layer", "category", "label"].includes(column.key);

/** rows that are shown at first, and that come with each further step */
export const STEP = 100;

export function drawTable(
  parent: HTMLElement,
  atlas: Atlas,
  places: readonly number[],
  all: readonly Column[],
  state: State,
  choose: (place: number) => void,
  sortBy: (key: string) => void,
  most: number,
  more: () => void,
): void {
  const by = sorting(all, state.sort);
  const head = all.map((column) => {
    const mine = by.column === column;
    const falling = mine && by.falling;
    const button = h("button", { type: "button", "data-key": `sort ${column.key}` }, `${column.title}${mine ? (falling ? " ↓" : " ↑") : ""}`);
    const next = mine ? !falling : !rises(column);
    button.addEventListener("click", () => sortBy(next ? `-${column.key}` : column.key));
    return h("th", { scope: "col", "aria-sort": mine ? (falling ? "descending" : "ascending") : "none" }, button);
  });
  const rows = places.slice(0, most).map((place) => {
    const cells = all.map((column, number) => {
      const value = column.value(place);
      if (number === 0) {
        const button = h("button", { type: "button", class: "head-link", "data-key": `head ${value}` }, String(value));
        button.addEventListener("click", () => choose(place));
        return h("th", { scope: "row" }, button);
      }
      const text = typeof value === "number" ? (Number.isInteger(value) ? String(value) : Number.isNaN(value) ? "–" : value.toFixed(2)) : value;
      return h("td", { class: typeof value === "number" ? "number" : "" }, text);
    });
    return h("tr", { class: nameOf(atlas, place) === state.head ? "chosen" : "" }, ...cells);
  });
  const left = places.length - rows.length;
  const button = h("button", { type: "button", "data-key": "more" }, `show ${Math.min(left, STEP)} more of ${left}`);
  button.addEventListener("click", more);
  put(
    parent,
    h("table", { class: "heads" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)),
    left > 0 ? h("p", {}, button) : null,
  );
}

export function csv(places: readonly number[], all: readonly Column[]): string {
  const cell = (value: number | string): string => {
    const text = String(value);
    // a spreadsheet must not take text for a formula
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  const lines = [all.map((column) => cell(column.title)), ...places.map((place) => all.map((column) => cell(column.value(place))))];
  return `${lines.map((line) => line.join(",")).join("\n")}\n`;
}
