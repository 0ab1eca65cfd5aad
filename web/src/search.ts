// What a reader may mean by a few letters: a head, or a relation.
import { placeOf, type Atlas, type Relation } from "./atlas";

export type Found =
  | { readonly kind: "head"; readonly place: number }
  | { readonly kind: "relation"; readonly relation: Relation; readonly others: readonly Relation[] }
  | { readonly kind: "nothing" };

/** A head by its name; else a relation by its name or title, whole or in part, with those that fit as well. */
export function lookUp(atlas: Atlas, text: string): Found {
  const place = placeOf(atlas, text);
  if (place !== null) return { kind: "head", place };
  const wanted = text.trim().toLowerCase();
  if (!wanted) return { kind: "nothing" };
  const named = (test: (name: string) => boolean): Relation[] =>
    atlas.relations.filter((one) => test(one.title.toLowerCase()) || test(one.name.toLowerCase()));
  const exact = named((name) => name === wanted);
  const [relation, ...others] = exact.length ? exact : named((name) => name.includes(wanted));
  return relation ? { kind: "relation", relation, others } : { kind: "nothing" };
}
