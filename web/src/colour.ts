// The colours of headatlas.figure.palette: what helps, hurts, does both or neither; categories; one score.
import { palettes } from "../../src/headatlas/figure/palette.json";

export type Rgb = readonly [number, number, number];

export interface Palette {
  readonly neither: Rgb;
  readonly helps: Rgb;
  readonly hurts: Rgb;
  readonly both: Rgb;
  readonly heat: readonly Rgb[];
  readonly lines: Readonly<Record<"facilitation" | "interference" | "irrelevance", string>>;
  readonly unclassified: string;
  readonly categories: Readonly<Record<string, string>>;
  readonly others: readonly string[];
  readonly several: readonly string[];
}

export function rgb(hex: string): Rgb {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** a number that there is not: unlike any score */
export const UNKNOWN: Rgb = [138, 127, 158];
/** roles that are no score, in the strip of seeds */
export const OTHER_ROLES: Readonly<Record<string, string>> = { anomaly: "#9b51e0", unclear: "#8a8a8a" };

function palette(colours: (typeof palettes)["paper"]): Palette {
  const { neither, helps, hurts, both, heat, ...strings } = colours;
  const corners = { neither: rgb(neither), helps: rgb(helps), hurts: rgb(hurts), both: rgb(both) };
  return { ...strings, ...corners, heat: heat.steps.map(rgb) };
}

export const PALETTES: Readonly<Record<string, Palette>> = Object.fromEntries(
  Object.entries(palettes).map(([name, colours]) => [name, palette(colours)]),
);

/** Between the four corners, linear along both axes. */
export function blend(palette: Palette, helping: number, hurting: number): Rgb {
  if (Number.isNaN(helping) || Number.isNaN(hurting)) return UNKNOWN;
  const weights = [
    (1 - helping) * (1 - hurting),
    helping * (1 - hurting),
    (1 - helping) * hurting,
    helping * hurting,
  ] as const;
  const corners = [palette.neither, palette.helps, palette.hurts, palette.both] as const;
  const mix = (channel: 0 | 1 | 2): number =>
    Math.round(corners.reduce((sum, corner, place) => sum + (weights[place] ?? 0) * corner[channel], 0));
  return [mix(0), mix(1), mix(2)];
}

/** One number from 0 to 1. */
export function heat(palette: Palette, value: number): Rgb {
  if (Number.isNaN(value)) return UNKNOWN;
  const steps = palette.heat;
  const at = Math.min(1, Math.max(0, value)) * (steps.length - 1);
  const low = Math.min(steps.length - 2, Math.floor(at));
  return mixed(steps[low] as Rgb, steps[low + 1] as Rgb, at - low);
}

/** More and less, whatever of: not the colours of roles, and for all eyes. */
const MORE: Rgb = [33, 102, 172];
const LESS: Rgb = [178, 24, 43];

/** A difference from -1 to 1: white is none. */
export function diverging(value: number): Rgb {
  if (Number.isNaN(value)) return UNKNOWN;
  return mixed([255, 255, 255], value > 0 ? MORE : LESS, Math.min(1, Math.abs(value)));
}

function mixed(one: Rgb, other: Rgb, share: number): Rgb {
  const at = (channel: 0 | 1 | 2): number => Math.round(one[channel] + (other[channel] - one[channel]) * share);
  return [at(0), at(1), at(2)];
}

/** The colour of each word of `categoryWords`. */
export function categoryColours(palette: Palette, categories: readonly string[]): Map<string, string> {
  const known = (name: string): string | undefined => (Object.hasOwn(palette.categories, name) ? palette.categories[name] : undefined);
  const own = categories.filter((name) => !known(name));
  const found = new Map([["", palette.unclassified]]);
  for (const name of categories) {
    const place = own.indexOf(name);
    found.set(name, known(name) ?? (palette.others[place % palette.others.length] as string));
  }
  for (let number = 2; number <= categories.length; number++) {
    const place = Math.min(number - 2, palette.several.length - 1);
    found.set(`${number} categories`, palette.several[place] as string);
  }
  return found;
}

export function css([red, green, blue]: Rgb): string {
  return `rgb(${red}, ${green}, ${blue})`;
}
