import { App } from "./app";
import { comparisonsOf, decode } from "./atlas";
import { h } from "./dom";
import "./style.css";

const root = document.getElementById("page") as HTMLElement;
try {
  const payload: unknown = JSON.parse(document.getElementById("payload")?.textContent ?? "null");
  new App(root, decode(payload), comparisonsOf(payload));
  root.dataset["ready"] = "true";
} catch (error) {
  root.replaceChildren(h("p", { role: "alert", class: "error" }, error instanceof Error ? error.message : String(error)));
}
