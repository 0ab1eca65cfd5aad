// Makes src/generated/validate.js of the schema that Python uses as well: plain code, because the page's policy
// forbids to compile any in the browser.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import Ajv from "ajv";
import standalone from "ajv/dist/standalone/index.js";

const schema = JSON.parse(
  readFileSync(new URL("../../src/headatlas/page/schema.json", import.meta.url), "utf8"),
);
const ajv = new Ajv({ code: { source: true, esm: true }, strict: false });
const folder = new URL("../src/generated/", import.meta.url);
mkdirSync(folder, { recursive: true });
writeFileSync(new URL("validate.js", folder), standalone.default(ajv, ajv.compile(schema)));
writeFileSync(
  new URL("validate.d.ts", folder),
  "declare const validate: ((data: unknown) => boolean) & {\n" +
    "  errors?: { instancePath: string; message?: string }[] | null;\n};\nexport default validate;\n",
);
