// What the colours of a map mean: named swatches, or a scale.
import { h } from "./dom";
import type { Legend } from "./looks";

export function legendPart(legend: Legend): HTMLElement {
  const hatched = legend.hatched ? [h("span", { class: "swatch hatched" }), legend.hatched] : [];
  if ("stops" in legend) {
    const bar = h("span", { class: "ramp", "aria-hidden": "true" });
    bar.style.background = `linear-gradient(to right, ${legend.stops.join(", ")})`;
    const scale = h("p", { class: "note" }, h("span", {}, legend.from), bar, h("span", {}, legend.to));
    return h("div", {}, scale, hatched.length ? h("p", { class: "note" }, ...hatched) : null);
  }
  const item = ([colour, text]: readonly [string, string]): HTMLElement => {
    const box = h("span", { class: "swatch" });
    box.style.background = colour;
    return h("li", {}, box, text);
  };
  return h("ul", { class: "legend" }, ...legend.swatches.map(item), hatched.length ? h("li", {}, ...hatched) : null);
}
