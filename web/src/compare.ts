// Two models beside each other in numbers.
import type { Atlas, Comparison } from "./atlas";
import { h, percent } from "./dom";
import { categoryMaps, scoreMap, share, unscored } from "./scores";
import type { State } from "./state";

export function sameShape(one: Atlas, other: Atlas): boolean {
  return (
    one.model.layers === other.model.layers &&
    one.model.heads.every((count, layer) => count === other.model.heads[layer])
  );
}

type Row = readonly [what: string, ...values: string[]];

/** Shares of heads for each task, and heads for each category, of all atlases. */
export function comparisonRows(atlases: readonly Atlas[], state: State): Row[] {
  const rows: Row[] = [["heads", ...atlases.map((one) => one.places.length.toLocaleString("en"))]];
  const tasks = [...new Map(atlases.flatMap((one) => one.tasks.map((task) => [task.name, task.title] as const)))];
  for (const [name, title] of tasks) {
    const seeds = atlases.map((one) => String(one.tasks.find((other) => other.name === name)?.seeds.length ?? "–"));
    rows.push([`${title}: seeds`, ...seeds]);
    for (const over of ["always", "any"] as const) {
      for (const [score, word] of [["facilitation", "facilitate"], ["interference", "interfere"]] as const) {
        const each = atlases.map((one) => {
          const task = one.tasks.find((other) => other.name === name);
          return task ? percent(share(one, scoreMap(task, score, over), state.threshold)) : "–";
        });
        rows.push([`${title}: heads that ${word}, ${over}`, ...each]);
      }
    }
  }
  for (const name of new Set(atlases.flatMap((one) => one.categories))) {
    const each = atlases.map((one) => {
      const map = categoryMaps(one, state.direction, state.implements).get(name);
      const unknown = unscored(one, state.direction, name);
      const scored = one.places.filter((place) => !unknown(place)); // heads without a score count for neither side
      return map && scored.length ? percent(scored.filter((place) => map[place]).length / scored.length) : "–";
    });
    rows.push([`${name} heads`, ...each]);
  }
  return rows;
}

export function comparison(atlases: readonly Atlas[], state: State): HTMLElement {
  const head = ["", ...atlases.map((one) => one.label)];
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))),
    h(
      "tbody",
      {},
      ...comparisonRows(atlases, state).map(([what, ...values]) =>
        h("tr", {}, h("th", { scope: "row" }, what), ...values.map((value) => h("td", { class: "number" }, value))),
      ),
    ),
  );
}

/** Whether the two atlases differ more than seeds do, task by task, and what keeps them from being independent. */
export function verdicts(comparisons: readonly Comparison[]): HTMLElement {
  return h(
    "ul",
    { id: "verdicts" },
    ...comparisons.map(({ task, verdict, shared }) => h("li", {}, [`${task}: ${verdict}`, ...shared].join("; "))),
  );
}
