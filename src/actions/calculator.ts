/**
 * Arithmetic as people write it: `2 * (3 + 4)^2`, `15% of 340`, `sqrt(2) * 10`, `7 divided by 2`. A small parser of
 * its own: what agents and users write is never handed to `eval`.
 *
 * Precedence, from loose to tight: `+ -`, then `* / mod of`, then signs, then `^` (from right to left), then `%`.
 * `%` before a value is the remainder (`7 % 4`), otherwise it is percent (`15%`).
 */
import { z } from "zod";
import { defineAction } from "./define.js";

export class CalculatorError extends Error {
  override readonly name = "CalculatorError";
  readonly code = "bad_expression";
  /** Where in the expression, counted from 1. */
  readonly position: number;
  constructor(message: string, position: number) {
    super(`${message} (at position ${position})`);
    this.position = position;
  }
}

type Token =
  | { readonly kind: "number"; readonly value: number; readonly at: number }
  | { readonly kind: "name" | "symbol"; readonly text: string; readonly at: number }
  | { readonly kind: "end"; readonly at: number };

const CONSTANTS: ReadonlyMap<string, number> = new Map([
  ["pi", Math.PI],
  ["e", Math.E],
]);

interface Func {
  readonly least: number;
  readonly most: number;
  readonly run: (...values: number[]) => number;
}

const unary = (run: (value: number) => number): Func => ({
  least: 1,
  most: 1,
  run: (value = 0) => run(value),
});

const FUNCTIONS: ReadonlyMap<string, Func> = new Map([
  ["abs", unary(Math.abs)],
  ["ceil", unary(Math.ceil)],
  ["cos", unary(Math.cos)],
  ["exp", unary(Math.exp)],
  ["floor", unary(Math.floor)],
  ["ln", unary(Math.log)],
  ["log", unary(Math.log10)],
  ["round", unary(Math.round)],
  ["sin", unary(Math.sin)],
  ["sqrt", unary(Math.sqrt)],
  ["tan", unary(Math.tan)],
  ["max", { least: 1, most: 100, run: Math.max }],
  ["min", { least: 1, most: 100, run: Math.min }],
]);

/** Other ways to write an operator. Longer ones first. */
const SYNONYMS: readonly (readonly [RegExp, string])[] = [
  [/^divided\s+by\b/i, "/"],
  [/^multiplied\s+by\b/i, "*"],
  [/^to\s+the\s+power\s+of\b/i, "^"],
  [/^plus\b/i, "+"],
  [/^minus\b/i, "-"],
  [/^times\b/i, "*"],
  [/^over\b/i, "/"],
  [/^mod\b/i, "mod"],
  [/^of\b/i, "of"],
  [/^\*\*/, "^"],
  [/^[×·]/u, "*"],
  [/^[÷:]/u, "/"],
  [/^−/u, "-"],
  [/^[-+*/%^(),]/, ""],
];

