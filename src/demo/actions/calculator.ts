/**
 * Arithmetic as people write it: `2 * (3 + 4)^2`, `15% of 340`, `sqrt(2) * 10`, `7 divided by 2`. The library jsep
 * parses it and a short list of nodes is evaluated, so that input never reaches `eval`.
 *
 * Precedence, from loose to tight: `+ -`, then `* / mod of`, then signs, then `^` (from right to left), then `%`.
 * `%` before a value is the remainder (`7 % 4`), otherwise it is percent (`15%`).
 */
import jsep from "jsep";
import { z } from "zod";
import { defineAction } from "../../actions/index.js";
import { MailroomError } from "../../base/index.js";

const MAX_LENGTH = 1_000;
const MAX_DEPTH = 100;

const CONSTANTS: ReadonlyMap<string, number> = new Map([
  ["pi", Math.PI],
  ["e", Math.E],
]);

interface MathFunction {
  readonly maxArguments: number;
  readonly run: (...values: number[]) => number;
}

const unary = (run: (value: number) => number): MathFunction => ({
  maxArguments: 1,
  run: (value = 0) => run(value),
});

const FUNCTIONS: ReadonlyMap<string, MathFunction> = new Map([
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
  ["max", { maxArguments: 100, run: Math.max }],
  ["min", { maxArguments: 100, run: Math.min }],
]);

/** Other spellings of operators, as jsep spells them. `mod` stays: only then is `%` still ambiguous. */
const SPELLINGS: readonly (readonly [RegExp, string])[] = [
  [/^(?:divided\s+by|over|÷|:)$/i, "/"],
  [/^(?:multiplied\s+by|times|of|×|·)$/i, "*"],
  [/^(?:to\s+the\s+power\s+of|\^)$/i, "**"],
  [/^plus$/i, "+"],
  [/^(?:minus|−)$/i, "-"],
];

