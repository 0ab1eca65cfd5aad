// What the atlas says in words: findings, how its maps were made, and what speaks against believing them.
import { isImported, methodWords, relationWords, seedWords, type Atlas, type Contrast, type Figure, type Finding } from "./atlas";
import { decimal, h } from "./dom";

export function wordsPart(atlas: Atlas): HTMLElement {
  const doubts = [...atlas.tasks, ...atlas.effects, ...atlas.contrasts].reduce((sum, one) => sum + one.doubts.length, 0);
  return h(
    "section",
    { class: "words", id: "words" },
    h(
      "h2",
      {},
      "In words",
      h("span", { class: "note" }, ` at the thresholds ${atlas.threshold} (roles) and ${atlas.implements} (relations)`),
    ),
    h("ul", {}, ...atlas.headlines.map((text) => h("li", {}, text))),
    h(
      "div",
      { class: "asides" },
      atlas.findings.length ? findings(atlas.findings) : null,
      h(
        "details",
        { id: "made", open: doubts > 0 },
        h("summary", {}, `how it was made${doubts ? `, and ${doubts} doubt${doubts > 1 ? "s" : ""}` : ""}`),
        made(atlas),
      ),
      h("details", { id: "terms" }, h("summary", {}, "what the words mean"), h("dl", {}, ...TERMS.flatMap(([word, text]) => [h("dt", {}, word), h("dd", {}, text)]))),
    ),
  );
}

const TERMS: readonly (readonly [string, string])[] = [
  ["gate", "a number from 0 to 1 that a head's output is multiplied by; one for each head, learned for a task while the model stays as it is"],
  ["free, retain, remove", "first the gates are fitted freely; from there twice more, pushed towards 1 (retain, giving G+) and towards 0 (remove, giving G−)"],
  ["facilitation", "G−: the gate stays open although it is pushed shut, so the task needs the head"],
  ["interference", "1 less G+: the gate stays shut although it is pushed open, so the head harms the task"],
  ["irrelevance", "G+ times (1 less G−): the gate goes wherever it is pushed"],
  ["role", "the score that reaches the threshold in a seed. Anomaly: facilitation and interference both do; unclear: none does. Maps, counts and filters go by scores, so an anomaly counts as both"],
  ["always, any, mean", "the lowest, the highest and the mean score of a head over the seeds"],
  ["relation", "pairs such as France → Paris. Promotes: the share of pairs whose target is among the first tokens that the head writes for the source, read off its weights (or, marked so, in texts); suppresses: the same with its sign turned"],
  ["category", "what kind of relation a head implements from the threshold on"],
  ["effect", "how much the loss rises without the head alone: ablate (its output zero, the mean, or another text's), attribute (the gradient at its gate, or integrated), mediate (patched in from another text)"],
  ["contrast", "gates fitted to keep one task and destroy another; a shut head serves the task to forget, or neither"],
  ["imported", "a score that was made elsewhere, under the name and with the values of its table; of several seeds, the mean"],
  ["sufficiency", "how well the model does with only the first n heads of a method, from 0 (as without any) to 1 (as the whole); the area over n"],
];

function findings(all: readonly Finding[]): HTMLElement {
  const byQuestion = new Map<string, HTMLElement[]>();
  for (const one of all) {
    const p = one.adjusted === null ? "" : ` (adjusted p ${one.adjusted < 0.001 ? "< 0.001" : one.adjusted.toFixed(3)})`;
    const said = one.published ? h("span", { class: "note" }, ` Published, of other models: ${one.published}.`) : null;
    byQuestion.set(one.question, [...(byQuestion.get(one.question) ?? []), h("li", {}, `${one.text}${p}`, said)]);
  }
  return h(
    "details",
    {},
    h("summary", {}, all.length === 1 ? "the one finding" : `all ${all.length} findings`),
    ...[...byQuestion].map(([question, items]) => h("div", {}, h("h3", {}, question), h("ul", {}, ...items))),
  );
}

const FIGURES: readonly (readonly [Figure["key"], string])[] = [
  ["retain_nll", "keep: NLL"],
  ["retain_accuracy", "keep: accuracy"],
  ["forget_nll", "forget: NLL"],
  ["forget_accuracy", "forget: accuracy"],
];

/** What the gates of each contrast do to held-out items of both tasks. */
export function contrastTable(contrasts: readonly Contrast[]): HTMLElement {
  const cell = (contrast: Contrast, key: Figure["key"]): string => {
    const figure = contrast.figures.find((one) => one.key === key);
    if (!figure) return "–";
    const text = `${decimal(figure.before, 2)} → ${decimal(figure.after, 2)}`;
    const change = (value: number): string => decimal(value, 2, true);
    if (figure.low === null || figure.high === null) return text;
    return `${text} (${change(figure.after - figure.before)} [${change(figure.low)} to ${change(figure.high)}])`;
  };
  const head = ["contrast", "seeds", ...FIGURES.map(([, text]) => text)];
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))),
    h(
      "tbody",
      {},
      ...contrasts.map((one) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, `keep ${one.retain}, forget ${one.forget}`),
          h("td", { class: "number" }, String(one.seeds.length)),
          ...FIGURES.map(([key]) => h("td", { class: "number" }, cell(one, key))),
        ),
      ),
    ),
  );
}

function doubtList(doubts: readonly string[]): HTMLElement | null {
  return doubts.length ? h("ul", {}, ...doubts.map((text) => h("li", { class: "doubt" }, `doubtful: ${text}`))) : null;
}

function made(atlas: Atlas): HTMLElement {
  const { model } = atlas;
  const facts = [
    model.architecture,
    model.parameters === null ? "number of parameters unknown" : `${model.parameters.toLocaleString("en")} parameters`,
    model.dtype === "unknown" ? "dtype unknown" : model.dtype,
    ...(model.revision ? [`revision ${model.revision}`] : []),
  ];
  const tools = Object.entries(model.madeWith).map(([name, version]) => `${name} ${version}`);
  return h(
    "ul",
    {},
    h("li", {}, `model: ${facts.join(", ")}`),
    ...atlas.tasks.map((task) =>
      h(
        "li",
        {},
        `${task.title}: ${task.made}`,
        doubtList(task.doubts),
      ),
    ),
    ...atlas.effects
      .filter((one) => one.imported || one.made || one.doubts.length)
      .map((one) => h("li", {}, `${one.task}, ${methodWords(one)}${one.made ? `: ${one.made}` : ""}${one.uneven ? `; ${one.uneven}` : ""}`, doubtList(one.doubts))),
    ...atlas.contrasts.map((one) => h("li", {}, `keep ${one.retain}, forget ${one.forget}: ${one.seeds.length} seed${one.seeds.length > 1 ? "s" : ""}${one.made ? `; ${one.made}` : ""}`, doubtList(one.doubts))),
    ...atlas.imported.map((one) => h("li", {}, `${one.title}: imported from ${one.from}${seedWords(one)}`)),
    ...atlas.relations.filter(isImported).map((one) => h("li", {}, `relation ${relationWords(one)}`)),
    tools.length ? h("li", {}, `with ${tools.join(", ")}`) : null,
  );
}
