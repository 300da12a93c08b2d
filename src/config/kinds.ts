/**
 * The kinds of values that a setting can have. Each reads a value as TOML has it, and text as the environment and the
 * command line have it, and can write it for people.
 */
import { resolve } from "node:path";
import { z } from "zod";

export interface Kind<T> {
  /** Completes the sentence "the value must be …". */
  readonly name: string;
  /** The same for a table of settings. */
  readonly brief: string;
  readonly schema: z.ZodType<T>;
  /** What the schema is given for a text; a text that makes no sense is passed on for the schema to refuse. */
  fromText(text: string): unknown;
  show(value: T): string;
  /** For values that depend on where they were written. */
  readonly resolve?: (value: T, directory: string) => T;
}

const asIs = (text: string): unknown => text;

export const text: Kind<string> = {
  name: "a text that is not empty",
  brief: "text",
  schema: z.string().min(1),
  fromText: asIs,
  show: (value) => value,
};

export const anyText: Kind<string> = { ...text, name: "a text", schema: z.string() };

const TRUTH: Readonly<Record<string, boolean>> = {
  true: true,
  yes: true,
  on: true,
  1: true,
  false: false,
  no: false,
  off: false,
  0: false,
};

export const truth: Kind<boolean> = {
  name: "true or false",
  brief: "true or false",
  schema: z.boolean(),
  fromText: (given) => TRUTH[given.toLowerCase()] ?? given,
  show: String,
};

export function whole({
  min = 0,
  max = Number.MAX_SAFE_INTEGER,
}: {
  min?: number;
  max?: number;
} = {}): Kind<number> {
  return {
    name: `a whole number from ${min}${max === Number.MAX_SAFE_INTEGER ? "" : ` to ${max}`}`,
    brief: min === 0 ? "number" : `number, from ${min}`,
    schema: z.int().min(min).max(max),
    fromText: numberOrText,
    show: String,
  };
}

export function choice<const Word extends string>(words: readonly [Word, ...Word[]]): Kind<Word> {
  return {
    name: `one of ${words.join(", ")}`,
    brief: words.map((word) => `\`${word}\``).join(", "),
    schema: z.enum(words),
    fromText: asIs,
    show: (value) => value,
  };
}

/** One value may be written without brackets; text has commas between them. */
export function listOf<T>(item: Kind<T>): Kind<readonly T[]> {
  return {
    name: `a list; each must be ${item.name}`,
    brief: `list: ${item.brief}`,
    schema: z.preprocess((given) => (Array.isArray(given) ? given : [given]), z.array(item.schema)),
    fromText: (given) =>
      given
        .split(",")
        .map((part) => part.trim())
        .filter((part) => part !== "")
        .map((part) => item.fromText(part)),
    show: (values) => (values.length === 0 ? "none" : values.map((value) => item.show(value)).join(", ")),
    ...(item.resolve !== undefined && {
      resolve: (values: readonly T[], directory: string) =>
        values.map((value) => item.resolve?.(value, directory) ?? value),
    }),
  };
}

/** A table from any word to a value; as text `word=value,word=value`. */
export function mapOf<T>(item: Kind<T>): Kind<Readonly<Record<string, T>>> {
  return {
    name: `a table; each value must be ${item.name}`,
    brief: `table: ${item.brief}`,
    schema: z.record(z.string(), item.schema),
    fromText: (given) => {
      const pairs = given.split(",").map((pair) => pair.split("=").map((part) => part.trim()));
      if (pairs.some((pair) => pair.length !== 2)) return given;
      return Object.fromEntries(pairs.map(([word = "", value = ""]) => [word, item.fromText(value)]));
    },
    show: (value) => {
      const pairs = Object.entries(value).map(([word, item_]) => `${word}=${item.show(item_)}`);
      return pairs.length === 0 ? "none" : pairs.join(", ");
    },
  };
}

/** In the order in which they are tried to show a value. */
const DURATIONS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
] as const;
const SIZES = [
  ["gb", 1024 ** 3],
  ["mb", 1024 ** 2],
  ["kb", 1024],
  ["b", 1],
] as const;

/** Milliseconds. A plain number is seconds, as in the reference; or a text such as `90s`, `15m`, `12h`, `7d`. */
export function duration({ min = 0 }: { min?: number } = {}): Kind<number> {
  return quantity(
    "time",
    "a time: seconds, or a text such as '500ms', '90s', '15m', '12h', '7d'",
    DURATIONS,
    "s",
    min,
  );
}

