// How large a map may be: all pairs of a row of tasks at once where they fit, cells that can still be told apart.
import type { Atlas } from "./atlas";

/** Pairs of tasks side by side; categories two in a row; one map by itself. */
export type Kind = "agreement" | "category" | "one";

export interface Room {
  readonly width: number;
  readonly height: number;
}

export const AXIS = { left: 24, bottom: 16, top: 2, right: 2 };
export const AROUND = 26; // padding and border of a panel
const BETWEEN = { panels: 10, pairs: 26 };
/** the least that a cell takes, and the most */
const LEAST = { width: 5, height: 3 };
export const MOST = { width: 26, height: 18 };

export function roomFor(atlas: Atlas, kind: Kind, headsAcross: boolean, inside: number): Room {
  const { layers, width: heads } = atlas.model;
  const [columns, rows] = headsAcross ? [heads, layers] : [layers, heads];
  const axes = AXIS.left + AXIS.right;
  const phone = inside < 560;
  const widest = columns * MOST.width + axes;
  const cell = kind === "agreement" && phone ? 3 : LEAST.width;
  const least = Math.max(90, columns * cell) + axes;
  const height = heightFor(rows, phone) + AXIS.top + AXIS.bottom;
  if (kind === "one") return { width: Math.min(widest, 460, inside - AROUND), height: Math.max(height, Math.min(420, rows * 12)) };
  if (kind === "category") {
    const half = (inside - BETWEEN.pairs) / 2 - AROUND;
    return { width: Math.min(widest, 640, half >= least ? half : inside - AROUND), height };
  }
  // pairs: as many in a row as there are tasks and as fit; a pair that does not fit is stacked
  const pair = (width: number): number => 2 * (width + AROUND) + BETWEEN.panels;
  if (pair(least) > inside) return { width: Math.min(widest, inside - AROUND), height };
  const fit = Math.floor((inside + BETWEEN.pairs) / (pair(least) + BETWEEN.pairs));
  const each = Math.max(1, Math.min(fit, atlas.tasks.length));
  const mine = (inside + BETWEEN.pairs) / each - BETWEEN.pairs;
  return { width: Math.min(widest, 460, Math.floor((mine - BETWEEN.panels) / 2 - AROUND)), height };
}

/** Low enough that a reader sees all at once, high enough to hit a cell. */
function heightFor(rows: number, phone: boolean): number {
  const each = phone ? 14 : 8;
  const wanted = Math.max(Math.min(rows * MOST.height, 160), rows * each);
  return Math.max(rows * LEAST.height, Math.min(wanted, 420));
}
