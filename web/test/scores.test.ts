import { describe, expect, it } from "vitest";
import type { Task } from "../src/atlas";
import { dimmed } from "../src/filter";
import { categoryWords, count, rolesOf, scoreMap, share, similar } from "../src/scores";
import { DEFAULTS } from "../src/state";
import { columns, csv, sorted } from "../src/table";
import { made } from "./made";

const atlas = made();
const task = atlas.tasks[0] as Task;
const near = (values: ArrayLike<number>): number[] => [...Array.from(values)].slice(0, 6).map((value) => Math.round(100 * value) / 100);

describe("scores", () => {
  it("are those of the definitions", () => {
    expect(near(scoreMap(task, "facilitation", "always"))).toEqual([0.7, 0.1, 0.1, 0.5, 0.1, 0.3]);
    expect(near(scoreMap(task, "facilitation", "any"))).toEqual([0.9, 0.1, 0.6, 0.5, 0.8, 0.3]);
    expect(near(scoreMap(task, "interference", "mean"))).toEqual([0.15, 0.5, 0.1, 0.5, 0.75, 0.1]);
    expect(scoreMap(task, "facilitation", "any")[6]).toBeNaN();
  });

  it("make roles", () => {
    expect(rolesOf(task, 0, 0.5)).toEqual(["facilitating", "facilitating"]);
    expect(rolesOf(task, 1, 0.5)).toEqual(["interfering", "irrelevant"]);
    expect(rolesOf(task, 3, 0.5)).toEqual(["anomaly", "anomaly"]); // both exactly at the threshold
    expect(rolesOf(task, 4, 0.5)).toEqual(["anomaly", "interfering"]);
    expect(rolesOf(task, 5, 0.9)).toEqual(["unclear", "unclear"]);
  });

  it("are counted over the heads that there are", () => {
    const any = scoreMap(task, "facilitation", "any");
    expect(count(atlas, any, 0.5)).toBe(4);
    expect(share(atlas, any, 0.5)).toBeCloseTo(4 / 6);
    expect(count(atlas, any, 0)).toBe(6);
  });
});

describe("categories", () => {
  it("are those of the relations that a head implements", () => {
    expect(categoryWords(atlas, "promote", 0.15).slice(0, 6)).toEqual(["2 categories", "", "", "", "own", ""]);
    expect(categoryWords(atlas, "promote", 0.25).slice(0, 6)).toEqual(["algorithmic", "", "", "", "", ""]);
    expect(categoryWords(atlas, "suppress", 0.15)[1]).toBe("own");
  });
});

describe("filters", () => {
  const left = (change: object): number[] => {
    const out = dimmed(atlas, { ...DEFAULTS, ...change });
    return atlas.places.filter((place) => !out?.[place]);
  };
  it("leave what they say", () => {
    expect(dimmed(atlas, DEFAULTS)).toBeNull();
    expect(left({ from: 1 })).toEqual([4, 5]);
    expect(left({ to: 0 })).toEqual([0, 1, 2, 3]);
    expect(left({ role: "facilitating" })).toEqual([0, 3]);
    expect(left({ role: "facilitating", when: "any" })).toEqual([0, 2, 3, 4]);
    expect(left({ role: "facilitating", when: "any", threshold: 0.85 })).toEqual([0]);
    expect(left({ category: "own" })).toEqual([0, 4]);
    expect(left({ relation: "copying", implements: 0.05 })).toEqual([0, 1]);
    expect(left({ role: "facilitating", category: "own" })).toEqual([0]);
  });
});

describe("the table", () => {
  it("is sorted by any column, both ways", () => {
    const all = columns(atlas, DEFAULTS);
    expect(sorted(atlas.places, all, "-sums.facilitation")[0]).toBe(0);
    expect(sorted(atlas.places, all, "sums.facilitation").slice(-1)).toEqual([0]);
    expect(sorted(atlas.places, all, "-head")[0]).toBe(5);
    expect(sorted(atlas.places, all, "no such column")).toEqual([...atlas.places]);
  });
  it("is safe in a spreadsheet", () => {
    const text = csv([0], [{ key: "a", title: 'say "a, b"', value: () => "=1+1" }, { key: "b", title: "b", value: () => -0.5 }]);
    expect(text).toBe('"say ""a, b""",b\n\'=1+1,-0.5\n');
  });
});

describe("neighbours", () => {
  it("have the nearest profile", () => {
    const profile = Float32Array.from([0, 1, 0.2, 0.9, 0.4, 0.5, NaN, NaN]);
    expect(similar(atlas, [profile], 0, 2)).toEqual([2, 4]);
  });
});
