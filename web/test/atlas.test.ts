import { describe, expect, it } from "vitest";
import { PayloadError, decode, group, nameOf, placeOf } from "../src/atlas";
import { lookUp } from "../src/search";
import { RAW, made } from "./made";

describe("the payload", () => {
  it("is decoded into places and arrays", () => {
    const atlas = made();
    expect(atlas.places).toEqual([0, 1, 2, 3, 4, 5]);
    expect(atlas.categories).toEqual(["algorithmic", "own"]);
    expect(atlas.tasks[0]?.retain[1]).toBeCloseTo(0.1);
    expect(atlas.relations[0]?.suppress[1]).toBe(0.5);
    expect(atlas.tasks[0]?.paths?.[0]?.values[8]).toBe(51);
  });

  it("is refused if it is damaged or of another version", () => {
    const old = structuredClone(RAW);
    old.schema = 2;
    expect(() => decode(old)).toThrow(PayloadError);
    const short = structuredClone(RAW);
    (short.atlases[0]!.tasks[0]! as { retain: string }).retain = "AAAA";
    expect(() => decode(short)).toThrow(PayloadError);
    expect(() => decode(null)).toThrow(PayloadError);
    const more = structuredClone(RAW) as Record<string, unknown>;
    more["extra"] = 1;
    expect(() => decode(more)).toThrow(PayloadError);
  });
});

describe("heads by name", () => {
  const atlas = made();
  it.each([["L1H1", 5], ["l0h3", 3], ["0.3", 3], ["a1.h0", 4], [" L1H0 ", 4]])("%s", (name, place) => {
    expect(placeOf(atlas, name)).toBe(place);
  });
  it.each(["L1H2", "L2H0", "L0H4", "", "copying", "L-1H0"])("there is no %s", (name) => {
    expect(placeOf(atlas, name)).toBeNull();
  });
  it("comes back", () => {
    for (const place of atlas.places) expect(placeOf(atlas, nameOf(atlas, place))).toBe(place);
  });
  it("shares keys and values with its group", () => {
    expect(group(atlas, 0)).toEqual([1]);
    expect(group(atlas, 3)).toEqual([2]);
    expect(group(atlas, 4)).toEqual([]);
  });
});

describe("what is looked for", () => {
  const atlas = made();
  it.each([["L1H1", 5], ["(1, 1)", 5], ["0 3", 3]])("a head: %s", (text, place) => {
    expect(lookUp(atlas, text)).toEqual({ kind: "head", place });
  });
  it("a relation, whole before part, with those that fit as well", () => {
    expect(lookUp(atlas, " DOUBLE ")).toMatchObject({ kind: "relation", relation: { name: "double" }, others: [] });
    expect(lookUp(atlas, "o")).toMatchObject({ relation: { name: "double" }, others: [{ name: "copying" }] });
  });
  it.each(["", "  ", "L9H9", "zzz"])("nothing: %s", (text) => {
    expect(lookUp(atlas, text)).toEqual({ kind: "nothing" });
  });
});
