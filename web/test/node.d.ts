// The little of Node that tests use; the page itself must not see any of it.
declare module "node:fs" {
  export function readFileSync(path: string, encoding: "utf8"): string;
}
declare const process: { readonly env: Readonly<Record<string, string | undefined>> };
