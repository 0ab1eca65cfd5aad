// The page: what the reader has chosen, and everything that is drawn from it.
import { Address } from "./address";
import { nameOf, placeOf, type Atlas, type Comparison } from "./atlas";
import { drawCard } from "./card";
import { comparison, sameShape, verdicts } from "./compare";
import { makeControls, type Controls } from "./controls";
import { fileName, h, keepingFocus, labelled, put, select } from "./dom";
import { download, downloadPng } from "./download";
import { dimmed } from "./filter";
import { HeadGrid, type Host } from "./grid";
import { legendPart } from "./legend";
import {
  OVER_WORDS,
  agreement,
  between,
  categories,
  categoryLegend,
  choices,
  contrasted,
  difference,
  ofImported,
  paletteOf,
  roleLegend,
  single,
  type Shown,
  type View,
} from "./looks";
import { SCORES, categoryNames, count, profiles, relationsOf, scoreMap, type Score } from "./scores";
import { roomFor, type Kind } from "./room";
import { lookUp } from "./search";
import { DEFAULTS, decodeState, encode, type State } from "./state";
import { STEP, columns, csv, drawTable, sorted } from "./table";
import { contrastTable, wordsPart } from "./words";

const DARK = window.matchMedia("(prefers-color-scheme: dark)");

interface Panel {
  readonly grid: HeadGrid;
  readonly kind: Kind;
  /** what it shows now; null hides it */
  readonly shown: (view: View) => Shown | null;
  readonly scale: HTMLElement;
}

