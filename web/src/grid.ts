// One map of all heads: cells on a canvas, one cell at a time for those who do not see it.
import { layerOf, nameOf, type Atlas } from "./atlas";
import type { Rgb } from "./colour";
import { css, rgb } from "./colour";
import { h } from "./dom";

export interface Look {
  /** the colour of a place that holds a head */
  readonly colour: (place: number) => Rgb;
  /** what a screen reader and the hint say about it */
  readonly words: (place: number) => string;
  /** places that a filter leaves out */
  readonly dimmed: Uint8Array | null;
  /** does x count heads (else layers)? */
  readonly headsAcross: boolean;
  readonly zeroAtBottom: boolean;
}

export interface Host {
  hover(place: number | null, at?: { x: number; y: number; text: string }): void;
  choose(place: number): void;
}

/** Where cells lie: columns, rows and the way between them and places. */
export class Layout {
  readonly columns: number;
  readonly rows: number;

  constructor(
    readonly atlas: Atlas,
    readonly headsAcross: boolean,
    readonly zeroAtBottom: boolean,
  ) {
    const { layers, width } = atlas.model;
    this.columns = headsAcross ? width : layers;
    this.rows = headsAcross ? layers : width;
  }

  /** The place of a cell, row 0 at the top; null where there is no head. */
  place(column: number, row: number): number | null {
    const down = this.zeroAtBottom ? this.rows - 1 - row : row;
    const layer = this.headsAcross ? down : column;
    const head = this.headsAcross ? column : down;
    const { model } = this.atlas;
    if (layer < 0 || layer >= model.layers || head < 0 || head >= (model.heads[layer] ?? 0)) return null;
    return layer * model.width + head;
  }

  cell(place: number): { column: number; row: number } {
    const layer = layerOf(this.atlas, place);
    const head = place - layer * this.atlas.model.width;
    const down = this.headsAcross ? layer : head;
    return {
      column: this.headsAcross ? head : layer,
      row: this.zeroAtBottom ? this.rows - 1 - down : down,
    };
  }

  /** The next head in a direction; itself at the edge. */
  step(place: number, right: number, down: number): number {
    let { column, row } = this.cell(place);
    for (;;) {
      column += right;
      row += down;
      if (column < 0 || column >= this.columns || row < 0 || row >= this.rows) return place;
      const found = this.place(column, row);
      if (found !== null) return found; // holes are stepped over
    }
  }
}

/** Numbers at an axis: few, round. */
export function ticks(count: number, room: number): number[] {
  const step = [1, 2, 5, 10, 20, 50, 100].find((one) => count / one <= Math.max(1, room)) ?? 100;
  const found: number[] = [];
  for (let at = 0; at < count; at += step) found.push(at);
  return found;
}

const AXIS = { left: 24, bottom: 16, top: 2, right: 2 };
let counter = 0;

export class HeadGrid {
  readonly element: HTMLElement;
  private readonly title = h("h3", { class: "map-title" });
  private readonly cells = h("canvas", { "aria-hidden": "true" });
  private readonly marks = h("canvas", { "aria-hidden": "true", class: "marks" });
  readonly axes = h("span", { class: "note axes" });
  private readonly active = h("div", { role: "gridcell", class: "sr" });
  private readonly grid: HTMLElement;
  private look: Look | null = null;
  private layout: Layout;
  private cellWidth = 10;
  private cellHeight = 10;
  private selected: number | null = null;
  private hovered: number | null = null;

  constructor(
    private readonly atlas: Atlas,
    private readonly host: Host,
    readonly name: string,
  ) {
    const id = `grid-${counter++}`;
    this.active.id = `${id}-cell`;
    this.layout = new Layout(atlas, true, true);
    this.grid = h(
      "div",
      {
        role: "grid",
        tabindex: 0,
        class: "map",
        "aria-labelledby": `${id}-title`,
        "aria-rowcount": atlas.model.layers,
        "aria-colcount": atlas.model.width,
        "aria-activedescendant": this.active.id,
      },
      this.cells,
      this.marks,
      h("div", { role: "row", class: "sr" }, this.active),
    );
    this.title.id = `${id}-title`;
    this.element = h("figure", { class: "panel", "data-map": name }, this.title, this.grid);
    this.grid.addEventListener("pointermove", (event) => this.onMove(event));
    this.grid.addEventListener("pointerleave", () => this.host.hover(null));
    this.grid.addEventListener("click", (event) => {
      const place = this.at(event);
      if (place !== null) this.host.choose(place);
    });
    this.grid.addEventListener("keydown", (event) => this.onKey(event));
    this.grid.addEventListener("focus", () => this.say());
  }

