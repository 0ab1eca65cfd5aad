// The same atlas in Python and here: tests/page/test_numbers.py writes it down and calls this file.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { decode, type Atlas, type Direction, type Task } from "../src/atlas";
import { PALETTES, blend, categoryColours, heat, type Palette } from "../src/colour";
import { categoryWords, count, rolesOf, scoreMap, type Over, type Score } from "../src/scores";

interface Expected {
  payload: unknown;
  scores: { task: string; score: Score; over: Over; values: (number | null)[] }[];
  roles: { task: string; threshold: number; words: string[][] }[];
  counts: { task: string; score: Score; over: Over; threshold: number; count: number }[];
  words: { direction: Direction; threshold: number; words: string[] }[];
  colours: { palette: string; helping: number; hurting: number; rgb: [number, number, number] }[];
  heat: { palette: string; lines: Record<string, string>; rgb: [number, number, number][] }[];
  categories: { palette: string; colours: Record<string, string> }[];
}

const path = process.env["HEADATLAS_EXPECTED"];

const given = path ? (JSON.parse(readFileSync(path, "utf8")) as Expected) : null;

describe.runIf(given)("what Python says of the same atlas", () => {
  if (!given) return;
  const expected = given;
  const atlas = decode(expected.payload)[0] as Atlas;
  const task = (name: string): Task => atlas.tasks.find((one) => one.name === name) as Task;

  it("scores", () => {
    for (const one of expected.scores) {
      const found = scoreMap(task(one.task), one.score, one.over);
      one.values.forEach((value, place) => {
        if (value === null) expect(found[place]).toBeNaN();
        else if (one.over === "mean") expect(found[place]).toBeCloseTo(value, 5);
        else expect(found[place]).toBe(value);
      });
    }
  });
  it("roles", () => {
    for (const one of expected.roles) {
      for (const place of atlas.places) {
        expect(rolesOf(task(one.task), place, one.threshold)).toEqual(one.words.map((seed) => seed[place]));
      }
    }
  });
  it("counts", () => {
    for (const one of expected.counts) {
      expect(count(atlas, scoreMap(task(one.task), one.score, one.over), one.threshold)).toBe(one.count);
    }
  });
  it("categories", () => {
    for (const one of expected.words) {
      const found = categoryWords(atlas, one.direction, one.threshold);
      for (const place of atlas.places) expect(found[place]).toBe(one.words[place]);
    }
  });
  it("colours", () => {
    for (const one of expected.colours) {
      const found = blend(PALETTES[one.palette] as Palette, one.helping, one.hurting);
      one.rgb.forEach((value, channel) => expect(Math.abs((found[channel] ?? NaN) - value)).toBeLessThanOrEqual(1));
    }
    for (const one of expected.heat) {
      const palette = PALETTES[one.palette] as Palette;
      expect(palette.lines).toMatchObject(one.lines);
      one.rgb.forEach((rgb, step) => {
        const found = heat(palette, step / 50);
        rgb.forEach((value, channel) => expect(Math.abs((found[channel] ?? NaN) - value)).toBeLessThanOrEqual(4));
      });
    }
    for (const one of expected.categories) {
      expect(Object.fromEntries(categoryColours(PALETTES[one.palette] as Palette, atlas.categories))).toEqual(one.colours);
    }
  });
});
