// Small helpers to build the page: text is always text, never markup.
export type Attributes = Readonly<Record<string, string | number | boolean | null | undefined>>;
export type Child = Node | string | null | undefined;

/** An element with attributes and children; strings become text. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  fill(made, attributes, children);
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function s<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[Tag] {
  const made = document.createElementNS(SVG, tag);
  fill(made, attributes, children);
  return made;
}

function fill(made: Element, attributes: Attributes, children: readonly Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined) made.append(child);
}

/** Replaces all that an element holds. */
export function put(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...children.filter((child): child is Node | string => child != null));
}

/** A label with a control in it. */
export function labelled(text: string, control: HTMLElement): HTMLLabelElement {
  return h("label", { class: "field" }, h("span", {}, text), control);
}

export function select(
  options: readonly (readonly [string, string])[],
  value: string,
  change: (value: string) => void,
  attributes: Attributes = {},
): HTMLSelectElement {
  const made = h("select", attributes, ...options.map(([key, text]) => h("option", { value: key }, text)));
  made.value = value;
  made.addEventListener("change", () => change(made.value));
  return made;
}

/** A token as a person can read it: spaces and control characters made visible, long ones cut. */
export function shown(token: string, most = 40): string {
  const visible = token
    .replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (sign) =>
      sign === "\n" ? "⏎" : sign === "\t" ? "⇥" : `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
    )
    .replace(/^ /, "␣");
  const signs = [...visible];
  return signs.length > most ? `${signs.slice(0, most - 1).join("")}…` : visible;
}

export function percent(share: number): string {
  const value = 100 * share;
  return `${value < 10 && value > 0 ? value.toFixed(1) : value.toFixed(0)} %`;
}

/** A name for a file, without signs that a file system may refuse. */
export function fileName(text: string): string {
  return text.replace(/[^A-Za-z0-9._-]+/g, "-");
}

/** Draws something anew; who stood on an element with a `data-key` stands on the same one afterwards. */
export function keepingFocus(parent: HTMLElement, draw: () => void): void {
  const active = document.activeElement;
  const key = active && parent.contains(active) ? active.getAttribute("data-key") : null;
  draw();
  if (key === null) return;
  const again = [...parent.querySelectorAll<HTMLElement>("[data-key]")].find((one) => one.dataset["key"] === key);
  again?.focus({ preventScroll: true });
}

/** A number with a true minus, and none before a zero. */
export function decimal(value: number, digits: number, plus = false): string {
  const text = value.toFixed(digits);
  if (Number(text) === 0) return text.replace("-", "");
  return `${value < 0 ? "−" : plus ? "+" : ""}${text.replace("-", "")}`;
}
