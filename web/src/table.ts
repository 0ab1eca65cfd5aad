// All heads as a table: sorted, filtered, taken along as CSV.
import { layerOf, nameOf, type Atlas } from "./atlas";
import { h, put } from "./dom";
import { categoryWords, scoreMap } from "./scores";
import type { State } from "./state";

export interface Column {
  readonly key: string;
  readonly title: string;
  readonly value: (place: number) => number | string;
}

export function columns(atlas: Atlas, state: State): Column[] {
  const found: Column[] = [
    { key: "head", title: "head", value: (place) => nameOf(atlas, place) },
    { key: "layer", title: "layer", value: (place) => layerOf(atlas, place) },
  ];
  for (const task of atlas.tasks) {
    for (const score of ["facilitation", "interference"] as const) {
      const map = scoreMap(task, score, state.when);
      found.push({ key: `${task.name}.${score}`, title: `${task.title} ${score}`, value: (place) => map[place] ?? NaN });
    }
  }
  if (atlas.relations.length) {
    const words = categoryWords(atlas, state.direction, state.implements);
    found.push({ key: "category", title: "category", value: (place) => words[place] ?? "" });
    found.push({
      key: "relation",
      title: "best relation",
      value: (place) => {
        let best = 0;
        let name = "";
        for (const relation of atlas.relations) {
          const value = relation[state.direction][place] ?? 0;
          if (value > best) [best, name] = [value, relation.title];
        }
        return name ? `${name} ${best.toFixed(2)}` : "";
      },
    });
  }
  found.push({ key: "label", title: "in words", value: (place) => atlas.labels[place] ?? "" });
  return found;
}

/** The places that are left, in the order of a column. */
export function sorted(left: readonly number[], all: readonly Column[], sort: string): number[] {
  const falling = sort.startsWith("-");
  const column = all.find((one) => one.key === sort.replace(/^-/, ""));
  if (!column || column.key === "head") return falling ? [...left].reverse() : [...left];
  const values = new Map(left.map((place) => [place, column.value(place)]));
  return [...left].sort((one, other) => {
    const [a, b] = [values.get(one) ?? "", values.get(other) ?? ""];
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    return (falling ? -order : order) || one - other;
  });
}

const MOST = 100;

export function drawTable(
  parent: HTMLElement,
  atlas: Atlas,
  places: readonly number[],
  all: readonly Column[],
  state: State,
  choose: (place: number) => void,
  sortBy: (key: string) => void,
): void {
  const head = all.map((column) => {
    const mine = state.sort.replace(/^-/, "") === column.key;
    const falling = mine && state.sort.startsWith("-");
    const button = h("button", { type: "button" }, `${column.title}${mine ? (falling ? " ↓" : " ↑") : ""}`);
    button.addEventListener("click", () => sortBy(mine && !falling ? `-${column.key}` : column.key));
    return h("th", { scope: "col", "aria-sort": mine ? (falling ? "descending" : "ascending") : "none" }, button);
  });
  const rows = places.slice(0, MOST).map((place) => {
    const cells = all.map((column, number) => {
      const value = column.value(place);
      if (number === 0) {
        const button = h("button", { type: "button", class: "head-link" }, String(value));
        button.addEventListener("click", () => choose(place));
        return h("th", { scope: "row" }, button);
      }
      const text = typeof value === "number" ? (Number.isInteger(value) ? String(value) : value.toFixed(2)) : value;
      return h("td", { class: typeof value === "number" ? "number" : "" }, text);
    });
    return h("tr", { class: nameOf(atlas, place) === state.head ? "chosen" : "" }, ...cells);
  });
  const more = places.length - rows.length;
  put(
    parent,
    h("table", { class: "heads" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)),
    more > 0 ? h("p", { class: "note" }, `${more} more; the CSV has all`) : null,
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
