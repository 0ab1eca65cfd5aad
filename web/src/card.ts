// The card of one head: roles and gates in every task and seed, their way there, relations, tokens, neighbours.
import { line } from "d3-shape";
import { scaleLinear } from "d3-scale";
import { NOT_IMPORTED, group, isImported, methodWords, nameOf, relationWords, seedWords, type Atlas, type Contrast, type Effect, type Imported, type Relation, type Task } from "./atlas";
import { OTHER_ROLES, type Palette } from "./colour";
import { decimal, h, put, s, shown } from "./dom";
import { OPEN, meanGates, reaches, rolesOf, scoreMap, similar, type Score } from "./scores";

export interface CardOptions {
  readonly threshold: number;
  readonly implements: number;
  readonly palette: Palette;
  readonly profiles: readonly Float32Array[];
  readonly choose: (place: number) => void;
  readonly close: () => void;
}

const RELATIONS = 8;

export function drawCard(parent: HTMLElement, atlas: Atlas, place: number, options: CardOptions): void {
  const name = nameOf(atlas, place);
  put(
    parent,
    cardHead(name, options.close),
    h("p", { class: "label" }, atlas.labels[place] || "nothing stands out"),
    options.threshold === atlas.threshold && options.implements === atlas.implements
      ? null
      : h("p", { class: "note" }, `in words: at the thresholds ${atlas.threshold} and ${atlas.implements}`),
    ...atlas.tasks.map((task) => taskPart(atlas, task, place, options)),
    relationsPart(atlas, place, options),
    effectsPart(atlas, place),
    contrastsPart(atlas, place),
    importedPart(atlas, place),
    salientPart(atlas, place),
    neighboursPart(atlas, place, options),
  );
}

function cardHead(name: string, close: () => void): HTMLElement {
  const button = h("button", { type: "button", id: "close", "data-key": "close", "aria-label": `close the card of ${name}` }, "×");
  button.addEventListener("click", close);
  return h("div", { class: "card-head" }, h("h2", { id: "card-title", tabindex: -1, "data-key": "title" }, name), button);
}

function three(task: Task, score: Score, place: number): string {
  return (["always", "mean", "any"] as const).map((over) => (scoreMap(task, score, over)[place] ?? NaN).toFixed(2)).join(" / ");
}

function taskPart(atlas: Atlas, task: Task, place: number, options: CardOptions): HTMLElement {
  const roles = rolesOf(task, place, options.threshold);
  const counts = new Map<string, number>();
  for (const role of roles) counts.set(role, (counts.get(role) ?? 0) + 1);
  const said = [...counts].map(([role, count]) => `${role} in ${count} of ${roles.length}`).join(", ");
  return h(
    "section",
    { class: "card-part", "data-task": task.name },
    h("h3", {}, task.title),
    h("p", { class: "roles" }, said),
    seedStrip(atlas, task, place, options),
    task.paths ? trajectories(atlas, task, place) : null,
    task.paths && (task.paths[0]?.seeds ?? 0) < task.seeds.length
      ? h("p", { class: "note" }, `the way of ${task.paths[0]?.seeds} of ${task.seeds.length} seeds, to keep the page small`)
      : null,
    h(
      "dl",
      { class: "numbers" },
      h("dt", {}, ""),
      h("dd", { class: "note" }, "always / mean / any"),
      h("dt", {}, "facilitation"),
      h("dd", {}, three(task, "facilitation", place)),
      h("dt", {}, "interference"),
      h("dd", {}, three(task, "interference", place)),
    ),
  );
}

