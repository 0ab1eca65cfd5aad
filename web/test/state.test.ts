import { describe, expect, it } from "vitest";
import { DEFAULTS, decodeState, encode, type State } from "../src/state";

describe("the state in the address", () => {
  it("is empty by default and comes back", () => {
    expect(encode(DEFAULTS)).toBe("");
    const changed: State = { ...DEFAULTS, head: "L5H3", threshold: 0.73, cut: true, from: 2, to: 7, show: "relation|a b&c", sort: "-math.facilitation" };
    expect(decodeState(`#${encode(changed)}`)).toEqual(changed);
  });

  it("takes what makes no sense as by default", () => {
    expect(decodeState("#threshold=abc&colours=pink&theme=&axes=heads&nonsense=1")).toEqual({ ...DEFAULTS, axes: "heads" });
    expect(decodeState("#threshold=7&implements=-1")).toEqual({ ...DEFAULTS, threshold: 1, implements: 0.01 });
    expect(decodeState("#from=&to=Infinity")).toEqual(DEFAULTS);
    expect(decodeState("#%%%")).toEqual(DEFAULTS);
  });
});