const NUMBER = /(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?/.source;
const GROUPED_DIGITS = /\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?/.source;
const OPERATOR =
  /(?:divided\s+by|multiplied\s+by|to\s+the\s+power\s+of|plus|minus|times|over|mod|of)\b|\*\*|[-−+*×·/÷:%^(),]/
    .source;
const NAME = /[a-z][a-z0-9]*/.source;
const TOKEN = new RegExp(`\\s*(?:(?<digits>${NUMBER})|(?<operator>${OPERATOR})|(?<name>${NAME}))`, "iuy");
const TOP_LEVEL_TOKEN = new RegExp(TOKEN.source.replace(NUMBER, `${GROUPED_DIGITS}|${NUMBER}`), "iuy");

/**
 * Returns the value of an expression.
 * @throws MailroomError `bad_expression`, with the position when the expression cannot be parsed.
 */
export function calculate(expression: string): number {
  if (expression.length > MAX_LENGTH) {
    throw badExpression(`the expression is longer than ${MAX_LENGTH} characters`);
  }
  return evaluate(parse(expression));
}

/** Twelve significant digits, so that `0.1 + 0.2` is 0.3; or a fixed number of decimal places. */
export function formatNumber(value: number, decimals?: number): string {
  if (decimals !== undefined) return value.toFixed(decimals);
  const rounded = Number(value.toPrecision(12));
  return String(Object.is(rounded, -0) ? 0 : rounded);
}

interface Token {
  readonly text: string;
  readonly kind: "number" | "operator" | "name";
  /** Position in the expression, counted from 1. */
  readonly at: number;
}

function tokenize(expression: string): Token[] {
  const tokens: Token[] = [];
  const end = expression.trimEnd().length;
  let depth = 0;
  let signs = 0;
  for (let index = 0; index < end; ) {
    // Inside brackets a comma separates arguments, so digits are grouped only outside.
    const pattern = depth === 0 ? TOP_LEVEL_TOKEN : TOKEN;
    pattern.lastIndex = index;
    const found = pattern.exec(expression);
    const { digits, operator, name } = found?.groups ?? {};
    const written = digits ?? operator ?? name;
    if (found === null || written === undefined) {
      const [character = ""] = expression.slice(index).trimStart();
      throw badExpression(`unexpected '${character}'`, expression.indexOf(character, index) + 1);
    }
    index = pattern.lastIndex;
    const at = index - written.length + 1;
    const token: Token =
      digits !== undefined
        ? { kind: "number", text: digits.replaceAll(",", ""), at }
        : name !== undefined
          ? { kind: "name", text: name.toLowerCase(), at }
          : { kind: "operator", text: spelling(written), at };
    const { text } = token;
    // jsep takes both for lists of values.
    if ((text === "," && depth === 0) || followsValue(token, tokens.at(-1))) {
      throw badExpression(`unexpected '${written}'`, at);
    }
    tokens.push(token);
    if (text === "(") depth++;
    if (text === ")") depth--;
    signs = text === "+" || text === "-" ? signs + 1 : 0;
    // jsep parses brackets and signs recursively: the limit protects the stack.
    if (depth > MAX_DEPTH || signs > MAX_DEPTH) {
      throw badExpression(`the expression is nested more than ${MAX_DEPTH} levels deep`, at);
    }
  }
  return tokens;
}

/** Whether a value begins where an operator is missing. A name and a bracket are a call. */
function followsValue({ kind, text }: Token, last: Token | undefined): boolean {
  if (last === undefined || (last.kind === "operator" && last.text !== ")")) return false;
  return text === "(" ? last.kind !== "name" : kind !== "operator";
}

function spelling(operator: string): string {
  return SPELLINGS.find(([pattern]) => pattern.test(operator))?.[1] ?? operator.toLowerCase();
}

/** Names for jsep that an expression cannot contain: `$(x)` is x in brackets, and `x[$]` is x percent. */
const MARK = "$";
const PERCENT = `[${MARK}]`;

/**
 * Writes the tokens as JavaScript, the language that jsep parses. Brackets become calls, because jsep drops brackets and
 * gives signs precedence over powers: the calls let `power` tell `(-2)^2` from `-2^2`.
 */
function toJavaScript(tokens: readonly Token[]): string[] {
  return tokens.map(({ kind, text }, index) => {
    if (kind === "number") return isPercent(tokens, index + 1) ? `${MARK}(${text})` : text;
    if (text === "(" && tokens[index - 1]?.kind !== "name") return `${MARK}(`;
    if (isPercent(tokens, index)) return PERCENT;
    return text === "mod" ? "%" : text;
  });
}

function isPercent(tokens: readonly Token[], index: number): boolean {
  if (tokens[index]?.text !== "%") return false;
  const next = tokens[index + 1];
  return next === undefined || (next.kind === "operator" && next.text !== "(");
}

function parse(expression: string): jsep.Expression {
  const tokens = tokenize(expression);
  if (tokens.length === 0) throw badExpression("the expression is empty", 1);
  const text = toJavaScript(tokens).join(" ");
  try {
    return jsep(text);
  } catch (error) {
    if (!(error instanceof Error && "index" in error && typeof error.index === "number")) throw error;
    // One space separates the tokens in the text, so the spaces before the error's index count them.
    const before = text.slice(0, error.index).split(" ").length - 1;
    const token = error.index < text.length ? tokens[before] : undefined;
    if (token === undefined) throw badExpression("unexpected end of the expression", expression.length + 1);
    throw badExpression(`unexpected '${token.text}'`, token.at);
  }
}

function evaluate(node: jsep.Expression): number {
  if (is(node, "Literal") && typeof node.value === "number") return finite(node.value);
  if (is(node, "Identifier")) return constant(node.name);
  if (is(node, "UnaryExpression")) return applySign(node.operator, evaluate(node.argument));
  if (is(node, "BinaryExpression")) return binary(node);
  if (is(node, "CallExpression")) return call(node);
  if (is(node, "MemberExpression")) return evaluate(node.object) / 100;
  throw badExpression(`unknown name '${String(node.raw ?? node.type)}'`);
}

function is<Type extends jsep.CoreExpression["type"]>(
  node: jsep.Expression,
  type: Type,
): node is Extract<jsep.CoreExpression, { type: Type }> {
  return node.type === type;
}

function binary({ operator, left, right }: jsep.BinaryExpression): number {
  switch (operator) {
    case "+":
      return finite(evaluate(left) + evaluate(right));
    case "-":
      return finite(evaluate(left) - evaluate(right));
    case "*":
      return finite(evaluate(left) * evaluate(right));
    case "/":
      return finite(evaluate(left) / notZero(evaluate(right)));
    case "%":
      return finite(evaluate(left) % notZero(evaluate(right)));
    default:
      return power(left, evaluate(right));
  }
}

/** A sign applies to the whole power: `-2^2` is -4. A sign in brackets arrives as a call. */
function power(base: jsep.Expression, exponent: number): number {
  if (is(base, "UnaryExpression")) return applySign(base.operator, power(base.argument, exponent));
  return finite(evaluate(base) ** exponent);
}

function applySign(sign: string, value: number): number {
  return sign === "-" ? -value : value;
}

function call({ callee, arguments: parameters }: jsep.CallExpression): number {
  const name = is(callee, "Identifier") ? callee.name : "";
  const values = parameters.map(evaluate);
  if (name === MARK) {
    const [value] = values;
    if (value === undefined || values.length > 1) throw badExpression("expected one value in brackets");
    return value;
  }
  const func = FUNCTIONS.get(name);
  if (func === undefined)
    throw CONSTANTS.has(name) ? badExpression(`'${name}' is not a function`) : unknownName(name);
  if (values.length < 1 || values.length > func.maxArguments) {
    throw badExpression(`'${name}' takes ${func.maxArguments} value(s), not ${values.length}`);
  }
  return finite(func.run(...values));
}

function constant(name: string): number {
  const value = CONSTANTS.get(name);
  if (value !== undefined) return value;
  throw FUNCTIONS.has(name) ? badExpression(`expected '(' after '${name}'`) : unknownName(name);
}

function unknownName(name: string): MailroomError {
  const known = [...FUNCTIONS.keys(), ...CONSTANTS.keys()].join(", ");
  return badExpression(`unknown name '${name}'; known names: ${known}`);
}

function notZero(value: number): number {
  if (value === 0) throw badExpression("division by zero");
  return value;
}

function finite(value: number): number {
  if (Number.isNaN(value)) throw badExpression("the result is not a real number");
  if (!Number.isFinite(value)) throw badExpression("the result is too large");
  return value;
}

/** @param position in the expression, counted from 1 */
function badExpression(message: string, position?: number): MailroomError {
  if (position === undefined) return new MailroomError("bad_expression", message);
  return new MailroomError("bad_expression", `${message} (at position ${position})`, {
    details: { position },
  });
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