const NUMBER = /^(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?/i;
const MAX_LENGTH = 1_000;
const MAX_DEPTH = 100;

/**
 * The value of an expression.
 * @throws CalculatorError (code `bad_expression`) that says what is wrong and where.
 */
export function calculate(expression: string): number {
  if (expression.length > MAX_LENGTH) {
    throw new CalculatorError(`the expression is longer than ${MAX_LENGTH} characters`, MAX_LENGTH + 1);
  }
  return new Parser(tokenise(expression)).whole();
}

/** Twelve significant digits, so that `0.1 + 0.2` is 0.3; or a fixed number of decimal places. */
export function formatNumber(value: number, decimals?: number): string {
  if (decimals !== undefined) return value.toFixed(decimals);
  const rounded = Number(value.toPrecision(12));
  return String(Object.is(rounded, -0) ? 0 : rounded);
}

function tokenise(expression: string): Token[] {
  const tokens: Token[] = [];
  let index = 0;
  // Inside brackets a comma separates arguments, so there it never groups digits.
  let depth = 0;
  while (index < expression.length) {
    const rest = expression.slice(index);
    const at = index + 1;
    const space = /^\s+/.exec(rest);
    if (space !== null) {
      index += space[0].length;
      continue;
    }
    const number = (depth === 0 ? NUMBER : PLAIN_NUMBER).exec(rest);
    if (number !== null) {
      tokens.push({ kind: "number", value: Number(number[0].replaceAll(",", "")), at });
      index += number[0].length;
      continue;
    }
    const symbol = readSymbol(rest);
    if (symbol !== undefined) {
      if (symbol.text === "(") depth++;
      if (symbol.text === ")") depth--;
      tokens.push({ kind: "symbol", text: symbol.text, at });
      index += symbol.length;
      continue;
    }
    const name = /^[a-z][a-z0-9]*/i.exec(rest);
    if (name === null) throw new CalculatorError(`'${[...rest][0] ?? ""}' means nothing here`, at);
    tokens.push({ kind: "name", text: name[0].toLowerCase(), at });
    index += name[0].length;
  }
  tokens.push({ kind: "end", at: expression.length + 1 });
  return tokens;
}

const PLAIN_NUMBER = /^(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?/i;

function readSymbol(rest: string): { readonly text: string; readonly length: number } | undefined {
  for (const [pattern, meaning] of SYNONYMS) {
    const found = pattern.exec(rest);
    if (found !== null) return { text: meaning === "" ? found[0] : meaning, length: found[0].length };
  }
  return undefined;
}

class Parser {
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  whole(): number {
    if (this.#peek().kind === "end") throw new CalculatorError("there is nothing to calculate", 1);
    const value = this.#sum();
    const rest = this.#peek();
    if (rest.kind !== "end") throw new CalculatorError(`${describe(rest)} is not expected here`, rest.at);
    return value;
  }

  #sum(): number {
    let value = this.#product();
    for (;;) {
      const token = this.#peek();
      if (this.#take("+")) value = finite(value + this.#product(), token.at);
      else if (this.#take("-")) value = finite(value - this.#product(), token.at);
      else return value;
    }
  }

  #product(): number {
    let value = this.#signed();
    for (;;) {
      const token = this.#peek();
      if (this.#take("*") || this.#take("of")) value = finite(value * this.#signed(), token.at);
      else if (this.#take("/")) value = finite(value / notZero(this.#signed(), token.at), token.at);
      else if (this.#take("mod") || this.#take("%")) {
        value = finite(value % notZero(this.#signed(), token.at), token.at);
      } else return value;
    }
  }

  #signed(): number {
    return this.#nested(() => {
      if (this.#take("-")) return -this.#signed();
      if (this.#take("+")) return this.#signed();
      return this.#power();
    });
  }

  #power(): number {
    const base = this.#percent();
    const token = this.#peek();
    // The exponent may have a sign of its own, and is the whole power to its right: 2^-3^2 is 2^(-(3^2)).
    return this.#take("^") ? finite(base ** this.#signed(), token.at) : base;
  }

  #percent(): number {
    let value = this.#atom();
    while (this.#isPercentSign()) {
      this.#next++;
      value /= 100;
    }
    return value;
  }

  #isPercentSign(): boolean {
    if (!this.#is("%")) return false;
    const after = this.#tokens[this.#next + 1];
    if (after === undefined || after.kind === "end") return true;
    return after.kind === "symbol" && after.text !== "(";
  }

  #atom(): number {
    const token = this.#peek();
    if (token.kind === "number") {
      this.#next++;
      return finite(token.value, token.at);
    }
    if (token.kind === "name") {
      this.#next++;
      return this.#named(token.text, token.at);
    }
    if (this.#take("(")) {
      const value = this.#nested(() => this.#sum());
      this.#close(token.at);
      return value;
    }
    throw new CalculatorError(`expected a number, but found ${describe(token)}`, token.at);
  }

  #named(name: string, at: number): number {
    const constant = CONSTANTS.get(name);
    if (constant !== undefined) return constant;
    const func = FUNCTIONS.get(name);
    if (func === undefined) {
      const known = [...FUNCTIONS.keys(), ...CONSTANTS.keys()].join(", ");
      throw new CalculatorError(`'${name}' is not known; known are ${known}`, at);
    }
    const open = this.#peek();
    if (!this.#take("(")) throw new CalculatorError(`expected '(' after '${name}'`, open.at);
    const values = [this.#nested(() => this.#sum())];
    while (this.#take(",")) values.push(this.#nested(() => this.#sum()));
    this.#close(open.at);
    if (values.length < func.least || values.length > func.most) {
      throw new CalculatorError(`'${name}' takes ${func.most} value(s), not ${values.length}`, at);
    }
    return finite(func.run(...values), at);
  }

  /** Bounds the nesting, so that no expression can exhaust the stack. */
  #nested(parse: () => number): number {
    if (++this.#depth > MAX_DEPTH) {
      throw new CalculatorError(`nested more than ${MAX_DEPTH} levels deep`, this.#peek().at);
    }
    const value = parse();
    this.#depth--;
    return value;
  }

  #close(openedAt: number): void {
    const token = this.#peek();
    if (!this.#take(")")) {
      throw new CalculatorError(
        `expected ')' for the '(' at position ${openedAt}, but found ${describe(token)}`,
        token.at,
      );
    }
  }

  #peek(): Token {
    return this.#tokens[this.#next] ?? { kind: "end", at: 1 };
  }

  #is(symbol: string): boolean {
    const token = this.#peek();
    return token.kind === "symbol" && token.text === symbol;
  }

  #take(symbol: string): boolean {
    if (!this.#is(symbol)) return false;
    this.#next++;
    return true;
  }
}

function describe(token: Token): string {
  switch (token.kind) {
    case "number":
      return `the number ${token.value}`;
    case "end":
      return "the end of the expression";
    case "name":
    case "symbol":
      return `'${token.text}'`;
  }
}

function notZero(value: number, at: number): number {
  if (value === 0) throw new CalculatorError("division by zero", at);
  return value;
}

function finite(value: number, at: number): number {
  if (Number.isNaN(value)) throw new CalculatorError("this has no real value", at);
  if (!Number.isFinite(value)) throw new CalculatorError("the value is too large", at);
  return value;
}

const CalculatorArguments = z.strictObject({
  expression: z.string().min(1).describe("What to calculate, for example '15% of 340' or '2 * (3 + 4)^2'"),
  precision: z
    .int()
    .min(0)
    .max(12)
    .optional()
    .describe("Decimal places of the result; as many as needed if left out"),
});

/** The calculator as an action. */
export function calculatorAction(name = "calculate") {
  return defineAction({
    name,
    description: "Evaluates an arithmetic expression and returns its value.",
    parameters: CalculatorArguments,
    idempotent: true,
    run: ({ expression, precision }) => formatNumber(calculate(expression), precision),
  });
}