/** A column for each seed: G+ as the upper bar, G− as the lower one. */
function seedStrip(atlas: Atlas, task: Task, place: number, options: CardOptions): SVGElement {
  const width = Math.max(14, Math.min(26, 260 / task.seeds.length));
  const roles = rolesOf(task, place, options.threshold);
  const colours: Record<string, string> = {
    facilitating: options.palette.lines.facilitation,
    interfering: options.palette.lines.interference,
    irrelevant: options.palette.lines.irrelevance,
    ...OTHER_ROLES,
  };
  const spoken: string[] = []; // a screen reader does not look into a picture
  const columns = task.seeds.map((seed, number) => {
    const at = number * atlas.size + place;
    const high = task.retain[at] ?? NaN;
    const low = task.remove[at] ?? NaN;
    const x = 22 + number * width;
    const fill = colours[roles[number] ?? "unclear"] as string;
    const words = `seed ${seed}: ${roles[number]}, G+ ${high.toFixed(2)}, G− ${low.toFixed(2)}`;
    spoken.push(words);
    return s(
      "g",
      {},
      s("title", {}, words),
      s("rect", { x, y: 2, width: width - 3, height: 24, class: "track" }),
      s("rect", { x, y: 2 + 24 * (1 - high), width: width - 3, height: 24 * high, fill }),
      s("rect", { x, y: 32, width: width - 3, height: 24, class: "track" }),
      s("rect", { x, y: 32 + 24 * (1 - low), width: width - 3, height: 24 * low, fill }),
    );
  });
  const total = 22 + width * task.seeds.length;
  return s(
    "svg",
    { class: "strip", width: total, height: 58, role: "img", "aria-label": `gates of ${task.title}. ${spoken.join("; ")}` },
    s("text", { x: 0, y: 18 }, "G+"),
    s("text", { x: 0, y: 48 }, "G−"),
    ...columns,
  );
}

/** The gate over the updates: free, then retain and remove, a line for each seed. */
function trajectories(atlas: Atlas, task: Task, place: number): SVGElement {
  const paths = task.paths ?? [];
  const width = 280;
  const height = 70;
  const free = paths.find((path) => path.fit === "free");
  const offset = free ? (free.updates[free.updates.length - 1] ?? 0) : 0;
  const last = Math.max(...paths.map((path) => (path.updates[path.updates.length - 1] ?? 0) + (path.fit === "free" ? 0 : offset)));
  const x = scaleLinear().domain([0, last || 1]).range([24, width - 4]);
  const y = scaleLinear().domain([0, 1]).range([height - 14, 4]);
  const drawn: SVGElement[] = [];
  for (const path of paths) {
    const count = path.updates.length;
    const shift = path.fit === "free" ? 0 : offset;
    const draw = line<number>()
      .x((number) => x((path.updates[number] ?? 0) + shift))
      .y(0);
    for (let seed = 0; seed < path.seeds; seed++) {
      draw.y((number) => y((path.values[(seed * count + number) * atlas.size + place] ?? 0) / 255));
      drawn.push(s("path", { d: draw([...path.updates.keys()]) ?? "", class: `path ${path.fit}`, fill: "none" }));
    }
  }
  return s(
    "svg",
    { class: "paths", width, height, role: "img", "aria-label": `the gate over the updates, ${task.title}` },
    s("line", { x1: x(offset), x2: x(offset), y1: 4, y2: height - 14, class: "stage" }),
    ...[0, 1].map((value) => s("text", { x: 18, y: y(value) + 3, "text-anchor": "end" }, String(value))),
    s("text", { x: x(offset / 2), y: height - 2, "text-anchor": "middle" }, "free"),
    s(
      "text",
      { x: x((offset + last) / 2), y: height - 2, "text-anchor": "middle" },
      s("tspan", { class: "word retain" }, "retain"),
      " and ",
      s("tspan", { class: "word remove" }, "remove"),
    ),
    ...drawn,
  );
}

