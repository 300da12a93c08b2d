/**
 * Validators compiled from the published schemas. They accept only the strict form; data from other implementations is
 * first normalized by `compat.ts`.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import { z } from "zod";
import { type Checked, type FormatProblem, valueOrThrow } from "./errors.js";
import type { MAILInterswarmMessage, MAILMessage } from "./message.js";
import { type JsonSchema, mailCoreSchema, mailInterswarmSchema } from "./schema.js";

export interface ValidateOptions {
  /** Also requires a UUID as `task_id`. By default a caller-chosen id may be any string (decision A3). */
  readonly strictIds?: boolean;
}

/** Checks a message against the protocol's schema. */
export function checkMailMessage(value: unknown, options: ValidateOptions = {}): Checked<MAILMessage> {
  return check(options.strictIds ? strictMailMessage() : mailMessage(), value);
}

/** Checks a message between swarms against the protocol's schema. */
export function checkInterswarmMessage(
  value: unknown,
  options: ValidateOptions = {},
): Checked<MAILInterswarmMessage> {
  return check(options.strictIds ? strictInterswarmMessage() : interswarmMessage(), value);
}

/**
 * Reads a message strictly, as `checkMailMessage` does.
 * @throws MailroomError `bad_message` with all problems.
 */
export function parseMailMessage(value: unknown, options?: ValidateOptions): MAILMessage {
  return valueOrThrow("MAIL message", checkMailMessage(value, options));
}

/**
 * Reads a message between swarms strictly, as `checkInterswarmMessage` does.
 * @throws MailroomError `bad_message` with all problems.
 */
export function parseInterswarmMessage(value: unknown, options?: ValidateOptions): MAILInterswarmMessage {
  return valueOrThrow("MAIL interswarm message", checkInterswarmMessage(value, options));
}

/** Compiled once, on first use, because it takes several milliseconds. */
const mailMessage = once(() => compile<MAILMessage>(mailCoreSchema()));
const strictMailMessage = once(() => compile<MAILMessage>(mailCoreSchema({ strictIds: true })));
const interswarmMessage = once(() => compile<MAILInterswarmMessage>(mailInterswarmSchema()));
const strictInterswarmMessage = once(() =>
  compile<MAILInterswarmMessage>(mailInterswarmSchema({ strictIds: true })),
);

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

function compile<T>(schema: JsonSchema): ValidateFunction<T> {
  return mailAjv().compile<T>(schema);
}

/**
 * A draft 2020-12 validator with the two formats of MAIL. It uses the regular expressions of the zod types, so that
 * both agree.
 */
export function mailAjv(): Ajv2020 {
  return new Ajv2020({
    allErrors: true,
    formats: {
      uuid: z.regexes.guid,
      "date-time": z.regexes.datetime({ offset: true }),
    },
  });
}

/** Maximum number of reported errors: a hostile message could cause one per byte. */
const MOST_PROBLEMS = 20;

function check<T>(validate: ValidateFunction<T>, value: unknown): Checked<T> {
  if (validate(value)) return { ok: true, value };
  const errors: FormatProblem[] = [];
  for (const error of validate.errors ?? []) {
    // Reports only that the branch of a message type failed; the reasons are separate errors.
    if (error.keyword === "if") continue;
    errors.push(describe(error));
    if (errors.length === MOST_PROBLEMS) break;
  }
  return { ok: false, errors };
}

function describe({ keyword, instancePath, params, message }: ErrorObject): FormatProblem {
  switch (keyword) {
    case "required":
      return { path: `${instancePath}/${pointer(params.missingProperty)}`, message: "is missing" };
    case "additionalProperties":
      return {
        path: `${instancePath}/${pointer(params.additionalProperty)}`,
        message: "is not a known field",
      };
    case "type":
      return { path: instancePath, message: `must be ${TYPE_NAMES[String(params.type)] ?? params.type}` };
    case "enum":
      return { path: instancePath, message: `must be one of ${[params.allowedValues].flat().join(", ")}` };
    case "format":
      return { path: instancePath, message: FORMAT_NAMES[String(params.format)] ?? "has a wrong format" };
    case "minLength":
    case "minItems":
      return { path: instancePath, message: "must not be empty" };
    case "pattern":
      return { path: instancePath, message: "must not contain control characters" };
    default:
      return { path: instancePath, message: message ?? `violates the rule ${keyword}` };
  }
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: "a string",
  object: "an object",
  array: "a list",
};

const FORMAT_NAMES: Readonly<Record<string, string>> = {
  uuid: "must be a UUID",
  "date-time": "must be a date and time with its offset (RFC 3339), for example 2026-03-02T08:15:30.120Z",
};

/** One step of a JSON Pointer (RFC 6901). */
function pointer(name: unknown): string {
  return String(name).replaceAll("~", "~0").replaceAll("/", "~1");
}
