// The colours of headatlas.figure.palette: what helps, hurts, does both or neither; categories; one score.
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

const CIVIDIS = ["#00224e", "#2a3f6d", "#575c6d", "#7d7c78", "#a59c74", "#d2c060", "#fee838"];

export const PALETTES: Readonly<Record<string, Palette>> = {
  paper: {
    neither: rgb("#000000"),
    helps: rgb("#00ff00"),
    hurts: rgb("#ff0000"),
    both: rgb("#ffff00"),
    heat: ["#000000", "#00a000", "#ffff00", "#ff0000"].map(rgb),
    lines: { facilitation: "#1b9e3f", interference: "#d7191c", irrelevance: "#7f7f7f" },
    unclassified: "#b4b4b4",
    categories: { algorithmic: "#1f77b4", knowledge: "#ff7f0e", linguistic: "#2ca02c", translation: "#d62728" },
    others: ["#bcbd22", "#17becf"],
    several: ["#9467bd", "#8c564b", "#e377c2", "#000000"],
  },
  safe: {
    neither: rgb("#000000"),
    helps: rgb("#2f7fff"),
    hurts: rgb("#f58a07"),
    both: rgb("#fff3ea"),
    heat: CIVIDIS.map(rgb),
    lines: { facilitation: "#2463c7", interference: "#e07b00", irrelevance: "#7f7f7f" },
    unclassified: "#c4c4c4",
    categories: { algorithmic: "#333ae3", knowledge: "#dd7a00", linguistic: "#00c27b", translation: "#af2603" },
    others: ["#94abfc", "#b1ff00"],
    several: ["#894694", "#000000", "#ffce6a", "#5e6554"],
  },
};

/** Between the four corners, linear along both axes. */
export function blend(palette: Palette, helping: number, hurting: number): Rgb {
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
  const steps = palette.heat;
  const at = Math.min(1, Math.max(0, value)) * (steps.length - 1);
  const low = Math.min(steps.length - 2, Math.floor(at));
  return mixed(steps[low] as Rgb, steps[low + 1] as Rgb, at - low);
}

/** A difference from -1 to 1: white is none. */
export function diverging(palette: Palette, value: number): Rgb {
  const end = rgb(value > 0 ? palette.lines.facilitation : palette.lines.interference);
  return mixed([255, 255, 255], end, Math.min(1, Math.abs(value)));
}

function mixed(one: Rgb, other: Rgb, share: number): Rgb {
  const at = (channel: 0 | 1 | 2): number => Math.round(one[channel] + (other[channel] - one[channel]) * share);
  return [at(0), at(1), at(2)];
}

/** The colour of each word of `categoryWords`. */
export function categoryColours(palette: Palette, categories: readonly string[]): Map<string, string> {
  const own = categories.filter((name) => !(name in palette.categories));
  const found = new Map([["", palette.unclassified]]);
  for (const name of categories) {
    const place = own.indexOf(name);
    found.set(name, palette.categories[name] ?? (palette.others[place % palette.others.length] as string));
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
