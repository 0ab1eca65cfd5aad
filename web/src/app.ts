// The page: what the reader has chosen, and everything that is drawn from it.
import { drawCard } from "./card";
import { nameOf, placeOf, type Atlas, type Task } from "./atlas";
import { PALETTES, blend, categoryColours, css, diverging, heat, rgb, type Palette, type Rgb } from "./colour";
import { download, downloadPng } from "./download";
import { h, labelled, percent, put, select } from "./dom";
import { dimmed } from "./filter";
import { HeadGrid, type Host, type Look } from "./grid";
import {
  OVER,
  ROLES,
  SCORES,
  categoryMaps,
  categoryWords,
  count,
  profiles,
  scoreMap,
  share,
  type Over,
  type Score,
} from "./scores";
import { DEFAULTS, decodeState, encode, type State } from "./state";
import { columns, csv, drawTable, sorted } from "./table";

const WORDS: Readonly<Record<Over, string>> = { always: "Always", any: "Any", mean: "Mean" };

const DARK = window.matchMedia("(prefers-color-scheme: dark)");

interface Panel {
  readonly grid: HeadGrid;
  /** what it shows now; null hides it */
  readonly look: () => { title: string; note?: string; look: Omit<Look, "dimmed" | "headsAcross" | "zeroAtBottom">; layersAcross?: boolean } | null;
}

