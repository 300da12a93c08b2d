/** Converts zod's issues to problems for authors of swarm files: one per mistake, with a hint. */
import { z } from "zod";
import { didYouMean } from "../../base/index.js";
import type { PathSegment, UnplacedProblem } from "./problems.js";

type Issue = z.core.$ZodIssue;
type Schema = z.core.$ZodType;

/** @param schema the applied schema; lists the known keys. */
export function zodFindings(schema: Schema, issues: readonly Issue[]): UnplacedProblem[] {
  return issues.flatMap((issue) => toFindings(schema, issue, []));
}

function toFindings(root: Schema, issue: Issue, prefix: readonly PathSegment[]): UnplacedProblem[] {
  const at = [...prefix, ...issue.path.map((key) => (typeof key === "number" ? key : String(key)))];
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => {
        const hint = didYouMean(key, keysAt(root, at));
        return { at: [...at, key], message: `unknown key '${key}'`, ...(hint === undefined ? {} : { hint }) };
      });
    case "invalid_union":
      return unionFindings(root, issue, at);
    case "invalid_type":
      // zod reports "received undefined" for a missing key.
      return issue.message.endsWith("received undefined")
        ? [{ at, message: `is required (${article(issue.expected)})` }]
        : [{ at, message: lowerFirst(issue.message.replace(/^Invalid input: /, "")) }];
    case "invalid_value":
      return [valueFinding(issue, at)];
    default:
      return [{ at, message: lowerFirst(issue.message.replace(/^Invalid input: /, "")) }];
  }
}

/** A value that matches no form is reported against the intended form. */
function unionFindings(
  root: Schema,
  issue: z.core.$ZodIssueInvalidUnion,
  at: readonly PathSegment[],
): UnplacedProblem[] {
  const meant = issue.errors.filter((branch) => branch.every((inner) => !isWrongKind(inner)));
  const [best] = meant.sort((a, b) => a.length - b.length);
  if (best !== undefined) return best.flatMap((inner) => toFindings(root, inner, at));
  const kinds = new Set(
    issue.errors.flatMap((branch) =>
      branch.flatMap((inner) => {
        if (inner.code === "invalid_type") return [inner.expected];
        if (inner.code === "invalid_value") return inner.values.map((value) => JSON.stringify(value));
        return [];
      }),
    ),
  );
  const expected = [...kinds].join(" or ");
  return [{ at, message: expected === "" ? "does not fit" : `expected ${expected}` }];
}

function isWrongKind(issue: Issue): boolean {
  return issue.path.length === 0 && (issue.code === "invalid_type" || issue.code === "invalid_value");
}

function valueFinding(issue: z.core.$ZodIssueInvalidValue, at: readonly PathSegment[]): UnplacedProblem {
  const allowed = issue.values.map((value) => JSON.stringify(value)).join(", ");
  return { at, message: issue.values.length === 1 ? `expected ${allowed}` : `expected one of ${allowed}` };
}

function keysAt(schema: Schema, path: readonly PathSegment[]): string[] {
  const inner = unwrap(schema);
  const [key, ...rest] = path;
  if (inner instanceof z.ZodUnion) return inner.options.flatMap((option) => keysAt(option, path));
  if (inner instanceof z.ZodObject) {
    if (key === undefined) return Object.keys(inner.shape);
    const next: Schema | undefined = Object.hasOwn(inner.shape, key) ? inner.shape[key] : undefined;
    return next === undefined ? [] : keysAt(next, rest);
  }
  if (inner instanceof z.ZodArray && key !== undefined) return keysAt(inner.element, rest);
  return [];
}

function unwrap(schema: Schema): Schema {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodExactOptional ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodReadonly
  ) {
    return unwrap(schema.unwrap());
  }
  return schema;
}

function article(kind: string): string {
  return /^[aeio]/.test(kind) ? `an ${kind}` : `a ${kind}`;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