  setTitle(text: string, note = ""): void {
    this.title.replaceChildren(text, ...(note ? [h("span", { class: "note" }, ` ${note}`)] : []));
  }

  /** Draws all cells anew. */
  draw(look: Look, room: { width: number; height: number }): void {
    this.look = look;
    const layout = new Layout(this.atlas, look.headsAcross, look.zeroAtBottom);
    this.layout = layout;
    this.cellWidth = Math.max(2, Math.min(26, Math.floor((room.width - AXIS.left - AXIS.right) / layout.columns)));
    this.cellHeight = Math.max(2, Math.min(18, Math.floor((room.height - AXIS.bottom - AXIS.top) / layout.rows)));
    const width = AXIS.left + this.cellWidth * layout.columns + AXIS.right;
    const height = AXIS.top + this.cellHeight * layout.rows + AXIS.bottom;
    for (const canvas of [this.cells, this.marks]) size(canvas, width, height);
    const context = this.cells.getContext("2d");
    if (!context) return;
    paint(context, this.atlas, layout, look, this.cellWidth, this.cellHeight, getComputedStyle(this.element));
    const up = look.zeroAtBottom ? "↑" : "↓";
    this.axes.textContent = look.headsAcross ? `→ head ${up} layer` : `→ layer ${up} head`;
    this.mark(this.selected, this.hovered);
  }

