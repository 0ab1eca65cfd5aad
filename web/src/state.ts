// What the reader has chosen. It lives in the address, so that a link shows the same thing.
import { DIRECTIONS, type Direction } from "./atlas";
import { OVER, ROLES, SCORES, type Over, type Score } from "./scores";

export interface State {
  readonly head: string; // "" or L5H3
  readonly atlas: number; // which of two
  readonly threshold: number;
  readonly cut: boolean; // scores as 0 or 1 at the threshold, instead of shades
  readonly implements: number;
  readonly direction: Direction;
  readonly role: string; // filters: "" is all
  readonly task: string;
  readonly without: string; // a task in which they do not have the role
  readonly when: Over;
  readonly category: string;
  readonly relation: string;
  readonly from: number;
  readonly to: number; // -1: the last layer
  readonly show: string; // the single map: a key of `choices`
  readonly one: string; // difference of two tasks
  readonly other: string;
  readonly score: Score;
  readonly axes: "published" | "heads" | "layers";
  readonly zero: "bottom" | "top";
  readonly colours: "paper" | "safe";
  readonly theme: "auto" | "light" | "dark";
  readonly sort: string; // column of the table, with - in front for falling
}

/** the lowest threshold: at 0 every head would have every role */
export const LEAST = 0.01;

/** But for the thresholds, which an atlas brings along. */
export const DEFAULTS: State = {
  head: "",
  atlas: 0,
  threshold: 0.5,
  cut: false,
  implements: 0.15,
  direction: "promote",
  role: "",
  task: "",
  without: "",
  when: "always",
  category: "",
  relation: "",
  from: 0,
  to: -1,
  show: "",
  one: "",
  other: "",
  score: "facilitation",
  axes: "published",
  zero: "bottom",
  colours: "paper",
  theme: "auto",
  sort: "head",
};

const CHOICES: { readonly [Key in keyof State]?: readonly string[] } = {
  direction: DIRECTIONS,
  role: ["", ...ROLES],
  when: OVER,
  score: SCORES,
  axes: ["published", "heads", "layers"],
  zero: ["bottom", "top"],
  colours: ["paper", "safe"],
  theme: ["auto", "light", "dark"],
};

/** What differs from the defaults, as `key=value&…`. */
export function encode(state: State, usual: State = DEFAULTS): string {
  const found = new URLSearchParams();
  for (const key of Object.keys(DEFAULTS) as (keyof State)[]) {
    if (state[key] !== usual[key]) found.set(key, String(state[key]));
  }
  return found.toString();
}

/** The state of an address; what it does not know, or what makes no sense, is as by default. */
export function decodeState(hash: string, defaults: State = DEFAULTS): State {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const found: Record<string, string | number | boolean> = { ...defaults };
  for (const [key, usual] of Object.entries(defaults)) {
    const text = given.get(key);
    if (text === null) continue;
    const choices = CHOICES[key as keyof State];
    if (typeof usual === "number") {
      const value = Number(text);
      if (text.trim() !== "" && Number.isFinite(value)) found[key] = value;
    } else if (typeof usual === "boolean") found[key] = text === "true";
    else if (!choices || choices.includes(text)) found[key] = text;
  }
  for (const key of ["threshold", "implements"]) found[key] = Math.min(1, Math.max(LEAST, Number(found[key])));
  return found as unknown as State;
}
