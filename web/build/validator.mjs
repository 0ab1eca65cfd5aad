// Makes src/generated/validate.js of the schema that Python uses as well: plain code, because the page's policy
// forbids to compile any in the browser.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import Ajv from "ajv";
import standalone from "ajv/dist/standalone/index.js";

const schema = JSON.parse(
  readFileSync(new URL("../../src/headatlas/page/schema.json", import.meta.url), "utf8"),
);
const ajv = new Ajv({ code: { source: true, esm: true }, strict: false });
const folder = new URL("../src/generated/", import.meta.url);
mkdirSync(folder, { recursive: true });

/** At once, and only if something changed: others may be reading it. */
function write(name, text) {
  const path = new URL(name, folder);
  if (existsSync(path) && readFileSync(path, "utf8") === text) return;
  const beside = new URL(`${name}.${process.pid}`, folder);
  writeFileSync(beside, text);
  renameSync(beside, path);
}

write("validate.js", standalone.default(ajv, ajv.compile(schema)));
write(
  "validate.d.ts",
  "declare const validate: ((data: unknown) => boolean) & {\n" +
    "  errors?: { instancePath: string; message?: string }[] | null;\n};\nexport default validate;\n",
);