export class App implements Host {
  private state: State;
  private atlas: Atlas;
  private panels: Panel[] = [];
  private hovered: number | null = null;
  private profiles: Float32Array[] = [];
  private waiting = false;
  private readonly tip = h("div", { class: "tip", "aria-hidden": "true", hidden: true });
  private readonly card = h("div", { class: "card-body" });
  private readonly aside = h("aside", { class: "card", "aria-labelledby": "card-title", tabindex: -1 });
  private readonly live = h("div", { class: "sr", "aria-live": "polite", id: "live" });
  private readonly main = h("main", {});
  private readonly table = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "all heads" });
  private tableKey = "";
  private readonly counts = h("p", { class: "counts", "aria-live": "polite" });

  constructor(
    private readonly root: HTMLElement,
    private readonly atlases: readonly Atlas[],
  ) {
    this.state = this.sound(decodeState(location.hash));
    this.atlas = this.current();
    this.build();
    window.addEventListener("hashchange", () => {
      if (encode(this.state) !== location.hash.replace(/^#/, "")) this.set(decodeState(location.hash), true);
    });
    window.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.state.head) this.set({ head: "" });
    });
    DARK.addEventListener("change", () => this.later());
    let width = window.innerWidth;
    window.addEventListener("resize", () => {
      if (window.innerWidth !== width) {
        width = window.innerWidth;
        this.later();
      }
    });
  }

  // Host

  hover(place: number | null, at?: { x: number; y: number; text: string }): void {
    this.tip.hidden = !at;
    if (at) {
      this.tip.textContent = at.text;
      this.tip.style.left = `${Math.min(at.x + 14, window.innerWidth - this.tip.offsetWidth - 8)}px`;
      this.tip.style.top = `${at.y + 16}px`;
    }
    if (place !== this.hovered) {
      this.hovered = place;
      this.markAll();
    }
  }

  choose(place: number): void {
    this.set({ head: nameOf(this.atlas, place) });
  }

  // State

  private current(): Atlas {
    return this.atlases[this.state.atlas] ?? (this.atlases[0] as Atlas);
  }

  /** What an address may ask for and this atlas does not have is as by default. */
  private sound(state: State): State {
    const atlas = this.atlases[state.atlas] ?? (this.atlases[0] as Atlas);
    const tasks = atlas.tasks.map((task) => task.name);
    const keep = (name: string, known: readonly string[]): string => (known.includes(name) ? name : "");
    return {
      ...state,
      atlas: this.atlases[state.atlas] ? state.atlas : 0,
      head: placeOf(atlas, state.head) === null ? "" : nameOf(atlas, placeOf(atlas, state.head) as number),
      task: keep(state.task, tasks),
      category: keep(state.category, atlas.categories),
      relation: keep(state.relation, atlas.relations.map((one) => one.name)),
      one: keep(state.one, tasks) || (tasks[0] ?? ""),
      other: keep(state.other, tasks) || (tasks[1] ?? tasks[0] ?? ""),
    };
  }

  private set(change: Partial<State>, fromAddress = false): void {
    const before = this.state;
    this.state = this.sound({ ...(fromAddress ? DEFAULTS : before), ...change });
    history.replaceState(null, "", `#${encode(this.state)}`);
    if (before.atlas !== this.state.atlas || fromAddress) {
      this.atlas = this.current();
      this.build();
      return;
    }
    const only = Object.keys(change).length === 1 && "head" in change;
    if (only) {
      this.markAll();
      this.drawCard();
      this.drawTable();
    } else this.later();
  }

  private later(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  private selected(): number | null {
    return this.state.head ? placeOf(this.atlas, this.state.head) : null;
  }

  private palette(): Palette {
    return PALETTES[this.state.colours] as Palette;
  }

  // Building

  private build(): void {
    const { atlas } = this;
    const { model } = atlas;
    this.profiles = profiles(atlas);
    this.panels = [];
    this.tableKey = "";
    const seeds = atlas.tasks.map((task) => `${task.title} (${task.seeds.length} seeds)`);
    const facts = [
      `${atlas.places.length.toLocaleString("en")} heads in ${model.layers} layers`,
      ...(seeds.length ? [seeds.join(", ")] : []),
      ...(atlas.relations.length ? [`${atlas.relations.length} relations`] : []),
    ];
    const header = h(
      "header",
      {},
      h("h1", {}, model.name),
      h("p", {}, facts.join(" · ")),
      this.atlases.length > 1
        ? labelled(
            "Model",
            select(
              this.atlases.map((one, number) => [String(number), one.model.name] as const),
              String(this.state.atlas),
              (value) => this.set({ atlas: Number(value), head: "", one: "", other: "", task: "" }),
              { id: "model" },
            ),
          )
        : null,
    );
    put(this.main, this.words(), ...this.sections());
    put(this.aside, this.card);
    put(
      this.root,
      h("a", { class: "skip", href: "#main" }, "to the maps"),
      header,
      this.controls(),
      h("div", { class: "columns" }, this.main, this.aside),
      this.live,
      this.tip,
    );
    this.main.id = "main";
    this.draw();
  }

  private words(): HTMLElement {
    const { atlas } = this;
    const byQuestion = new Map<string, HTMLElement[]>();
    for (const one of atlas.findings) {
      const p = one.adjusted === null ? "" : ` (adjusted p ${one.adjusted < 0.001 ? "< 0.001" : one.adjusted.toFixed(3)})`;
      const said = one.published ? h("span", { class: "note" }, ` Published, of other models: ${one.published}.`) : null;
      const item = h("li", {}, `${one.text}${p}`, said);
      byQuestion.set(one.question, [...(byQuestion.get(one.question) ?? []), item]);
    }
    return h(
      "section",
      { class: "words", id: "words" },
      h("h2", {}, "In words"),
      h("ul", {}, ...atlas.headlines.map((text) => h("li", {}, text))),
      h(
        "details",
        {},
        h("summary", {}, `all ${atlas.findings.length} findings`),
        ...[...byQuestion].map(([question, items]) => h("div", {}, h("h3", {}, question), h("ul", {}, ...items))),
      ),
    );
  }

  private panel(name: string, look: Panel["look"]): HTMLElement {
    const grid = new HeadGrid(this.atlas, this, name);
    this.panels.push({ grid, look });
    const save = (kind: string, work: () => void): HTMLElement => {
      const button = h("button", { type: "button", class: "save", "aria-label": `${name} as ${kind}` }, kind);
      button.addEventListener("click", work);
      return button;
    };
    const file = `${this.atlas.model.name}-${name}`.replace(/[^A-Za-z0-9._-]+/g, "-");
    grid.element.append(
      h(
        "figcaption",
        { class: "saves" },
        grid.axes,
        save("SVG", () => download(`${file}.svg`, grid.toSvg(), "image/svg+xml")),
        save("PNG", () => downloadPng(`${file}.png`, grid.canvas())),
      ),
    );
    return grid.element;
  }

  private sections(): HTMLElement[] {
    const { atlas } = this;
    const found: HTMLElement[] = [];
    if (atlas.tasks.length) {
      const rows = atlas.tasks.map((task) =>
        h(
          "div",
          { class: "both" },
          ...(["always", "any"] as const).map((over) => this.panel(`${task.title} ${WORDS[over]}`, () => this.agreement(task, over))),
        ),
      );
      found.push(
        h(
          "section",
          { id: "agreement" },
          h("h2", {}, "Which heads a task needs"),
          this.counts,
          h("div", { class: "maps" }, ...rows),
          this.key(),
        ),
      );
    }
    if (atlas.relations.length) {
      const each = ["", ...atlas.categories].map((name) =>
        this.panel(name ? `Category ${name}` : "All categories", () => this.categoryMap(name)),
      );
      found.push(
        h(
          "section",
          { id: "categories" },
          h("h2", {}, "What heads are by their weights"),
          h("div", { class: "maps" }, ...each),
          h("ul", { class: "legend", id: "legend" }),
        ),
      );
    }
    const pair = h("div", { class: "pair" });
    found.push(pair);
    pair.append(
      h(
        "section",
        { id: "single" },
        h("h2", {}, "One score"),
        labelled("Show", select(this.choices(), this.state.show || (this.choices()[0]?.[0] ?? ""), (show) => this.set({ show }), { id: "show" })),
        h("div", { class: "maps" }, this.panel("One score", () => this.single())),
      ),
    );
    if (atlas.tasks.length > 1) {
      const tasks = atlas.tasks.map((task) => [task.name, task.title] as const);
      pair.append(
        h(
          "section",
          { id: "difference" },
          h("h2", {}, "Two tasks compared"),
          h(
            "div",
            { class: "fields" },
            labelled("Task", select(tasks, this.state.one, (one) => this.set({ one }), { id: "one" })),
            labelled("less", select(tasks, this.state.other, (other) => this.set({ other }), { id: "other" })),
            labelled("in", select(SCORES.map((one) => [one, one] as const), this.state.score, (score) => this.set({ score: score as Score }))),
          ),
          h("div", { class: "maps" }, this.panel("Difference", () => this.difference())),
        ),
      );
    }
    if (this.atlases.length > 1) found.push(...this.modelSection());
    const save = h("button", { type: "button", id: "csv" }, "these heads as CSV");
    save.addEventListener("click", () => {
      const all = columns(this.atlas, this.state);
      download(`${this.atlas.model.name}-heads.csv`.replace(/[^A-Za-z0-9._-]+/g, "-"), csv(this.left(all), all), "text/csv");
    });
    found.push(h("section", { id: "heads" }, h("h2", {}, "All heads"), save, this.table));
    return found;
  }

  private modelSection(): HTMLElement[] {
    const other = this.atlases[1 - this.state.atlas] as Atlas;
    const common = this.atlas.tasks.filter((task) => other.tasks.some((one) => one.name === task.name));
    const same = other.model.layers === this.atlas.model.layers && other.model.width === this.atlas.model.width;
    if (!same || !common.length) {
      return [
        h(
          "section",
          { id: "models" },
          h("h2", {}, "Two models compared"),
          h("p", {}, same ? "They have no task in common." : "They differ in shape: there is no head to compare with another."),
        ),
      ];
    }
    return [
      h(
        "section",
        { id: "models" },
        h("h2", {}, `${this.atlas.model.name} less ${other.model.name}`),
        h("div", { class: "maps two" }, ...common.map((task) => this.panel(`${task.title} between models`, () => this.between(task, other)))),
      ),
    ];
  }

  /** What the colours of the agreement maps mean. */
  private key(): HTMLElement {
    return h("ul", { class: "legend", id: "key" });
  }

  private choices(): (readonly [string, string])[] {
    const { atlas } = this;
    return [
      ...atlas.tasks.flatMap((task) =>
        SCORES.flatMap((score) => OVER.map((over) => [`task|${task.name}|${score}|${over}`, `${task.title}: ${score}, ${WORDS[over].toLowerCase()}`] as const)),
      ),
      ...atlas.relations.map((one) => [`relation|${one.name}`, `relation: ${one.title}`] as const),
      ...atlas.effects.map((one) => [`effect|${one.task}|${one.method}`, `effect: ${one.task}, ${one.method}`] as const),
    ];
  }

  private controls(): HTMLElement {
    const { atlas, state } = this;
    const slider = (key: "threshold" | "implements", text: string): HTMLElement => {
      const output = h("output", {}, state[key].toFixed(2));
      const input = h("input", { type: "range", min: 0, max: 1, step: 0.01, value: state[key], id: key });
      input.addEventListener("input", () => {
        output.textContent = Number(input.value).toFixed(2);
        this.set({ [key]: Number(input.value) });
      });
      return h("label", { class: "field" }, h("span", {}, text), input, output);
    };
    const search = h("input", { type: "search", id: "search", placeholder: "L5H3 or a relation", list: "known", autocomplete: "off" });
    search.addEventListener("change", () => this.find(search));
    const cut = h("input", { type: "checkbox", id: "cut" });
    cut.checked = state.cut;
    cut.addEventListener("change", () => this.set({ cut: cut.checked }));
    const layer = (key: "from" | "to", text: string, value: number): HTMLElement => {
      const input = h("input", { type: "number", min: 0, max: atlas.model.layers - 1, value, id: key });
      input.addEventListener("change", () => this.set({ [key]: Math.max(0, Math.min(atlas.model.layers - 1, Number(input.value) || 0)) }));
      return labelled(text, input);
    };
    const option = (values: readonly string[], none: string): (readonly [string, string])[] => [["", none], ...values.map((one) => [one, one] as const)];
    const reset = h("button", { type: "button", id: "reset" }, "no filters");
    reset.addEventListener("click", () => {
      const { role, task, when, category, relation, from, to } = DEFAULTS;
      this.set({ role, task, when, category, relation, from, to });
      this.build();
    });
    const last = state.to < 0 ? atlas.model.layers - 1 : state.to;
    return h(
      "form",
      { class: "controls", role: "search", "aria-label": "choose what is shown" },
      h("datalist", { id: "known" }, ...atlas.relations.map((one) => h("option", { value: one.title }))),
      labelled("Find", search),
      atlas.tasks.length ? slider("threshold", "Role from") : null,
      atlas.tasks.length ? labelled("cut at it", cut) : null,
      atlas.relations.length ? slider("implements", "Relation from") : null,
      atlas.relations.length
        ? labelled("Direction", select([["promote", "promotes"], ["suppress", "suppresses"]], state.direction, (value) => this.set({ direction: value as State["direction"] }), { id: "direction" }))
        : null,
      h(
        "details",
        { class: "more", open: dimmed(atlas, state) !== null },
        h("summary", {}, "Filter"),
        h(
          "div",
          { class: "fields" },
          atlas.tasks.length ? labelled("Role", select(option(ROLES, "any role"), state.role, (role) => this.set({ role }), { id: "role" })) : null,
          atlas.tasks.length
            ? labelled("in", select([["", "any task"], ...atlas.tasks.map((task) => [task.name, task.title] as const)], state.task, (task) => this.set({ task }), { id: "task" }))
            : null,
          atlas.tasks.length ? labelled("seeds", select(OVER.map((one) => [one, WORDS[one]] as const), state.when, (when) => this.set({ when: when as Over }), { id: "when" })) : null,
          atlas.relations.length ? labelled("Category", select(option(atlas.categories, "any"), state.category, (category) => this.set({ category }), { id: "category" })) : null,
          layer("from", "Layers from", state.from),
          layer("to", "to", last),
          reset,
        ),
      ),
      h(
        "details",
        { class: "more" },
        h("summary", {}, "Look"),
        h(
          "div",
          { class: "fields" },
          labelled("Axes", select([["published", "as published"], ["heads", "heads across"], ["layers", "layers across"]], state.axes, (axes) => this.set({ axes: axes as State["axes"] }), { id: "axes" })),
          labelled("Layer 0", select([["bottom", "at the bottom"], ["top", "at the top"]], state.zero, (zero) => this.set({ zero: zero as State["zero"] }), { id: "zero" })),
          labelled("Colours", select([["paper", "as published"], ["safe", "colour-blind safe"]], state.colours, (colours) => this.set({ colours: colours as State["colours"] }), { id: "colours" })),
          labelled("Theme", select([["auto", "as the system"], ["light", "light"], ["dark", "dark"]], state.theme, (theme) => this.set({ theme: theme as State["theme"] }), { id: "theme" })),
        ),
      ),
    );
  }

  private find(input: HTMLInputElement): void {
    const text = input.value.trim();
    const place = placeOf(this.atlas, text);
    if (place !== null) {
      this.set({ head: nameOf(this.atlas, place) });
      this.live.textContent = `${nameOf(this.atlas, place)} is chosen`;
      return;
    }
    const wanted = text.toLowerCase();
    const relation = wanted && this.atlas.relations.find((one) => one.title.toLowerCase() === wanted || one.name === wanted)
      || (wanted && this.atlas.relations.find((one) => one.title.toLowerCase().includes(wanted)));
    if (relation) {
      this.set({ relation: relation.name, show: `relation|${relation.name}` });
      const show = document.getElementById("show") as HTMLSelectElement | null;
      if (show) show.value = `relation|${relation.name}`;
      this.live.textContent = `heads that implement ${relation.title}`;
    } else this.live.textContent = text ? `nothing is called ${text}` : "";
  }

  // What maps show

  private agreement(task: Task, over: "always" | "any"): ReturnType<Panel["look"]> {
    const helping = scoreMap(task, "facilitation", over);
    const hurting = scoreMap(task, "interference", over);
    const { threshold, cut } = this.state;
    const least = Math.fround(threshold);
    const palette = this.palette();
    const at = (map: Float32Array, place: number): number => {
      const value = map[place] ?? 0;
      return cut ? Number(value >= least) : value;
    };
    return {
      title: `${task.title} (${WORDS[over]})`,
      note: `${percent(share(this.atlas, helping, threshold))} help, ${percent(share(this.atlas, hurting, threshold))} hurt`,
      look: {
        colour: (place) => blend(palette, at(helping, place), at(hurting, place)),
        words: (place) => `facilitation ${(helping[place] ?? NaN).toFixed(2)}, interference ${(hurting[place] ?? NaN).toFixed(2)}`,
      },
    };
  }

  private categoryMap(name: string): ReturnType<Panel["look"]> {
    const { atlas } = this;
    const { direction } = this.state;
    const colours = categoryColours(this.palette(), atlas.categories);
    const rgbs = new Map([...colours].map(([word, hex]) => [word, rgb(hex)] as const));
    const words = categoryWords(atlas, direction, this.state.implements);
    const map = name ? categoryMaps(atlas, direction, this.state.implements).get(name) : null;
    const word = (place: number): string => (map ? (map[place] ? name : "") : (words[place] ?? ""));
    const total = atlas.places.filter((place) => word(place)).length;
    return {
      title: name ? name[0]?.toUpperCase() + name.slice(1) : "All categories",
      note: `${total} heads`,
      layersAcross: true,
      look: {
        colour: (place) => rgbs.get(word(place)) as Rgb,
        words: (place) => word(place) || "unclassified",
      },
    };
  }

  private single(): ReturnType<Panel["look"]> {
    const show = this.state.show || this.choices()[0]?.[0] || "";
    const [kind, first = "", second = "", third = ""] = show.split("|");
    const palette = this.palette();
    if (kind === "effect") {
      const effect = this.atlas.effects.find((one) => one.task === first && one.method === second);
      if (!effect) return null;
      const sizes = this.atlas.places.map((place) => Math.abs(effect.values[place] ?? 0)).sort((one, other) => one - other);
      const most = sizes[Math.floor(0.98 * (sizes.length - 1))] || 1;
      return {
        title: `${first}: ${second}`,
        note: `±${most.toPrecision(2)} nats`,
        look: {
          colour: (place) => diverging(palette, (effect.values[place] ?? 0) / most),
          words: (place) => `${(effect.values[place] ?? NaN).toFixed(3)} nats`,
        },
      };
    }
    const relation = kind === "relation" ? this.atlas.relations.find((one) => one.name === first) : undefined;
    const task = kind === "task" ? this.atlas.tasks.find((one) => one.name === first) : undefined;
    const map = relation ? relation[this.state.direction] : task ? scoreMap(task, second as Score, third as Over) : null;
    if (!map) return null;
    const least = relation ? this.state.implements : this.state.threshold;
    return {
      title: relation ? `${relation.title} (${this.state.direction})` : `${task?.title}: ${second}, ${third}`,
      note: `${count(this.atlas, map, least)} heads from ${least.toFixed(2)}`,
      layersAcross: Boolean(relation),
      look: { colour: (place) => heat(palette, map[place] ?? 0), words: (place) => (map[place] ?? NaN).toFixed(2) },
    };
  }

  private difference(): ReturnType<Panel["look"]> {
    const [one, other] = [this.state.one, this.state.other].map((name) => this.atlas.tasks.find((task) => task.name === name));
    if (!one || !other) return null;
    return this.less(`${one.title} less ${other.title}`, scoreMap(one, this.state.score, "mean"), scoreMap(other, this.state.score, "mean"));
  }

  private between(task: Task, atlas: Atlas): ReturnType<Panel["look"]> {
    const other = atlas.tasks.find((one) => one.name === task.name);
    if (!other) return null;
    return this.less(task.title, scoreMap(task, this.state.score, "mean"), scoreMap(other, this.state.score, "mean"));
  }

  private less(title: string, one: Float32Array, other: Float32Array): ReturnType<Panel["look"]> {
    const palette = this.palette();
    return {
      title,
      note: `mean ${this.state.score}`,
      look: {
        colour: (place) => diverging(palette, (one[place] ?? 0) - (other[place] ?? 0)),
        words: (place) => `${(one[place] ?? NaN).toFixed(2)} less ${(other[place] ?? NaN).toFixed(2)}`,
      },
    };
  }

  // Drawing

  private draw(): void {
    const { theme } = this.state;
    document.documentElement.dataset["theme"] = theme === "auto" ? (DARK.matches ? "dark" : "light") : theme;
    const left = dimmed(this.atlas, this.state);
    const phone = window.innerWidth < 720;
    for (const panel of this.panels) {
      const found = panel.look();
      panel.grid.element.hidden = !found;
      if (!found) continue;
      panel.grid.setTitle(found.title, found.note);
      const { axes } = this.state;
      const headsAcross = axes === "published" ? !found.layersAcross : axes === "heads";
      const half = phone ? window.innerWidth : (this.main.clientWidth - 26) / 2 - 28;
      const width = headsAcross ? Math.max(200, Math.min(460, half, this.atlas.model.width * 20 + 26)) : Math.max(300, Math.min(640, half, this.atlas.model.layers * 18 + 26));
      const room = Math.min(width, (this.main.clientWidth || 700) - 8);
      panel.grid.draw(
        { ...found.look, dimmed: left, headsAcross, zeroAtBottom: this.state.zero === "bottom" },
        { width: phone ? Math.min(room, window.innerWidth - 40) : room, height: headsAcross ? 420 : 380 },
      );
    }
    this.markAll();
    this.drawLegends();
    this.drawCounts(left);
    this.drawCard();
    this.drawTable();
  }

  private markAll(): void {
    const selected = this.selected();
    for (const panel of this.panels) panel.grid.mark(selected, this.hovered);
  }

  private drawLegends(): void {
    const palette = this.palette();
    const item = (colour: string, text: string): HTMLElement => {
      const box = h("span", { class: "swatch" });
      box.style.background = colour;
      return h("li", {}, box, text);
    };
    const key = document.getElementById("key");
    if (key) {
      put(
        key,
        item(css(palette.helps), "facilitates"),
        item(css(palette.hurts), "interferes"),
        item(css(palette.both), "both (in different seeds)"),
        item(css(palette.neither), "neither"),
      );
    }
    const legend = document.getElementById("legend");
    if (legend) {
      const words = new Set(categoryWords(this.atlas, this.state.direction, this.state.implements));
      const colours = categoryColours(palette, this.atlas.categories);
      put(legend, ...[...colours].filter(([word]) => words.has(word) || this.atlas.categories.includes(word)).map(([word, colour]) => item(colour, word || "unclassified")));
    }
  }

  private drawCounts(left: Uint8Array | null): void {
    const { atlas, state } = this;
    const shown = left ? atlas.places.filter((place) => !left[place]).length : atlas.places.length;
    const parts = atlas.tasks.map((task) => {
      const both = (over: "always" | "any"): string => String(count(atlas, scoreMap(task, "facilitation", over), state.threshold));
      return `${task.title}: ${both("always")} heads facilitate always, ${both("any")} in any seed`;
    });
    this.counts.textContent = `From ${state.threshold.toFixed(2)} on: ${parts.join("; ")}.${left ? ` The filter leaves ${shown} heads.` : ""}`;
  }

  private drawCard(): void {
    const place = this.selected();
    this.aside.classList.toggle("empty", place === null);
    if (place === null) {
      put(this.card, h("h2", { id: "card-title" }, "A head"), h("p", { class: "note" }, "Click a cell, or walk the maps with the arrow keys: the head's card stands here."));
      return;
    }
    drawCard(this.card, this.atlas, place, {
      threshold: this.state.threshold,
      implements: this.state.implements,
      palette: this.palette(),
      profiles: this.profiles,
      choose: (other) => this.choose(other),
      close: () => this.set({ head: "" }),
    });
  }

  private left(all: ReturnType<typeof columns>): number[] {
    const out = dimmed(this.atlas, this.state);
    return sorted(this.atlas.places.filter((place) => !out?.[place]), all, this.state.sort);
  }

  private drawTable(): void {
    const { head, when, direction, sort } = this.state;
    const out = dimmed(this.atlas, this.state);
    const needed = JSON.stringify([this.state.atlas, head, when, direction, sort, this.state.implements, out && [...out].join("")]);
    if (needed === this.tableKey) return;
    this.tableKey = needed;
    const all = columns(this.atlas, this.state);
    drawTable(this.table, this.atlas, this.left(all), all, this.state, (place) => this.choose(place), (sort) => this.set({ sort }));
  }
}
