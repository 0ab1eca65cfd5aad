import { describe, expect, it } from "vitest";
import { PALETTES, blend, categoryColours, diverging, heat, type Palette } from "../src/colour";
import { percent, shown } from "../src/dom";
import { escapeXml } from "../src/drawing";
import { Layout, ticks } from "../src/layout";
import { made } from "./made";

const paper = PALETTES["paper"] as Palette;

describe("colours", () => {
  it("mix the four corners", () => {
    expect(blend(paper, 0, 0)).toEqual([0, 0, 0]);
    expect(blend(paper, 1, 0)).toEqual([0, 255, 0]);
    expect(blend(paper, 0, 1)).toEqual([255, 0, 0]);
    expect(blend(paper, 1, 1)).toEqual([255, 255, 0]);
    expect(blend(paper, 0.5, 0.2)).toEqual([51, 128, 0]);
  });
  it("show one number and a difference", () => {
    expect(heat(paper, 0)).toEqual([0, 0, 0]);
    expect(heat(paper, 1)).toEqual([255, 0, 0]);
    expect(heat(paper, 5)).toEqual([255, 0, 0]);
    expect(diverging(0)).toEqual([255, 255, 255]);
    expect(diverging(-1)).toEqual([178, 24, 43]);
  });
  it("tell categories apart", () => {
    const found = categoryColours(paper, ["algorithmic", "knowledge", "mine", "yours"]);
    expect(found.get("mine")).toBe("#bcbd22");
    expect(found.get("4 categories")).toBe("#e377c2");
    expect(new Set(found.values()).size).toBe(found.size);
  });
});

describe("tokens", () => {
  it("are text, whatever they hold", () => {
    expect(shown(" word")).toBe("␣word");
    expect(shown("a\nb\tc")).toBe("a⏎b⇥c");
    expect(shown("\u0007\u202e")).toBe("\\u0007\\u202e");
    expect(shown("<img onerror=x>")).toBe("<img onerror=x>");
    expect([...shown("😀".repeat(100))].length).toBe(40);
    expect(escapeXml('<a b="c">&')).toBe("&lt;a b=&quot;c&quot;&gt;&amp;");
  });
  it("percentages have a digit where they are small", () => {
    expect([0, 0.004, 0.0999, 0.5, 1].map(percent)).toEqual(["0 %", "0.4 %", "10.0 %", "50 %", "100 %"]);
  });
});

describe("the layout", () => {
  const atlas = made();
  it("goes both ways", () => {
    for (const across of [true, false]) {
      for (const bottom of [true, false]) {
        const layout = new Layout(atlas, across, bottom);
        for (const place of atlas.places) {
          const { column, row } = layout.cell(place);
          expect(layout.place(column, row)).toBe(place);
        }
      }
    }
  });
  it("has layer 0 at the bottom, or at the top", () => {
    expect(new Layout(atlas, true, true).cell(0)).toEqual({ column: 0, row: 1 });
    expect(new Layout(atlas, true, false).cell(0)).toEqual({ column: 0, row: 0 });
    expect(new Layout(atlas, true, true).place(3, 0)).toBeNull(); // layer 1 has two heads
  });
  it("is walked with the arrows", () => {
    const layout = new Layout(atlas, true, true);
    expect(layout.step(0, 1, 0)).toBe(1);
    expect(layout.step(0, -1, 0)).toBe(0);
    expect(layout.step(0, 0, -1)).toBe(4);
    expect(layout.step(3, 0, -1)).toBe(3); // nothing above it
  });
  it("has few numbers at its axes", () => {
    expect(ticks(9, 9)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(ticks(80, 10)).toEqual([0, 10, 20, 30, 40, 50, 60, 70]);
    expect(ticks(1, 0)).toEqual([0]);
  });
});
