/**
 * Kinds of setting values. A kind reads a value from TOML or code, and text from the environment and the command line.
 * Pure, so that every module can declare settings without loading a parser.
 */

/** A value, or the reason why it was rejected when the kind's name does not say enough. */
export type Parsed<T> = { readonly value: T } | { readonly problem: string | undefined };

export interface Kind<T> {
  /** Completes the sentence "the value must be …". */
  readonly name: string;
  /** The same for a table of settings. */
  readonly brief: string;
  parse(raw: unknown): Parsed<T>;
  /** Converts text to the form that `parse` takes. Text that makes no sense is passed on for `parse` to reject. */
  fromText(text: string): unknown;
  show(value: T): string;
  /** For values that depend on the directory they were written in. */
  resolve?(value: T, absolute: (path: string) => string): T;
}

const REJECTED = { problem: undefined };

const unchanged = (text: string): unknown => text;

/** A string that `accepts` allows. */
function stringKind(
  name: string,
  brief: string,
  accepts: (value: string) => boolean,
  show: (value: string) => string = (value) => value,
): Kind<string> {
  return {
    name,
    brief,
    parse: (raw) => (typeof raw === "string" && accepts(raw) ? { value: raw } : REJECTED),
    fromText: unchanged,
    show,
  };
}

export const textKind = stringKind("a non-empty text", "text", (value) => value !== "");

export const anyTextKind = stringKind("a text", "text", () => true);

export const httpUrlKind = stringKind(
  "a URL that begins with http:// or https://",
  "URL",
  (value) => /^https?:$/.test(parseUrl(value)?.protocol ?? ""),
  withoutPassword,
);

/** The value of the `Origin` header: no path, no trailing slash. `*` stands for every origin. */
export const originKind = stringKind(
  "an origin such as https://app.example.com, or *",
  "origin",
  (value) => value === "*" || parseUrl(value)?.origin === value,
);

/** Absolute once read: relative to the file it was written in, otherwise to the working directory. */
export const pathKind: Kind<string> = {
  ...textKind,
  name: "a path",
  brief: "path",
  resolve: (value, absolute) => absolute(value),
};

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["yes", true],
  ["on", true],
  ["1", true],
  ["false", false],
  ["no", false],
  ["off", false],
  ["0", false],
]);

export const booleanKind: Kind<boolean> = {
  name: "true or false",
  brief: "true or false",
  parse: (raw) => (typeof raw === "boolean" ? { value: raw } : REJECTED),
  fromText: (text) => BOOLEANS.get(text.toLowerCase()) ?? text,
  show: String,
};

export interface Range {
  readonly min?: number | undefined;
  readonly max?: number | undefined;
}

export function integerKind({ min = 0, max = Number.MAX_SAFE_INTEGER }: Range = {}): Kind<number> {
  return {
    name: `a whole number from ${min}${max === Number.MAX_SAFE_INTEGER ? "" : ` to ${max}`}`,
    brief: min === 0 ? "number" : `number, from ${min}`,
    parse: (raw) =>
      typeof raw === "number" && Number.isSafeInteger(raw) && raw >= min && raw <= max
        ? { value: raw }
        : REJECTED,
    fromText: numberOrText,
    show: String,
  };
}

export const numberKind: Kind<number> = {
  name: "a number from 0",
  brief: "number",
  parse: (raw) => (typeof raw === "number" && Number.isFinite(raw) && raw >= 0 ? { value: raw } : REJECTED),
  fromText: numberOrText,
  show: String,
};

export function choiceKind<const Word extends string>(words: readonly Word[]): Kind<Word> {
  return {
    name: `one of ${words.join(", ")}`,
    brief: words.map((word) => `\`${word}\``).join(", "),
    parse: (raw) => {
      const word = words.find((candidate) => candidate === raw);
      return word === undefined ? REJECTED : { value: word };
    },
    fromText: unchanged,
    show: (value) => value,
  };
}

/** A single value needs no brackets; text separates values with commas. */
export function listKind<T>(item: Kind<T>): Kind<readonly T[]> {
  const { resolve } = item;
  return {
    name: `a list; each item must be ${item.name}`,
    brief: `list: ${item.brief}`,
    parse: (raw) => {
      const values: T[] = [];
      for (const one of Array.isArray(raw) ? raw : [raw]) {
        const parsed = item.parse(one);
        if (!("value" in parsed)) return parsed;
        values.push(parsed.value);
      }
      return { value: values };
    },
    fromText: (text) => commaSeparated(text).map((part) => item.fromText(part)),
    show: (values) => (values.length === 0 ? "none" : values.map((value) => item.show(value)).join(", ")),
    ...(resolve !== undefined && {
      resolve: (values: readonly T[], absolute: (path: string) => string) =>
        values.map((value) => resolve(value, absolute)),
    }),
  };
}