/** Bytes: a plain number, or a text such as `512kb`, `4mb`. */
export function size({ min = 1 }: { min?: number } = {}): Kind<number> {
  return quantity("size", "a size: bytes, or a text such as '512kb', '4mb'", SIZES, "b", min);
}

function quantity(
  brief: string,
  name: string,
  units: readonly (readonly [string, number])[],
  plain: string,
  min: number,
): Kind<number> {
  const factors = new Map(units);
  const form = new RegExp(`^(\\d+(?:\\.\\d+)?)\\s*(${units.map(([unit]) => unit).join("|")})?$`, "i");
  const show = (value: number): string => {
    const [unit, factor] = units.find(([, size]) => value >= size && value % size === 0) ?? [plain, 1];
    return value === 0 ? "0" : `${value / factor}${unit}`;
  };
  return {
    name,
    brief,
    schema: z.union([z.number(), z.string()]).transform((given, context) => {
      const [, digits, unit = plain] = form.exec(String(given)) ?? [];
      const value = Math.round(Number(digits) * (factors.get(unit.toLowerCase()) ?? 1));
      if (Number.isSafeInteger(value) && value >= min) return value;
      context.addIssue(Number.isSafeInteger(value) ? `must be at least ${show(min)}` : `must be ${name}`);
      return z.NEVER;
    }),
    fromText: asIs,
    show,
  };
}

export const httpUrl: Kind<string> = {
  name: "a URL that begins with http:// or https://",
  brief: "URL",
  schema: z.string().refine((given) => /^https?:$/.test(parseUrl(given)?.protocol ?? "")),
  fromText: asIs,
  show: withoutPassword,
};

/** What a browser sends as `Origin`: no path, no slash at the end. `*` is everybody. */
export const origin: Kind<string> = {
  name: "an origin such as https://app.example.com, or *",
  brief: "origin",
  schema: z.string().refine((given) => given === "*" || parseUrl(given)?.origin === given),
  fromText: asIs,
  show: (value) => value,
};

/** Absolute once read: relative to the file it was written in, or to the working directory. */
export const path: Kind<string> = {
  ...text,
  name: "a path",
  brief: "path",
  resolve: (value, directory) => resolve(directory, value),
};

/** Whose `X-Forwarded-*` headers are believed. */
export type TrustProxy = boolean | number | readonly string[];

export const trustProxy: Kind<TrustProxy> = {
  name: "true, false, a number of proxies, or a list of addresses",
  brief: "true or false, number, or list",
  schema: z.union([z.boolean(), z.int().min(1), z.array(z.string().min(1)).min(1)]),
  fromText: (given) => {
    const plain = given === "1" ? 1 : (TRUTH[given.toLowerCase()] ?? numberOrText(given));
    return typeof plain === "string" ? plain.split(",").map((part) => part.trim()) : plain;
  },
  show: (value) => (typeof value === "object" ? value.join(", ") : String(value)),
};

export const database: Kind<"sqlite" | "memory"> = {
  name: "'sqlite', or 'none' to keep everything in memory",
  brief: "`sqlite`, `none`",
  schema: z.string().transform((given, context) => {
    if (given === "sqlite") return "sqlite";
    if (given === "none" || given === "memory") return "memory";
    // Decisions D8. The URL is not repeated: it usually holds a password.
    context.addIssue(
      /^postgres(ql)?:/i.test(given)
        ? "names a PostgreSQL database, which this version cannot use: leave it out to use SQLite in the data directory, or set it to 'none' to keep everything in memory"
        : "must be 'sqlite' or 'none'; where SQLite keeps its file is decided by server.data",
    );
    return z.NEVER;
  }),
  fromText: asIs,
  show: (value) => (value === "memory" ? "none (in memory)" : value),
};

function numberOrText(given: string): number | string {
  return /^[+-]?\d+(\.\d+)?$/.test(given.trim()) ? Number(given) : given;
}

function withoutPassword(url: string): string {
  const parsed = parseUrl(url);
  if (parsed === undefined || (parsed.username === "" && parsed.password === "")) return url;
  parsed.username = "";
  parsed.password = "";
  return parsed.href;
}

function parseUrl(given: string): URL | undefined {
  return URL.canParse(given) ? new URL(given) : undefined;
}
