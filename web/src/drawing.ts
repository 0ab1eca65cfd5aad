// A map as a drawing of its own: title, cells, axes and what the colours mean.
import type { Atlas } from "./atlas";
import { UNKNOWN, css } from "./colour";
import { ticks, type Layout } from "./layout";
import type { Legend, Shown } from "./looks";
import { AXIS } from "./room";

const CELL = 10;
const TOP = 34;

const GREY = "#e6e6e2";
const HATCH =
  '<defs><pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">' +
  '<line x1="1" y1="0" x2="1" y2="4" stroke="#ffffff" stroke-width="1.5"/></pattern></defs>';

export function drawing(atlas: Atlas, layout: Layout, shown: Shown, dimmed: Uint8Array | null): string {
  const cells = atlas.places.map((place) => {
    const { column, row } = layout.cell(place);
    const [x, y] = [AXIS.left + 10 + column * CELL, TOP + row * CELL];
    const square = (at: number, side: number, fill: string): string =>
      `<rect${side === CELL ? ' class="cell"' : ""} x="${x + at}" y="${y + at}" width="${side}" height="${side}" fill="${fill}"/>`;
    const colour = css(shown.colour(place));
    const hatch = shown.unknown?.(place) ? `<rect x="${x}" y="${y}" width="${CELL}" height="${CELL}" fill="url(#hatch)"/>` : "";
    if (hatch && !dimmed?.[place]) return square(0, CELL, colour) + hatch;
    return dimmed?.[place] ? square(0, CELL, GREY) + square(3.5, 3, colour) : square(0, CELL, colour);
  });
  const left = dimmed ? `; filtered: ${atlas.places.filter((place) => !dimmed[place]).length} of ${atlas.places.length} heads` : "";
  const note = shown.note + left;
  const axes = axisTexts(layout, CELL, CELL, TOP).map(
    ([x, y, text, anchor]) => `<text x="${x + 10}" y="${y}" text-anchor="${anchor}">${text}</text>`,
  );
  const [right, bottom] = [AXIS.left + 10 + layout.columns * CELL, TOP + layout.rows * CELL];
  const [across, up] = layout.headsAcross ? ["head", "layer"] : ["layer", "head"];
  const middle = (TOP + bottom) / 2;
  axes.push(
    `<text x="${(AXIS.left + 10 + right) / 2}" y="${bottom + 22}" text-anchor="middle">${across}</text>`,
    `<text x="8" y="${middle}" text-anchor="middle" transform="rotate(-90 8 ${middle})">${up}</text>`,
  );
  const legend = legendOf(shown.legend, bottom + 32);
  const width = Math.max(right + 8, legend.right, 10 + 6.4 * (atlas.label.length + 2 + shown.title.length), 10 + 4.6 * note.length);
  const title = escapeXml(`${atlas.label}: ${shown.title}`);
  const size = `width="${Math.ceil(width)}" height="${legend.bottom}" viewBox="0 0 ${Math.ceil(width)} ${legend.bottom}"`;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" font-size="8">` +
    `<title>${title}</title>${shown.legend.hatched ? HATCH : ""}<text x="10" y="13" font-size="11" font-weight="bold">${title}</text>` +
    `<text x="10" y="25" fill="#555555">${escapeXml(note)}</text>${cells.join("")}${axes.join("")}${legend.text}</svg>\n`
  );
}

function legendOf(legend: Legend, top: number): { text: string; right: number; bottom: number } {
  const { hatched, ...rest } = legend;
  if (hatched) {
    const above = legendOf(rest, top);
    const y = above.bottom;
    const box = `<rect x="34" y="${y}" width="8" height="8" fill="${css(UNKNOWN)}"/><rect x="34" y="${y}" width="8" height="8" fill="url(#hatch)"/>`;
    const text = `${above.text}${box}<text x="46" y="${y + 7}">${escapeXml(hatched)}</text>`;
    return { text, right: Math.max(above.right, 50 + 4.6 * hatched.length), bottom: y + 15 };
  }
  if ("stops" in legend) {
    const last = legend.stops.length - 1;
    const stops = legend.stops.map((colour, place) => `<stop offset="${place / last}" stop-color="${colour}"/>`);
    const text =
      `<defs><linearGradient id="scale">${stops.join("")}</linearGradient></defs>` +
      `<text x="34" y="${top + 7}" text-anchor="end">${escapeXml(legend.from)}</text>` +
      `<rect x="38" y="${top}" width="70" height="8" fill="url(#scale)"/><text x="112" y="${top + 7}">${escapeXml(legend.to)}</text>`;
    return { text, right: 140, bottom: top + 14 };
  }
  const lines = legend.swatches.map(([colour, text], place) => {
    const y = top + 11 * place;
    return `<rect x="34" y="${y}" width="8" height="8" fill="${colour}"/><text x="46" y="${y + 7}">${escapeXml(text)}</text>`;
  });
  const longest = Math.max(...legend.swatches.map(([, text]) => text.length));
  return { text: lines.join(""), right: 50 + 4.6 * longest, bottom: top + 11 * legend.swatches.length + 4 };
}

/** Numbers at the axes: x, y, text, anchor. */
export function axisTexts(
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

export function escapeXml(text: string): string {
  const signs: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  // signs that no XML may hold become a space
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, " ").replace(/[&<>"]/g, (sign) => signs[sign] as string);
}