  /** Shows which head is chosen and which is pointed at. */
  mark(selected: number | null, hovered: number | null): void {
    this.selected = selected;
    this.hovered = hovered;
    const context = this.marks.getContext("2d");
    if (!context) return;
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.marks.width, this.marks.height);
    for (const [place, inner, outer] of [
      [hovered, "#ffffff", "#00000099"],
      [selected, "#ffffff", "#000000"],
    ] as const) {
      if (place === null) continue;
      const { column, row } = this.layout.cell(place);
      const x = AXIS.left + column * this.cellWidth;
      const y = AXIS.top + row * this.cellHeight;
      context.lineWidth = 3;
      context.strokeStyle = outer;
      context.strokeRect(x - 1, y - 1, this.cellWidth + 2, this.cellHeight + 2);
      context.lineWidth = 1.5;
      context.strokeStyle = inner;
      context.strokeRect(x - 1, y - 1, this.cellWidth + 2, this.cellHeight + 2);
    }
    if (selected !== null) this.say();
  }

  /** The map as a drawing of its own. */
  toSvg(): string {
    const look = this.look;
    if (!look) return "";
    const { columns, rows } = this.layout;
    const parts: string[] = [];
    for (const place of this.atlas.places) {
      const { column, row } = this.layout.cell(place);
      const x = AXIS.left + column * 10;
      parts.push(
        `<rect x="${x}" y="${20 + row * 10}" width="10" height="10" fill="${css(look.colour(place))}"/>`,
      );
    }
    const width = AXIS.left + columns * 10 + 4;
    const height = 20 + rows * 10 + AXIS.bottom;
    const title = escapeXml(this.title.textContent ?? "");
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="8">` +
      `<title>${title}</title><text x="${AXIS.left}" y="12" font-size="10">${title}</text>${parts.join("")}` +
      this.axisTexts(10, 10, 20)
        .map(([x, y, text, anchor]) => `<text x="${x}" y="${y}" text-anchor="${anchor}">${text}</text>`)
        .join("") +
      "</svg>"
    );
  }

  canvas(): HTMLCanvasElement {
    return this.cells;
  }

  private axisTexts(cellWidth: number, cellHeight: number, top: number): [number, number, string, string][] {
    return axisTexts(this.layout, cellWidth, cellHeight, top);
  }

  private at(event: PointerEvent | MouseEvent): number | null {
    const box = this.cells.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - AXIS.left) / this.cellWidth);
    const row = Math.floor((event.clientY - box.top - AXIS.top) / this.cellHeight);
    if (column < 0 || column >= this.layout.columns || row < 0 || row >= this.layout.rows) return null;
    return this.layout.place(column, row);
  }

  private onMove(event: PointerEvent): void {
    const place = this.at(event);
    if (place === null || !this.look) {
      this.host.hover(null);
      return;
    }
    const text = `${nameOf(this.atlas, place)}: ${this.look.words(place)}`;
    this.host.hover(place, { x: event.clientX, y: event.clientY, text });
  }

  private onKey(event: KeyboardEvent): void {
    const steps: Record<string, readonly [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const from = this.selected ?? this.atlas.places[0];
    if (from === undefined) return;
    this.host.choose(this.selected === null ? from : this.layout.step(from, step[0], step[1]));
  }

  private say(): void {
    const place = this.selected ?? this.atlas.places[0];
    if (place === undefined || !this.look) return;
    const { column, row } = this.layout.cell(place);
    this.active.setAttribute("aria-colindex", String(column + 1));
    this.active.setAttribute("aria-rowindex", String(row + 1));
    this.active.setAttribute("aria-selected", String(place === this.selected));
    this.active.textContent = `${nameOf(this.atlas, place)}: ${this.look.words(place)}`;
  }
}

function size(canvas: HTMLCanvasElement, width: number, height: number): void {
  const ratio = window.devicePixelRatio || 1;
  const [x, y] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== x || canvas.height !== y) {
    canvas.width = x;
    canvas.height = y;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
}

function axisTexts(
  layout: Layout,
  cellWidth: number,
  cellHeight: number,
  top: number,
): [number, number, string, string][] {
  const found: [number, number, string, string][] = [];
  const bottom = top + layout.rows * cellHeight;
  for (const at of ticks(layout.columns, (layout.columns * cellWidth) / 24)) {
    found.push([AXIS.left + (at + 0.5) * cellWidth, bottom + 11, String(at), "middle"]);
  }
  for (const at of ticks(layout.rows, (layout.rows * cellHeight) / 22)) {
    const row = layout.zeroAtBottom ? layout.rows - 1 - at : at;
    found.push([AXIS.left - 4, top + (row + 0.5) * cellHeight + 3, String(at), "end"]);
  }
  return found;
}

function paint(
  context: CanvasRenderingContext2D,
  atlas: Atlas,
  layout: Layout,
  look: Look,
  cellWidth: number,
  cellHeight: number,
  style: CSSStyleDeclaration,
): void {
  const { columns, rows } = layout;
  const image = new ImageData(columns, rows);
  const data = new Uint32Array(image.data.buffer);
  const back = rgb(style.getPropertyValue("--panel").trim());
  for (const place of atlas.places) {
    const { column, row } = layout.cell(place);
    let [red, green, blue] = look.colour(place);
    if (look.dimmed?.[place]) {
      red = Math.round(0.15 * red + 0.85 * back[0]);
      green = Math.round(0.15 * green + 0.85 * back[1]);
      blue = Math.round(0.15 * blue + 0.85 * back[2]);
    }
    data[row * columns + column] = (255 << 24) | (blue << 16) | (green << 8) | red;
  }
  const small = document.createElement("canvas");
  small.width = columns;
  small.height = rows;
  small.getContext("2d")?.putImageData(image, 0, 0);
  const ratio = window.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, AXIS.left, AXIS.top, columns * cellWidth, rows * cellHeight);
  context.strokeStyle = style.getPropertyValue("--line");
  context.lineWidth = 1;
  context.strokeRect(AXIS.left - 0.5, AXIS.top - 0.5, columns * cellWidth + 1, rows * cellHeight + 1);
  context.fillStyle = style.getPropertyValue("--soft");
  context.font = "10px system-ui, sans-serif";
  for (const [x, y, text, anchor] of axisTexts(layout, cellWidth, cellHeight, AXIS.top)) {
    context.textAlign = anchor === "end" ? "right" : "center";
    context.fillText(text, x, y);
  }
}


export function escapeXml(text: string): string {
  const signs: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replace(/[&<>"]/g, (sign) => signs[sign] as string);
}
