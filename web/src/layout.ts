// Where the cells of a map lie.
import { layerOf, type Atlas } from "./atlas";

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