/** A table from any name to a value; as text `name=value,name=value`. */
export function tableKind<T>(item: Kind<T>): Kind<Readonly<Record<string, T>>> {
  return {
    name: `a table; each value must be ${item.name}`,
    brief: `table: ${item.brief}`,
    parse: (raw) => {
      if (!isTable(raw)) return REJECTED;
      const values: [string, T][] = [];
      for (const [name, one] of Object.entries(raw)) {
        const parsed = item.parse(one);
        if (!("value" in parsed)) return parsed;
        values.push([name, parsed.value]);
      }
      return { value: Object.fromEntries(values) };
    },
    fromText: (text) => {
      const pairs = text.split(",").map((pair) => pair.split("=").map((part) => part.trim()));
      if (pairs.some((pair) => pair.length !== 2)) return text;
      return Object.fromEntries(pairs.map(([name = "", value = ""]) => [name, item.fromText(value)]));
    },
    show: (value) => {
      const pairs = Object.entries(value).map(([name, one]) => `${name}=${item.show(one)}`);
      return pairs.length === 0 ? "none" : pairs.join(", ");
    },
  };
}

/** Units in the order in which they are tried to show a value. */
const DURATIONS: readonly Unit[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
];
const SIZES: readonly Unit[] = [
  ["gb", 1024 ** 3],
  ["mb", 1024 ** 2],
  ["kb", 1024],
  ["b", 1],
];

type Unit = readonly [name: string, factor: number];

/** Milliseconds. A plain number is seconds, as in the reference; or text such as `90s`, `15m`, `12h`, `7d`. */
export function durationKind({ min = 0 }: Range = {}): Kind<number> {
  const name = "a time: seconds, or a text such as '500ms', '90s', '15m', '12h', '7d'";
  return quantityKind("time", name, DURATIONS, "s", min);
}

/** Bytes: a plain number, or text such as `512kb`, `4mb`. */
export function bytesKind({ min = 1 }: Range = {}): Kind<number> {
  return quantityKind("size", "a size: bytes, or a text such as '512kb', '4mb'", SIZES, "b", min);
}

function quantityKind(
  brief: string,
  name: string,
  units: readonly Unit[],
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
    parse: (raw) => {
      if (typeof raw !== "number" && typeof raw !== "string") return REJECTED;
      const [, digits, unit = plain] = form.exec(String(raw)) ?? [];
      const value = Math.round(Number(digits) * (factors.get(unit.toLowerCase()) ?? 1));
      if (!Number.isSafeInteger(value)) return { problem: `must be ${name}` };
      return value >= min ? { value } : { problem: `must be at least ${show(min)}` };
    },
    fromText: unchanged,
    show,
  };
}

/** Proxies whose `X-Forwarded-*` headers are trusted. */
export type TrustProxy = boolean | number | readonly string[];

export const trustProxyKind: Kind<TrustProxy> = {
  name: "true, false, a number of proxies, or a list of addresses",
  brief: "true or false, number, or list",
  parse: (raw) => {
    if (typeof raw === "boolean") return { value: raw };
    if (typeof raw === "number") return integerKind({ min: 1 }).parse(raw);
    return Array.isArray(raw) && raw.length > 0 ? listKind(textKind).parse(raw) : REJECTED;
  },
  fromText: (text) => {
    const plain = text === "1" ? 1 : (BOOLEANS.get(text.toLowerCase()) ?? numberOrText(text));
    return typeof plain === "string" ? plain.split(",").map((part) => part.trim()) : plain;
  },
  show: (value) => (typeof value === "object" ? value.join(", ") : String(value)),
};

export function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function commaSeparated(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

function numberOrText(text: string): number | string {
  return /^[+-]?\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : text;
}

function withoutPassword(url: string): string {
  const parsed = parseUrl(url);
  if (parsed === undefined || (parsed.username === "" && parsed.password === "")) return url;
  parsed.username = "";
  parsed.password = "";
  return parsed.href;
}

function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}
