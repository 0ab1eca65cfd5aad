// One map of all heads: cells on a canvas, one cell at a time for those who do not see it.
import { nameOf, type Atlas } from "./atlas";
import { rgb, type Rgb } from "./colour";
import { h } from "./dom";
import { axisTexts, drawing } from "./drawing";
import { Layout } from "./layout";
import { AROUND, AXIS, MOST, type Room } from "./room";
import type { Shown } from "./looks";

/** How a map lies. */
export interface Look {
  /** places that a filter leaves out */
  readonly dimmed: Uint8Array | null;
  /** what else the picture depends on */
  readonly key: string;
  /** does x count heads (else layers)? */
  readonly headsAcross: boolean;
  readonly zeroAtBottom: boolean;
}

export interface Host {
  hover(place: number | null, at?: { x: number; y: number; text: string }): void;
  /** words: what is to be said of it aloud */
  choose(place: number, words?: string, from?: HTMLElement): void;
  /** goes to the card */
  read(): void;
}

/** a title and two buttons need so much */
const NARROW = 118;
let counter = 0;

export class HeadGrid {
  readonly element: HTMLElement;
  private readonly title = h("h3", { class: "map-title" });
  private readonly cells = h("canvas", { "aria-hidden": "true" });
  private readonly marks = h("canvas", { "aria-hidden": "true", class: "marks" });
  readonly axes = h("span", { class: "note axes" });
  private readonly active = h("div", { role: "gridcell", class: "sr" });
  private readonly grid: HTMLElement;
  private shown: Shown | null = null;
  private painted = "";
  private seen = false;
  private wanted: (() => void) | null = null;
  private dimmed: Uint8Array | null = null;
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
        "aria-activedescendant": this.active.id,
      },
      this.cells,
      this.marks,
      h("div", { role: "row", class: "sr" }, this.active),
    );
    this.element = h("figure", { class: "panel", "data-map": name }, this.title, this.grid);
    this.grid.addEventListener("pointermove", (event) => this.onMove(event));
    this.grid.addEventListener("pointerleave", () => this.host.hover(null));
    this.grid.addEventListener("click", (event) => {
      const place = this.at(event);
      if (place !== null) this.host.choose(place, undefined, this.grid);
    });
    this.grid.addEventListener("keydown", (event) => this.onKey(event));
    this.grid.addEventListener("focus", () => this.say());
  }

  /** Draws all cells anew; what nobody sees is left for the moment when it is seen. */
  draw(shown: Shown, look: Look, room: Room): void {
    this.shown = shown;
    this.wanted = null;
    const key = JSON.stringify([shown.key, shown.title, look.key, look.headsAcross, look.zeroAtBottom, room, window.devicePixelRatio]);
    this.dimmed = look.dimmed;
    const same = key === this.painted;
    this.grid.setAttribute("aria-label", shown.title);
    this.title.replaceChildren(shown.short ?? shown.title, h("span", { class: "note" }, shown.note));
    if (same) {
      this.say();
      return;
    }
    if (this.painted && !this.seen) {
      this.wanted = () => this.draw(shown, look, room);
      this.say();
      return;
    }
    const layout = new Layout(this.atlas, look.headsAcross, look.zeroAtBottom);
    this.layout = layout;
    this.cellWidth = Math.max(2, Math.min(MOST.width, Math.floor((room.width - AXIS.left - AXIS.right) / layout.columns)));
    this.cellHeight = Math.max(2, Math.min(MOST.height, Math.floor((room.height - AXIS.bottom - AXIS.top) / layout.rows)));
    const width = AXIS.left + this.cellWidth * layout.columns + AXIS.right;
    const height = AXIS.top + this.cellHeight * layout.rows + AXIS.bottom;
    for (const canvas of [this.cells, this.marks]) size(canvas, width, height);
    this.element.style.width = `${Math.max(width, Math.min(room.width, NARROW)) + AROUND}px`; // texts wrap in it
    this.grid.setAttribute("aria-rowcount", String(layout.rows));
    this.grid.setAttribute("aria-colcount", String(layout.columns));
    const context = this.cells.getContext("2d");
    if (!context) return;
    paint(context, this.atlas, layout, shown, look.dimmed, this.cellWidth, this.cellHeight, getComputedStyle(this.element));
    const up = look.zeroAtBottom ? "↑" : "↓";
    this.painted = key;
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

  /** Is it in view, or nearly? */
  see(now: boolean): void {
    this.seen = now;
    if (now) this.wanted?.();
  }

  focus(): void {
    this.grid.focus();
  }

  /** The map as a drawing of its own. */
  toSvg(): string {
    return this.shown ? drawing(this.atlas, this.layout, this.shown, this.dimmed) : "";
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
    if (place === null || !this.shown) {
      this.host.hover(null);
      return;
    }
    const text = `${nameOf(this.atlas, place)}: ${this.shown.words(place)}`;
    this.host.hover(place, { x: event.clientX, y: event.clientY, text });
  }

  private onKey(event: KeyboardEvent): void {
    const steps: Record<string, readonly [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    };
    const first = this.atlas.places[0];
    const step = steps[event.key];
    const ends: Record<string, number | undefined> = { Home: first, End: this.atlas.places[this.atlas.places.length - 1] };
    if (first === undefined || (!step && !(event.key in ends) && event.key !== "Enter")) return;
    event.preventDefault();
    if (event.key === "Enter" && this.selected !== null) {
      this.host.read();
      return;
    }
    const from = this.selected ?? first;
    const place = ends[event.key] ?? (this.selected === null || !step ? from : this.layout.step(from, step[0], step[1]));
    this.host.choose(place, this.shown ? `${nameOf(this.atlas, place)}: ${this.shown.words(place)}` : undefined, this.grid);
  }

  private say(): void {
    const place = this.selected ?? this.atlas.places[0];
    if (place === undefined || !this.shown) return;
    const { column, row } = this.layout.cell(place);
    this.active.setAttribute("aria-colindex", String(column + 1));
    this.active.setAttribute("aria-rowindex", String(row + 1));
    this.active.setAttribute("aria-selected", String(place === this.selected));
    this.active.textContent = `${nameOf(this.atlas, place)}: ${this.shown.words(place)}`;
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

function paint(
  context: CanvasRenderingContext2D,
  atlas: Atlas,
  layout: Layout,
  shown: Shown,
  dimmed: Uint8Array | null,
  cellWidth: number,
  cellHeight: number,
  style: CSSStyleDeclaration,
): void {
  const { columns, rows } = layout;
  const [width, height] = [columns * cellWidth, rows * cellHeight];
  const ratio = window.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  context.imageSmoothingEnabled = false;
  context.drawImage(pixels(atlas, layout, shown.colour), AXIS.left, AXIS.top, width, height);
  if (shown.unknown) hatch(context, layout, atlas.places.filter(shown.unknown), cellWidth, cellHeight);
  if (dimmed) {
    const grey = rgb(style.getPropertyValue("--dim").trim());
    const cover = pixels(atlas, layout, (place) => (dimmed[place] ? grey : null));
    context.drawImage(holed(cover, cellWidth, cellHeight), AXIS.left, AXIS.top, width, height);
  }
  context.strokeStyle = style.getPropertyValue("--line");
  context.lineWidth = 1;
  context.strokeRect(AXIS.left - 0.5, AXIS.top - 0.5, width + 1, height + 1);
  context.fillStyle = style.getPropertyValue("--soft");
  context.font = "10px system-ui, sans-serif";
  for (const [x, y, text, anchor] of axisTexts(layout, cellWidth, cellHeight, AXIS.top)) {
    context.textAlign = anchor === "end" ? "right" : "center";
    context.fillText(text, x, y);
  }
}

/** White diagonals over the cells of heads without a value. */
function hatch(context: CanvasRenderingContext2D, layout: Layout, places: readonly number[], cellWidth: number, cellHeight: number): void {
  if (!places.length) return;
  context.save();
  context.beginPath();
  for (const place of places) {
    const { column, row } = layout.cell(place);
    context.rect(AXIS.left + column * cellWidth, AXIS.top + row * cellHeight, cellWidth, cellHeight);
  }
  context.clip();
  context.strokeStyle = "#ffffff";
  context.lineWidth = 1.5;
  const [width, height] = [layout.columns * cellWidth, layout.rows * cellHeight];
  context.beginPath();
  for (let from = -height; from < width; from += 5) {
    context.moveTo(AXIS.left + from, AXIS.top + height);
    context.lineTo(AXIS.left + from + height, AXIS.top);
  }
  context.stroke();
  context.restore();
}

/** A pixel for each cell; null is transparent. */
function pixels(atlas: Atlas, layout: Layout, colour: (place: number) => Rgb | null): HTMLCanvasElement {
  const image = new ImageData(layout.columns, layout.rows);
  const data = new Uint32Array(image.data.buffer);
  for (const place of atlas.places) {
    const found = colour(place);
    if (!found) continue;
    const { column, row } = layout.cell(place);
    data[row * layout.columns + column] = (255 << 24) | (found[2] << 16) | (found[1] << 8) | found[0];
  }
  const made = h("canvas", { width: layout.columns, height: layout.rows });
  made.getContext("2d")?.putImageData(image, 0, 0);
  return made;
}

/** Enlarged, with a hole in the middle of each cell: what a filter leaves out keeps a dot of its colour, so that it
 * is neither lost nor taken for black. */
function holed(small: HTMLCanvasElement, cellWidth: number, cellHeight: number): HTMLCanvasElement {
  const side = Math.max(1, Math.floor(Math.min(cellWidth, cellHeight) / 3));
  const tile = h("canvas", { width: cellWidth, height: cellHeight });
  tile.getContext("2d")?.fillRect(Math.floor((cellWidth - side) / 2), Math.floor((cellHeight - side) / 2), side, side);
  const made = h("canvas", { width: small.width * cellWidth, height: small.height * cellHeight });
  const context = made.getContext("2d");
  const dots = context?.createPattern(tile, "repeat");
  if (context && dots) {
    context.imageSmoothingEnabled = false;
    context.drawImage(small, 0, 0, made.width, made.height);
    context.globalCompositeOperation = "destination-out";
    context.fillStyle = dots;
    context.fillRect(0, 0, made.width, made.height);
  }
  return made;
}