export class App implements Host {
  /** what is not said in an address */
  private readonly usual: State;
  private state: State;
  private atlas: Atlas;
  private panels: Panel[] = [];
  private hovered: number | null = null;
  private profiles: Float32Array[] = [];
  private waiting = false;
  private controls: Controls | null = null;
  private tableKey = "";
  private rows = STEP;
  private lastGrid: HTMLElement | null = null;
  private readonly link = new Address(() => this.address());
  private readonly watcher = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) this.panels.find(({ grid }) => grid.element === entry.target)?.grid.see(entry.isIntersecting);
    },
    { rootMargin: "400px" },
  );
  private tableTimer = 0;
  private readonly bar = h("div", { class: "bar-of-controls" });
  private readonly tip = h("div", { class: "tip", "aria-hidden": "true", hidden: true });
  private readonly card = h("div", { class: "card-body" });
  private readonly aside = h("aside", { class: "card", "aria-labelledby": "card-title", tabindex: -1 });
  private readonly live = h("div", { class: "sr", "aria-live": "polite", id: "live" });
  private readonly main = h("main", { id: "main", tabindex: -1 });
  private readonly table = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "all heads" });
  private readonly counts = h("p", { class: "counts", "aria-live": "polite" });
  private readonly roles = h("ul", { class: "legend", id: "key" });
  private readonly kinds = h("ul", { class: "legend", id: "legend" });
  private readonly importedKinds = h("ul", { class: "legend", id: "imported-legend" });

  constructor(
    private readonly root: HTMLElement,
    private readonly atlases: readonly Atlas[],
    private readonly comparisons: readonly Comparison[],
  ) {
    const { threshold, implements: least } = atlases[0] as Atlas;
    this.usual = { ...DEFAULTS, threshold, implements: least };
    this.state = this.sound(decodeState(location.hash, this.usual));
    this.atlas = this.current();
    this.build();
    window.addEventListener("hashchange", () => {
      if (this.address() !== location.hash) this.set(decodeState(location.hash, this.usual), true);
    });
    window.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.target instanceof HTMLInputElement) return;
      this.hover(null);
      if (this.state.head) this.close();
    });
    new ResizeObserver(() => {
      const height = this.controls && window.innerWidth >= 720 ? this.controls.element.offsetHeight : 0;
      document.documentElement.style.setProperty("--controls", `${height}px`);
    }).observe(this.bar);
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
      this.tip.style.left = `${Math.max(4, Math.min(at.x + 14, window.innerWidth - this.tip.offsetWidth - 8))}px`;
      const below = at.y + 16 + this.tip.offsetHeight < window.innerHeight;
      this.tip.style.top = `${below ? at.y + 16 : at.y - this.tip.offsetHeight - 8}px`;
    }
    if (place !== this.hovered) {
      this.hovered = place;
      this.markAll();
    }
  }

  choose(place: number, words?: string, from?: HTMLElement): void {
    if (from) this.lastGrid = from;
    this.set({ head: nameOf(this.atlas, place) });
    if (words) this.live.textContent = words;
  }

  // State

  private current(): Atlas {
    return this.atlases[this.state.atlas] ?? (this.atlases[0] as Atlas);
  }

  private view(): View {
    return { atlas: this.atlas, state: this.state };
  }

  /** What an address may ask for and this atlas does not have is as by default. */
  private sound(state: State): State {
    const atlas = this.atlases[state.atlas] ?? (this.atlases[0] as Atlas);
    const tasks = atlas.tasks.map((task) => task.name);
    const keep = (name: string, known: readonly string[]): string => (known.includes(name) ? name : "");
    const head = placeOf(atlas, state.head);
    const last = atlas.model.layers - 1;
    return {
      ...state,
      atlas: this.atlases[state.atlas] ? state.atlas : 0,
      head: head === null ? "" : nameOf(atlas, head),
      task: keep(state.task, tasks),
      without: keep(state.without, tasks),
      category: keep(state.category, atlas.categories),
      relation: keep(state.relation, atlas.relations.map((one) => one.name)),
      show: keep(state.show, choices(atlas).map((one) => one.key)),
      one: keep(state.one, tasks) || (tasks[0] ?? ""),
      other: keep(state.other, tasks) || (tasks[1] ?? tasks[0] ?? ""),
      from: Math.max(0, Math.min(last, Math.round(state.from))),
      to: state.to < 0 || state.to >= last ? -1 : Math.round(state.to),
    };
  }

  private address(): string {
    const { one, other } = this.sound(this.usual); // the first two tasks, unless said otherwise
    const text = encode(this.state, { ...this.usual, one, other });
    return text && `#${text}`;
  }

  private close(): void {
    const inside = this.aside.contains(document.activeElement);
    this.set({ head: "" });
    if (inside) this.lastGrid?.focus({ preventScroll: true });
  }

  private set(change: Partial<State>, fromAddress = false): void {
    const before = this.state;
    this.state = this.sound({ ...(fromAddress ? this.usual : before), ...change });
    this.link.write();
    if (before.atlas !== this.state.atlas || fromAddress) {
      this.atlas = this.current();
      this.build();
      return;
    }
    this.controls?.sync(this.state);
    if (Object.keys(change).every((key) => key === "head" || key === "sort")) {
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

  /** Goes to what is called so; says what came of it. */
  private find(text: string): string {
    const found = lookUp(this.atlas, text);
    if (found.kind === "nothing") return text ? `nothing is called ${text}` : "";
    if (found.kind === "head") {
      this.choose(found.place);
      return `${nameOf(this.atlas, found.place)} is chosen`;
    }
    const { relation, others } = found;
    this.set({ relation: relation.name, show: `relation|${relation.name}` });
    const show = document.getElementById("show") as HTMLSelectElement | null;
    if (show) show.value = this.state.show;
    const also = others.length ? ` (also: ${others.map((one) => one.title).join(", ")})` : "";
    return `heads that implement ${relation.title}${also}; 'no filters' shows all`;
  }

  // Building

  private build(): void {
    const { atlas } = this;
    this.profiles = profiles(atlas);
    for (const panel of this.panels) this.watcher.unobserve(panel.grid.element);
    this.panels = [];
    this.tableKey = "";
    this.lastGrid = null;
    this.hover(null);
    const focused = document.activeElement?.id;
    this.controls = makeControls(atlas, (change) => this.set(change), (text) => this.find(text));
    put(this.main, wordsPart(atlas), ...this.sections());
    put(this.aside, this.card);
    put(
      this.root,
      this.skip(),
      this.header(),
      this.bar,
      h("div", { class: "columns" }, this.main, this.aside),
      this.live,
      this.tip,
    );
    put(this.bar, this.controls.element);
    this.controls.sync(this.state);
    this.draw();
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }

  /** Not by an address of its own, which is where the state lives. */
  private skip(): HTMLElement {
    const link = h("a", { class: "skip", href: "#main" }, "to the maps");
    link.addEventListener("click", (event) => {
      event.preventDefault();
      this.panels[0]?.grid.focus();
    });
    return link;
  }

  private header(): HTMLElement {
    const { atlas } = this;
    const seeds = atlas.tasks.map((task) => `${task.title} (${task.seeds.length} seed${task.seeds.length > 1 ? "s" : ""})`);
    const facts = [
      `${atlas.places.length.toLocaleString("en")} head${atlas.places.length === 1 ? "" : "s"} in ${atlas.model.layers} layer${atlas.model.layers === 1 ? "" : "s"}`,
      ...(seeds.length ? [seeds.join(", ")] : []),
      ...(atlas.relations.length ? [`${atlas.relations.length} relation${atlas.relations.length === 1 ? "" : "s"}`] : []),
      ...(atlas.imported.length ? [`imported: ${atlas.imported.map((one) => one.title).join(", ")}`] : []),
    ];
    const models = this.atlases.map((one, number) => [String(number), one.label] as const);
    const other = (value: string): void => this.set({ atlas: Number(value) });
    return h(
      "header",
      {},
      h("h1", {}, atlas.label),
      h("p", {}, facts.join(" · ")),
      models.length > 1 ? labelled("Model", select(models, String(this.state.atlas), other, { id: "model" })) : null,
    );
  }

  /** A map with its buttons. */
  private panel(name: string, kind: Kind, shown: Panel["shown"]): HTMLElement {
    const grid = new HeadGrid(this.atlas, this, name);
    const scale = h("div", { class: "scale" });
    this.panels.push({ grid, kind, shown, scale });
    this.watcher.observe(grid.element);
    const save = (format: string, work: () => void): HTMLElement => {
      const button = h("button", { type: "button", class: "save", "aria-label": `${name} as ${format}` }, format);
      button.addEventListener("click", work);
      return button;
    };
    const file = fileName(`${this.atlas.model.name}-${name}`);
    grid.element.append(
      scale,
      h(
        "figcaption",
        { class: "saves" },
        grid.axes,
        h(
          "span",
          {},
          save("SVG", () => download(`${file}.svg`, grid.toSvg(), "image/svg+xml")),
          " ",
          save("PNG", () => downloadPng(`${file}.png`, grid.toSvg())),
        ),
      ),
    );
    return grid.element;
  }

  private sections(): HTMLElement[] {
    const { atlas } = this;
    return [
      ...(atlas.tasks.length ? [this.agreementSection()] : []),
      ...(relationsOf(atlas, "measured").length ? [this.categorySection()] : []),
      ...(relationsOf(atlas, "imported").length || atlas.imported.length ? [this.importedSection()] : []),
      h("div", { class: "pair" }, this.singleSection(), ...(atlas.tasks.length > 1 ? [this.differenceSection()] : [])),
      ...(atlas.contrasts.length ? [this.contrastSection()] : []),
      ...(this.atlases.length > 1 ? [this.modelSection()] : []),
      this.headsSection(),
    ];
  }

  private agreementSection(): HTMLElement {
    const pairs = this.atlas.tasks.map((task) =>
      h(
        "div",
        {},
        h("h3", {}, task.title),
        h(
          "div",
          { class: "both" },
          ...(["always", "any"] as const).map((over) =>
            this.panel(`${task.title} ${OVER_WORDS[over]}`, "agreement", (view) => agreement(view, task, over)),
          ),
        ),
      ),
    );
    return h(
      "section",
      { id: "agreement" },
      h("div", { class: "heading" }, h("h2", {}, "Which heads a task needs"), this.roles),
      h("div", { class: "maps" }, ...pairs),
      this.counts,
    );
  }

  private categorySection(): HTMLElement {
    const each = ["", ...categoryNames(this.atlas, "measured")].map((name) =>
      this.panel(name ? `Category ${name}` : "All categories", "category", (view) => categories(view, name, "measured")),
    );
    return h(
      "section",
      { id: "categories" },
      h("div", { class: "heading" }, h("h2", {}, "What heads are by their weights"), this.kinds),
      h("div", { class: "maps" }, ...each),
    );
  }

  private importedSection(): HTMLElement {
    const { atlas } = this;
    const relations = relationsOf(atlas, "imported").length ? ["", ...categoryNames(atlas, "imported")] : [];
    const each = relations.map((name) =>
      this.panel(name ? `Imported ${name}` : "All imported categories", "category", (view) => categories(view, name, "imported")),
    );
    const scores = atlas.imported.map((one) => this.panel(`Imported score ${one.title}`, "one", () => ofImported(atlas, one)));
    return h(
      "section",
      { id: "imported" },
      h("div", { class: "heading" }, h("h2", {}, "Imported"), relations.length ? this.importedKinds : null),
      h("p", { class: "note" }, "Scores made elsewhere, as their tables give them: nothing here was measured by headatlas."),
      h("div", { class: "maps" }, ...each, ...scores),
    );
  }

  private singleSection(): HTMLElement {
    const all = choices(this.atlas);
    const chosen = this.state.show || (all[0]?.key ?? "");
    const options = all.map((one) => [one.key, one.text] as const);
    return h(
      "section",
      { id: "single" },
      h("h2", {}, "One score"),
      labelled("Show", select(options, chosen, (show) => this.set({ show }), { id: "show" })),
      h("div", { class: "maps" }, this.panel("One score", "one", single)),
    );
  }

  private differenceSection(): HTMLElement {
    const tasks = this.atlas.tasks.map((task) => [task.name, task.title] as const);
    return h(
      "section",
      { id: "difference" },
      h("h2", {}, "Two tasks compared"),
      h(
        "div",
        { class: "fields" },
        labelled("Task", select(tasks, this.state.one, (one) => this.set({ one }), { id: "one" })),
        labelled("less", select(tasks, this.state.other, (other) => this.set({ other }), { id: "other" })),
        this.scoreChoice("score"),
      ),
      h("div", { class: "maps" }, this.panel("Difference", "one", difference)),
    );
  }

  private contrastSection(): HTMLElement {
    const { contrasts } = this.atlas;
    return h(
      "section",
      { id: "contrasts" },
      h("h2", {}, "One task kept, another forgotten"),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "held-out figures of contrasts" }, contrastTable(contrasts)),
      h("p", { class: "note" }, "Held-out items, without the gates → with them, on average over seeds. In parentheses: by how much the NLL rises, with the 95 % interval over groups of items and seeds."),
      h("div", { class: "maps" }, ...contrasts.map((one) => this.panel(`Keep ${one.retain}, forget ${one.forget}`, "one", (view) => contrasted(view, one)))),
    );
  }

  private scoreChoice(id: string): HTMLElement {
    const all = SCORES.map((one) => [one, one] as const);
    const change = (score: string): void => {
      this.set({ score: score as Score });
      for (const other of document.querySelectorAll<HTMLSelectElement>("select.score")) other.value = score;
    };
    return labelled("in", select(all, this.state.score, change, { id, class: "score" }));
  }

  private modelSection(): HTMLElement {
    const other = this.atlases[1 - this.state.atlas] as Atlas;
    const common = this.atlas.tasks.filter((task) => other.tasks.some((one) => one.name === task.name));
    const maps = sameShape(this.atlas, other) && common.length;
    return h(
      "section",
      { id: "models" },
      h("h2", {}, `${this.atlas.label} and ${other.label}`),
      h("div", { class: "scroll", id: "comparison", tabindex: 0, role: "region", "aria-label": "two models compared" }),
      verdicts(this.comparisons),
      h("p", { class: "note" }, "With more seeds fewer heads have a score always, and more in any seed."),
      maps ? h("div", { class: "fields" }, this.scoreChoice("score-models")) : null,
      maps
        ? h("div", { class: "maps" }, ...common.map((task) => this.panel(`${task.title} between models`, "one", (view) => between(view, task, other))))
        : h("p", { class: "note" }, common.length ? "Their heads lie differently: there is no head to take from another." : "They have no task in common."),
    );
  }

  private headsSection(): HTMLElement {
    const save = h("button", { type: "button", id: "csv" }, "these heads as CSV");
    save.addEventListener("click", () => {
      const all = columns(this.atlas, this.state);
      download(fileName(`${this.atlas.model.name}-heads`) + ".csv", csv(this.left(all), all), "text/csv");
    });
    return h("section", { id: "heads" }, h("h2", {}, "All heads"), save, this.table);
  }

  // Drawing

  private draw(): void {
    const { theme, axes, zero } = this.state;
    document.documentElement.dataset["theme"] = theme === "auto" ? (DARK.matches ? "dark" : "light") : theme;
    const view = this.view();
    const left = dimmed(this.atlas, this.state);
    const key = `${document.documentElement.dataset["theme"]} ${left?.join("") ?? ""}`;
    const inside = this.main.clientWidth;
    for (const { grid, kind, shown, scale } of this.panels) {
      const found = shown(view);
      grid.element.hidden = !found;
      if (!found) continue;
      const headsAcross = axes === "published" ? !found.layersAcross : axes === "heads";
      grid.draw(found, { dimmed: left, key, headsAcross, zeroAtBottom: zero === "bottom" }, roomFor(this.atlas, kind, headsAcross, inside));
      put(scale, "stops" in found.legend ? legendPart(found.legend) : null);
    }
    this.markAll();
    this.drawLegends();
    this.drawCounts();
    this.drawCard();
    window.clearTimeout(this.tableTimer); // a table of thousands waits until a slider rests
    if (this.tableKey) this.tableTimer = window.setTimeout(() => this.drawTable(), 120);
    else this.drawTable();
  }

  private markAll(): void {
    const selected = this.selected();
    for (const panel of this.panels) panel.grid.mark(selected, this.hovered);
  }

  private drawLegends(): void {
    put(this.roles, ...legendPart(roleLegend(paletteOf(this.state))).childNodes);
    put(this.kinds, ...legendPart(categoryLegend(this.view(), "measured")).childNodes);
    put(this.importedKinds, ...legendPart(categoryLegend(this.view(), "imported")).childNodes);
    const models = document.getElementById("comparison");
    if (models) put(models, comparison(this.atlases, this.state));
  }

  private drawCounts(): void {
    const { atlas, state } = this;
    const parts = atlas.tasks.map((task) => {
      const [always, some] = (["always", "any"] as const).map((over) => count(atlas, scoreMap(task, "facilitation", over), state.threshold));
      return `${task.title} ${always} / ${some}`;
    });
    this.counts.textContent = `Heads that facilitate from ${state.threshold.toFixed(2)} on, always / in any seed: ${parts.join(", ")}.`;
  }

  private drawCard(): void {
    const place = this.selected();
    this.aside.classList.toggle("empty", place === null);
    this.root.classList.toggle("with-card", place !== null);
    if (place === null) {
      const hint = "Click a cell, or walk a map with the arrow keys: the head's card stands here.";
      put(this.card, h("h2", { id: "card-title" }, "A head"), h("p", { class: "note" }, hint));
      return;
    }
    const open = this.card.querySelector("details[data-more]")?.hasAttribute("open");
    const { scrollTop } = this.aside; // two heads are compared without scrolling anew
    keepingFocus(this.card, () =>
      drawCard(this.card, this.atlas, place, {
        threshold: this.state.threshold,
        implements: this.state.implements,
        palette: paletteOf(this.state),
        profiles: this.profiles,
        choose: (other) => this.chooseNear(other),
        close: () => this.close(),
      }),
    );
    if (open) this.card.querySelector("details[data-more]")?.setAttribute("open", "");
    this.aside.scrollTop = scrollTop;
  }

  /** Enter on a map goes to the card. */
  read(): void {
    document.getElementById("card-title")?.focus();
  }

  /** From one card to another: who reads goes on at its top. */
  private chooseNear(place: number): void {
    this.choose(place, `${nameOf(this.atlas, place)} is chosen`);
    document.getElementById("card-title")?.focus();
  }

  private left(all: ReturnType<typeof columns>): number[] {
    const out = dimmed(this.atlas, this.state);
    return sorted(this.atlas.places.filter((place) => !out?.[place]), all, this.state.sort);
  }

  private drawTable(): void {
    const { head, when, direction, sort } = this.state;
    const out = dimmed(this.atlas, this.state);
    const needed = JSON.stringify([this.state.atlas, head, when, direction, sort, this.rows, this.state.implements, this.state.relation, out?.join("")]);
    if (needed === this.tableKey) return;
    this.tableKey = needed;
    const all = columns(this.atlas, this.state);
    keepingFocus(this.table, () =>
      drawTable(this.table, this.atlas, this.left(all), all, this.state, (place) => this.choose(place), (by) => this.set({ sort: by }), this.rows, () => {
        this.rows += STEP;
        this.drawTable();
      }),
    );
  }
}
