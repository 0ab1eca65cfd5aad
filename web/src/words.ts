// What the atlas says in words: findings, how its maps were made, and what speaks against believing them.
import type { Atlas, Finding } from "./atlas";
import { h } from "./dom";

export function wordsPart(atlas: Atlas): HTMLElement {
  const doubts = atlas.tasks.reduce((sum, task) => sum + task.doubts.length, 0);
  return h(
    "section",
    { class: "words", id: "words" },
    h("h2", {}, "In words"),
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
    ),
  );
}

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
    h("summary", {}, `all ${all.length} findings`),
    ...[...byQuestion].map(([question, items]) => h("div", {}, h("h3", {}, question), h("ul", {}, ...items))),
  );
}

function made(atlas: Atlas): HTMLElement {
  const { model } = atlas;
  const facts = [
    model.architecture,
    `${model.parameters.toLocaleString("en")} parameters`,
    model.dtype,
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
        task.doubts.length ? h("ul", {}, ...task.doubts.map((text) => h("li", { class: "doubt" }, `doubtful: ${text}`))) : null,
      ),
    ),
    tools.length ? h("li", {}, `with ${tools.join(", ")}`) : null,
  );
}