function relationsPart(atlas: Atlas, place: number, options: CardOptions): HTMLElement | null {
  if (!atlas.relations.length) return null;
  const score = (relation: Relation): number =>
    Math.max(relation.promote[place] || 0, relation.suppress[place] || 0);
  const known = [...atlas.relations].filter((one) => score(one) > 0).sort((one, other) => score(other) - score(one));
  const row = (relation: Relation): HTMLElement => {
    const promote = relation.promote[place] ?? NaN;
    const suppress = relation.suppress[place] ?? NaN;
    const measured = isImported(relation) ? "imported" : `${relation.pairs} pairs`;
    return h(
      "tr",
      {},
      h("th", { scope: "row", title: `${relation.category}, ${measured}` }, relationWords(relation)),
      h("td", {}, bar(suppress, "suppress", reaches(suppress, options.implements))),
      h("td", {}, bar(promote, "promote", reaches(promote, options.implements))),
    );
  };
  const table = (some: readonly Relation[]): HTMLElement =>
    h(
      "table",
      { class: "relations" },
      h(
        "thead",
        {},
        h("tr", {}, h("th", { scope: "col" }, "relation"), h("th", { scope: "col" }, "suppresses"), h("th", { scope: "col" }, "promotes")),
      ),
      h("tbody", {}, ...some.map(row)),
    );
  const missing = atlas.relations.filter((one) => isImported(one) && Number.isNaN(one.promote[place]) && Number.isNaN(one.suppress[place]));
  const none = missing.length === atlas.relations.length ? null : h("p", { class: "note" }, "no relation has a score above zero");
  return h(
    "section",
    { class: "card-part", "data-part": "relations" },
    h("h3", {}, "Relations"),
    known.length ? table(known.slice(0, RELATIONS)) : none,
    missing.length ? h("p", { class: "note" }, `${NOT_IMPORTED}: ${missing.map((one) => one.title).join(", ")}`) : null,
    known.length > RELATIONS
      ? h("details", { "data-more": "relations" }, h("summary", { "data-key": "more relations" }, `${known.length - RELATIONS} more`), table(known.slice(RELATIONS)))
      : null,
  );
}

function importedPart(atlas: Atlas, place: number): HTMLElement | null {
  if (!atlas.imported.length) return null;
  const row = (score: Imported): HTMLElement => {
    const value = score.values[place] ?? NaN;
    const title = h("th", { scope: "row", title: `from ${score.from}` }, `${score.title}${seedWords(score)}`);
    return h("tr", {}, title, h("td", { class: "number" }, Number.isNaN(value) ? NOT_IMPORTED : decimal(value, 3)));
  };
  return h(
    "section",
    { class: "card-part", "data-part": "imported" },
    h("h3", {}, "Imported"),
    h("p", { class: "note" }, "scores made elsewhere, as their tables give them"),
    h("table", {}, h("tbody", {}, ...atlas.imported.map(row))),
  );
}

function bar(value: number, kind: string, strong: boolean): HTMLElement {
  if (Number.isNaN(value)) return h("span", { class: `bar ${kind}` }, h("span", { title: "no score" }, "–"));
  return h(
    "span",
    { class: `bar ${kind}${strong ? " strong" : ""}` },
    s("svg", { width: 60, height: 10, "aria-hidden": "true" }, s("rect", { x: kind === "suppress" ? 60 * (1 - value) : 0, y: 0, width: 60 * value, height: 10 })),
    h("span", {}, value.toFixed(2)),
  );
}

function effectsPart(atlas: Atlas, place: number): HTMLElement | null {
  if (!atlas.effects.length) return null;
  const onlyNats = atlas.effects.every((effect) => effect.unit === "nats");
  return h(
    "section",
    { class: "card-part", "data-part": "effects" },
    h("h3", {}, onlyNats ? "What it does to the loss by itself" : "What it does by itself"),
    h("p", { class: "note" }, `${onlyNats ? "nats; " : ""}above 0 the task wants the head; rank 1 helps most`),
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...["task", "method", onlyNats ? "nats" : "effect", "rank"].map((text) => h("th", { scope: "col" }, text)))),
      h(
        "tbody",
        {},
        ...atlas.effects.map((effect) => {
          const value = effect.values[place] ?? NaN;
          const missing = effect.imported ? NOT_IMPORTED : "not measured";
          const numbers = Number.isNaN(value) ? [missing, "–"] : [decimal(value, 3, true) + (onlyNats ? "" : ` ${effect.unit}`), String(rankOf(atlas, effect, place))];
          return h("tr", {}, h("td", {}, effect.task), h("td", {}, methodWords(effect)), ...numbers.map((text) => h("td", { class: "number" }, text)));
        }),
      ),
    ),
  );
}

