// The form above the maps: what is looked for, from which score on a head counts, filters and looks.
import type { Atlas } from "./atlas";
import { h, labelled, select } from "./dom";
import { dimmed } from "./filter";
import { OVER_WORDS } from "./looks";
import { OVER, ROLES } from "./scores";
import { DEFAULTS, LEAST, type State } from "./state";

export interface Controls {
  readonly element: HTMLElement;
  /** shows what is chosen, whoever chose it */
  readonly sync: (state: State) => void;
}

type Option = readonly [value: string, text: string];

export function makeControls(
  atlas: Atlas,
  set: (change: Partial<State>) => void,
  find: (text: string) => string,
): Controls {
  const shows: ((state: State) => void)[] = [];
  const last = atlas.model.layers - 1;

  const choice = (key: keyof State, text: string, options: readonly Option[]): HTMLElement => {
    const made = select(options, "", (value) => set({ [key]: value }), { id: key });
    shows.push((state) => (made.value = String(state[key])));
    return labelled(text, made);
  };
  const slider = (key: "threshold" | "implements", text: string): HTMLElement => {
    const output = h("output", {});
    const input = h("input", { type: "range", min: LEAST, max: 1, step: 0.01, id: key });
    input.addEventListener("input", () => set({ [key]: Number(input.value) }));
    shows.push((state) => {
      output.textContent = state[key].toFixed(2);
      input.value = String(state[key]);
    });
    return h("label", { class: "field" }, h("span", {}, text), input, output);
  };
  const layer = (key: "from" | "to", text: string): HTMLElement => {
    const input = h("input", { type: "number", min: 0, max: last, id: key });
    const usual = key === "from" ? 0 : -1;
    input.addEventListener("change", () => {
      const value = input.value.trim() === "" ? usual : Math.max(0, Math.min(last, Math.round(Number(input.value))));
      set({ [key]: key === "to" && value === last ? usual : value });
    });
    shows.push((state) => (input.value = String(state[key] < 0 ? last : state[key])));
    return labelled(text, input);
  };

  const search = h("input", { type: "search", id: "search", placeholder: "L5H3 or a relation", list: "known", autocomplete: "off" });
  const said = h("output", { id: "said", class: "note" });
  const look = (): void => {
    said.textContent = find(search.value.trim());
  };
  search.addEventListener("change", look);
  const cut = h("input", { type: "checkbox", id: "cut" });
  cut.addEventListener("change", () => set({ cut: cut.checked }));
  shows.push((state) => (cut.checked = state.cut));
  shows.push((state) => {
    // in which task does it have the role?
    for (const task of element.querySelectorAll<HTMLSelectElement>("#task, #without")) task.disabled = !state.role;
  });
  const reset = h("button", { type: "button", id: "reset" }, "no filters");
  reset.addEventListener("click", () => {
    const { role, task, without, when, category, relation, from, to } = DEFAULTS;
    set({ role, task, without, when, category, relation, from, to });
  });
  const left = h("output", { id: "left", "aria-live": "polite" });
  const filters = h(
    "details",
    { class: "more", id: "filters" },
    h("summary", {}, "Filter"),
    h(
      "div",
      { class: "fields" },
      ...(atlas.tasks.length
        ? [
            choice("role", "Role", [["", "any"], ...ROLES.map((one): Option => [one, one])]),
            choice("task", "in", [["", "any task"], ...atlas.tasks.map((task): Option => [task.name, task.title])]),
            choice("without", "but not in", [["", "–"], ...atlas.tasks.map((task): Option => [task.name, task.title])]),
            choice("when", "seeds", OVER.map((one): Option => [one, OVER_WORDS[one]])),
          ]
        : []),
      ...(atlas.relations.length
        ? [
            choice("category", "Category", [["", "any"], ...atlas.categories.map((one): Option => [one, one])]),
            choice("relation", "Relation", [["", "any"], ...atlas.relations.map((one): Option => [one.name, one.title])]),
          ]
        : []),
      layer("from", "Layers from"),
      layer("to", "to"),
      reset,
    ),
  );
  let filtered = false;
  shows.push((state) => {
    const out = dimmed(atlas, state);
    const total = atlas.places.length;
    left.textContent = out ? `${atlas.places.filter((place) => !out[place]).length} of ${total} heads left` : "";
    if (out && !filtered) filters.open = true; // a filter that is on is shown
    filtered = out !== null;
  });
  const element = h(
    "form",
    { class: "controls", role: "search", "aria-label": "choose what is shown" },
    h("datalist", { id: "known" }, ...atlas.relations.map((one) => h("option", { value: one.title }))),
    labelled("Find", search),
    said,
    ...(atlas.tasks.length ? [slider("threshold", "A role counts from"), labelled("maps as yes or no", cut)] : []),
    ...(atlas.relations.length
      ? [
          slider("implements", "a relation from"),
          choice("direction", "Direction", [["promote", "promotes"], ["suppress", "suppresses"]]),
        ]
      : []),
    filters,
    h(
      "details",
      { class: "more" },
      h("summary", {}, "Look"),
      h(
        "div",
        { class: "fields" },
        choice("axes", "Axes", [["published", "as published"], ["heads", "heads across"], ["layers", "layers across"]]),
        choice("zero", "Zero", [["bottom", "at the bottom"], ["top", "at the top"]]),
        choice("colours", "Colours", [["paper", "as published"], ["safe", "colour-blind safe"]]),
        choice("theme", "Theme", [["auto", "as the system"], ["light", "light"], ["dark", "dark"]]),
      ),
    ),
    left,
  );
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    look();
  });
  return { element, sync: (state) => shows.forEach((show) => show(state)) };
}
