/** Resolves the references inside `agent_params`: texts that begin with `url::` or `python::`. */
import { isRecord, ownValue } from "../base/index.js";
import type { PathSegment, UnplacedProblem } from "../mail/index.js";
import { PYTHON_PROMPTS, pythonName } from "./python-references.js";
import { badReference } from "./references.js";
import { attempt, own, type Resolver } from "./resolver.js";
import { fetchReference, isUrlReference } from "./urls.js";

type Params = Readonly<Record<string, unknown>>;

/** Returns the parameters with resolved references, and reports the others. */
export async function resolveParams(
  params: Params,
  at: readonly PathSegment[],
  resolver: Resolver,
  errors: UnplacedProblem[],
): Promise<Params> {
  const visit = async (value: unknown, place: readonly PathSegment[]): Promise<unknown> => {
    if (typeof value === "string") {
      return (await attempt(place, errors, () => resolveText(value, resolver))) ?? value;
    }
    if (Array.isArray(value)) return Promise.all(value.map((item, index) => visit(item, [...place, index])));
    return isRecord(value) ? visitRecord(value, place) : value;
  };
  const visitRecord = async (record: Params, place: readonly PathSegment[]): Promise<Params> => {
    const entries = Object.entries(record).map(async ([key, item]) => [
      key,
      await visit(item, [...place, key]),
    ]);
    return Object.fromEntries(await Promise.all(entries));
  };
  return visitRecord(params, at);
}

async function resolveText(text: string, resolver: Resolver): Promise<string> {
  if (isUrlReference(text)) return fetchReference(text, resolver.urls);
  if (!text.startsWith("python::")) return text;
  const example = exampleOfPrompt(text);
  const prompt = example === undefined ? undefined : ownValue(resolver.builtins.prompts, example);
  if (prompt !== undefined) return prompt;
  throw badReference(`'${text}' is Python code, which cannot run here`, "write the text itself");
}

/** Returns the bundled example that corresponds to a prompt of the reference implementation. */
export function exampleOfPrompt(system: unknown): string | undefined {
  const python = typeof system === "string" ? pythonName(system) : undefined;
  return python === undefined ? undefined : own(PYTHON_PROMPTS, python);
}
