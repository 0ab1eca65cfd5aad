// An atlas made by hand: two layers, four heads and two, two key/value groups in the first.
import { decode, type Atlas } from "../src/atlas";

export function base64(values: ArrayLike<number>, kind: "f" | "u8" | "u32" = "f"): string {
  const array = kind === "f" ? Float32Array.from(values) : kind === "u8" ? Uint8Array.from(values) : Uint32Array.from(values);
  return btoa(String.fromCharCode(...new Uint8Array(array.buffer)));
}

const hole = NaN;
export const RAW = {
  schema: 1,
  comparisons: [],
  atlases: [
    {
      label: "made up",
      model: {
        name: "made up", architecture: "M", layers: 2, width: 4, heads: [4, 2], kvHeads: [2, 2],
        parameters: 1, dtype: "float32", revision: null, madeWith: {},
      },
      threshold: 0.5,
      implements: 0.15,
      headlines: [],
      findings: [],
      tasks: [
        {
          name: "sums", title: "Sums", seeds: [0, 1],
          retain: base64([0.9, 0.1, 0.9, 0.5, 0.2, 0.9, hole, hole, 0.8, 0.9, 0.9, 0.5, 0.3, 0.9, hole, hole]),
          remove: base64([0.9, 0.1, 0.1, 0.5, 0.8, 0.3, hole, hole, 0.7, 0.1, 0.6, 0.5, 0.1, 0.3, hole, hole]),
          made: "",
          doubts: [],
          paths: [{ fit: "free", updates: [0, 5], seeds: 1, values: base64([255, 0, 0, 0, 0, 0, 0, 0, 51, 0, 0, 0, 0, 0, 0, 0], "u8") }],
        },
      ],
      relations: [
        { name: "double", title: "double", category: "own", kind: "static", pairs: 40, seeds: 0, seedsKept: true, uneven: "", scores: base64([0.2, 0, 0, 0, 0.15, 0, hole, hole, 0, 0.5, 0, 0, 0, 0, hole, hole]) },
        { name: "copying", title: "copying", category: "algorithmic", kind: "static", pairs: 40, seeds: 0, seedsKept: true, uneven: "", scores: base64([0.3, 0.1, 0, 0, 0, 0, hole, hole, 0, 0, 0, 0, 0, 0, hole, hole]) },
      ],
      effects: [{ task: "sums", method: "ablate-zero", unit: "nats", imported: false, uneven: "", values: base64([1, -1, 0, 0, 0.5, 0, hole, hole]), made: "", doubts: [] }],
      contrasts: [
        {
          name: "sums without words", retain: "Sums", forget: "Words", seeds: [0, 1],
          gates: base64([0.9, 0.1, 0.9, 0.9, 0.9, 0.9, hole, hole, 0.9, 0.3, 0.9, 0.9, 0.2, 0.9, hole, hole]),
          figures: [{ key: "retain_nll", before: 1, after: 1.5, low: 1.2, high: 1.8 }],
          made: "",
          doubts: [],
        },
      ],
      imported: [],
      labels: ["first", "", "", "", "", "", "", ""],
      salient: null,
    },
  ],
};

export function made(): Atlas {
  return decode(structuredClone(RAW))[0] as Atlas;
}