/** How many heads help as much or more, this one included, as on the card of the command line. */
export function rankOf(atlas: Atlas, effect: Effect, place: number): number {
  const value = effect.values[place] ?? NaN;
  return atlas.places.filter((other) => (effect.values[other] ?? NaN) >= value).length;
}

function contrastsPart(atlas: Atlas, place: number): HTMLElement | null {
  if (!atlas.contrasts.length) return null;
  const row = (contrast: Contrast): HTMLElement => {
    const gates = contrast.seeds.map((_, seed) => contrast.gates[seed * atlas.size + place] ?? NaN);
    const open = gates.filter((gate) => gate >= OPEN).length;
    const mean = meanGates(atlas, contrast)[place] ?? NaN;
    return h("tr", {}, h("td", {}, `keep ${contrast.retain}, forget ${contrast.forget}`), h("td", { class: "number" }, mean.toFixed(2)), h("td", { class: "number" }, `${open} of ${gates.length}`));
  };
  return h(
    "section",
    { class: "card-part", "data-part": "contrasts" },
    h("h3", {}, "Contrasts"),
    h("p", { class: "note" }, "a shut head serves the task to forget, or neither"),
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...["contrast", "mean gate", "seeds with an open gate"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, ...atlas.contrasts.map(row)),
    ),
  );
}

function salientPart(atlas: Atlas, place: number): HTMLElement | null {
  const salient = atlas.salient;
  if (!salient) return null;
  const rows: HTMLElement[] = [];
  for (let number = 0; number < salient.perHead; number++) {
    const at = place * salient.perHead + number;
    if (!((salient.strengths[at] ?? 0) > 0)) continue;
    const mapped: string[] = [];
    for (let other = 0; other < salient.perToken; other++) {
      mapped.push(salient.texts[salient.mapped[at * salient.perToken + other] ?? -1] ?? "");
    }
    rows.push(
      h(
        "tr",
        {},
        h("td", {}, token(salient.texts[salient.sources[at] ?? -1] ?? "")),
        h("td", { class: "number" }, (salient.strengths[at] ?? NaN).toFixed(1)),
        h("td", { class: "mapped" }, ...mapped.map(token)),
      ),
    );
  }
  return h(
    "section",
    { class: "card-part", "data-part": "salient" },
    h("h3", {}, "Tokens that it amplifies"),
    rows.length
      ? h(
          "table",
          { class: "tokens" },
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "token"), h("th", { scope: "col" }, "times"), h("th", { scope: "col" }, "becomes"))),
          h("tbody", {}, ...rows),
        )
      : h("p", { class: "note" }, "none: it writes nothing"),
  );
}

function token(text: string): HTMLElement {
  return h("bdi", { class: "token", title: shown(text, 200) }, shown(text));
}

function neighboursPart(atlas: Atlas, place: number, options: CardOptions): HTMLElement {
  const link = (other: number): HTMLElement => {
    const made = h("button", { type: "button", class: "head-link", title: atlas.labels[other] ?? "", "data-key": `near ${nameOf(atlas, other)}` }, nameOf(atlas, other));
    made.addEventListener("click", () => options.choose(other));
    return made;
  };
  const same = group(atlas, place);
  return h(
    "section",
    { class: "card-part", "data-part": "neighbours" },
    h("h3", {}, "Neighbours"),
    same.length ? h("p", {}, "same keys and values: ", ...same.map(link)) : null,
    h("p", {}, "most alike in gates and relations: ", ...similar(atlas, options.profiles, place, 5).map(link)),
  );
}
