import { describe, expect, it } from "vitest";
import type { Atlas } from "../src/atlas";
import { comparisonRows, sameShape } from "../src/compare";
import { drawing } from "../src/drawing";
import { Layout } from "../src/layout";
import { agreement, between, categories, choices, difference, single } from "../src/looks";
import { roomFor } from "../src/room";
import { DEFAULTS } from "../src/state";
import { made } from "./made";

const atlas = made();
const view = (change = {}) => ({ atlas, state: { ...DEFAULTS, ...change } });
const sums = atlas.tasks[0] as Atlas["tasks"][number];

describe("maps", () => {
  it("show both scores of a task, in shades or cut", () => {
    const always = agreement(view(), sums, "always");
    expect(always.title).toBe("Sums (Always)");
    expect(always.words(0)).toBe("facilitation 0.70, interference 0.10");
    expect(agreement(view({ cut: true }), sums, "always").colour(0)).toEqual([0, 255, 0]);
    expect(always.colour(0)).toEqual([Math.round(255 * 0.1), 178, 0]);
    // by hand: facilitation from 0.5 in both seeds: heads 0 and 3; interference: head 4 and, at 0.5, head 3
    expect(always.note.replaceAll("\u00a0", " ")).toBe("33 % help, 33 % hurt");
  });
  it("show categories, all or one", () => {
    expect(categories(view(), "").words(0)).toBe("2 categories");
    expect(categories(view(), "own").note).toBe("2 heads");
    expect(categories(view({ direction: "suppress" }), "own").note).toBe("1 head");
    const legend = categories(view(), "").legend;
    expect("swatches" in legend && legend.swatches.map(([, text]) => text)).toEqual(["unclassified", "algorithmic", "own", "2 categories"]);
  });
  it("show one score, whatever an address asks for", () => {
    expect(choices(atlas).length).toBe(9 + 2 + 1 + 1);
    expect(single(view({ show: "contrast|sums without words" }))?.note).toBe("mean gate; 1 head shut (below 0.5)");
    expect(single(view())?.title).toBe("Sums: facilitation, always");
    expect(single(view({ show: "relation|double" }))?.note).toBe("2 heads from 0.15");
    expect(single(view({ show: "no|such|thing" }))?.title).toBe("Sums: facilitation, always");
    const effect = single(view({ show: "effect|sums|ablate-zero" }));
    expect(effect?.words(1)).toBe("−1.000 nats");
    expect(effect?.legend).toMatchObject({ from: "≤ −1.0", to: "≥ +1.0" });
    expect(effect?.note).toBe("nats of loss; above 0 the task wants the head");
  });
  it("are in the unit of their method", () => {
    const inBits = { ...atlas, effects: atlas.effects.map((effect) => ({ ...effect, unit: "bits" })) };
    const effect = single({ ...view({ show: "effect|sums|ablate-zero" }), atlas: inBits });
    expect(effect?.words(1)).toBe("−1.000 bits");
    expect(effect?.note).toBe("unit: bits; above 0 the task wants the head");
  });
  it("show differences", () => {
    expect(difference(view({ one: "sums", other: "sums" }))?.colour(0)).toEqual([255, 255, 255]);
    expect(difference(view({ one: "sums", other: "none" }))).toBeNull();
    expect(between(view(), sums, made())?.words(1)).toBe("0.10 less 0.10");
  });
});

describe("a drawing", () => {
  it("has a cell for each head, a title and the colours", () => {
    const shown = { ...agreement(view(), sums, "any"), title: "a <b> & \u0001c" };
    const text = drawing(atlas, new Layout(atlas, true, true), shown, null);
    expect(text.match(/class="cell"/g)?.length).toBe(atlas.places.length);
    expect(text).toContain("a &lt;b&gt; &amp;  c");
    expect(text).toContain("facilitates");
    const scale = single(view());
    expect(scale && drawing(atlas, new Layout(atlas, false, true), scale, null)).toContain("linearGradient");
  });
});

describe("the room of a map", () => {
  const shaped = (layers: number, heads: number, tasks: number) =>
    ({ model: { layers, width: heads }, tasks: Array(tasks).fill(sums) }) as unknown as Atlas;
  const pairs = (inside: number, width: number): number => Math.floor((inside + 26) / (2 * (width + 26) + 10 + 26));
  it("has all tasks of a small model in one row", () => {
    const { width } = roomFor(shaped(30, 9, 3), "agreement", true, 990);
    expect(pairs(990, width)).toBe(3);
  });
  it("gives every cell some pixels, on a phone too", () => {
    for (const [layers, heads] of [[30, 9], [80, 64], [12, 12], [2, 4]] as const) {
      for (const inside of [340, 700, 990, 1500]) {
        for (const kind of ["agreement", "category", "one"] as const) {
          for (const across of [true, false]) {
            const room = roomFor(shaped(layers, heads, 6), kind, across, inside);
            expect(room.width).toBeLessThanOrEqual(inside - 26);
            expect((room.width - 26) / (across ? heads : layers)).toBeGreaterThanOrEqual(2);
            expect((room.height - 18) / (across ? layers : heads)).toBeGreaterThanOrEqual(2);
          }
        }
      }
    }
  });
});

describe("two models", () => {
  it("are compared in numbers", () => {
    const other = { ...made(), tasks: [] } as Atlas;
    const rows = comparisonRows([atlas, other], DEFAULTS);
    expect(rows[0]).toEqual(["heads", "6", "6"]);
    expect(rows[1]?.slice(1)).toEqual(["2", "–"]);
    expect(rows[2]).toEqual(["Sums: heads that facilitate, always", "33 %", "–"]);
    expect(rows.find(([what]) => what === "own heads")).toEqual(["own heads", "33 %", "33 %"]);
    expect(sameShape(atlas, other)).toBe(true);
  });
});
