// Scores made elsewhere: under their own name, heads without one hatched and never called unclassified.
import { describe, expect, it } from "vitest";
import { decode, NOT_IMPORTED, relationWords, type Atlas } from "../src/atlas";
import { comparisonRows } from "../src/compare";
import { drawing } from "../src/drawing";
import { Layout } from "../src/layout";
import { categories, categoryLegend, choices, ofImported } from "../src/looks";
import { categoryNames, profiles, similar } from "../src/scores";
import { DEFAULTS } from "../src/state";
import { columns } from "../src/table";
import { base64, RAW } from "./made";

const hole = NaN;

function imported(): Atlas {
  const raw = structuredClone(RAW) as unknown as { atlases: Record<string, unknown>[] };
  const atlas = raw.atlases[0] as Record<string, unknown>;
  atlas["tasks"] = [];
  atlas["effects"] = [];
  atlas["relations"] = [
    { name: "induction", title: "induction", category: "own", kind: "imported", pairs: 0, seeds: 2, seedsKept: true, uneven: "", scores: base64([0.2, 0, hole, 0, 0.15, 0, hole, hole, hole, hole, hole, hole, hole, hole, hole, hole]) },
  ];
  atlas["imported"] = [{ name: "mine", title: "Mine", from: "t.csv", seeds: 3, uneven: "", values: base64([4, -2, hole, 0, 1, 0, hole, hole]) }];
  (atlas["model"] as Record<string, unknown>)["parameters"] = null;
  return decode(raw)[0] as Atlas;
}

const atlas = imported();
const view = { atlas, state: DEFAULTS };

describe("imported relations", () => {
  it("stand under imported, with their seeds", () => {
    expect(categoryNames(atlas, "measured")).toEqual([]);
    expect(categoryNames(atlas, "imported")).toEqual(["own"]);
    expect(relationWords(atlas.relations[0]!)).toBe("induction, imported, mean of 2 seeds");
  });
  it("say where heads have fewer than all seeds", () => {
    const uneven = { ...atlas.relations[0]!, uneven: "1 head has fewer than all 2 seeds" };
    expect(relationWords(uneven)).toBe("induction, imported, mean of up to 2 seeds (1 head has fewer than all 2 seeds)");
  });
  it("leave unknown heads unknown", () => {
    const shown = categories(view, "", "imported");
    expect(shown.words(2)).toBe(NOT_IMPORTED);
    expect(shown.words(1)).toBe("unclassified");
    expect(atlas.places.filter((place) => shown.unknown?.(place))).toEqual([2]);
    expect(categoryLegend(view, "imported").hatched).toBe(NOT_IMPORTED);
    expect(drawing(atlas, new Layout(atlas, true, true), shown, null).match(/fill="url\(#hatch\)"/g)).toHaveLength(2);
    const category = columns(atlas, DEFAULTS).find((one) => one.key === "category");
    expect(category?.value(2)).toBe(NOT_IMPORTED);
  });
  it("count shares among the heads that have a score", () => {
    expect(comparisonRows([atlas], DEFAULTS)).toContainEqual(["own heads", "40 %"]);
  });
  it("do not make unknown heads alike", () => {
    expect(similar(atlas, profiles(atlas), 0, 5)).not.toContain(2);
    expect(similar(atlas, profiles(atlas), 2, 5)).toEqual([]);
  });
});

describe("imported scores", () => {
  it("keep their name, their values and their holes", () => {
    const shown = ofImported(atlas, atlas.imported[0]!);
    expect(shown.title).toBe("Mine (imported)");
    expect(shown.note).toBe("imported from t.csv, not measured here, mean of 3 seeds");
    const uneven = ofImported(atlas, { ...atlas.imported[0]!, uneven: "2 heads have fewer than all 3 seeds" });
    expect(uneven.note).toContain("mean of up to 3 seeds (2 heads have fewer than all 3 seeds)");
    expect(shown.words(0)).toBe("4.000");
    expect(shown.words(2)).toBe(NOT_IMPORTED);
    expect(shown.legend.hatched).toBe(NOT_IMPORTED);
    expect(choices(atlas).map((one) => one.key)).toEqual(["relation|induction", "contrast|sums without words", "imported|mine"]);
  });
});
