import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hasCode, type MailroomError } from "../../base/index.js";
import { calculate, calculatorAction, formatNumber } from "./calculator.js";

interface Sum {
  readonly ours: string;
  readonly value: number;
}

/** Expressions, each with the value that JavaScript's operators give. */
const sums = fc.letrec<{ sum: Sum; leaf: Sum; binary: Sum; negative: Sum; power: Sum }>((tie) => ({
  leaf: fc
    .oneof(fc.integer({ min: 0, max: 999 }), fc.double({ min: 0.001, max: 1000, noNaN: true }))
    .map((value) => ({ ours: String(value), value })),
  negative: tie("sum").map(({ ours, value }) => ({ ours: `-(${ours})`, value: -value })),
  power: fc.tuple(tie("sum"), fc.integer({ min: 0, max: 3 })).map(([{ ours, value }, exponent]) => ({
    ours: `(${ours}) ^ ${exponent}`,
    value: apply("^", value, exponent),
  })),
  binary: fc
    .tuple(tie("sum"), fc.constantFrom("+", "-", "*", "/", "%"), tie("sum"), fc.constantFrom("", " "))
    .map(([a, operator, b, space]) => ({
      ours: `(${a.ours})${space}${operator}${space}(${b.ours})`,
      value: apply(operator, a.value, b.value),
    })),
  sum: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    tie("leaf"),
    tie("binary"),
    tie("negative"),
    tie("power"),
  ),
}));

/** An operand that is not finite makes the result NaN; JavaScript makes `NaN ** 0` 1 and `1 / Infinity` 0. */
function apply(operator: string, a: number, b: number): number {
  if (!Number.isFinite(a) || !Number.isFinite(b)) return Number.NaN;
  switch (operator) {
    case "^":
      return a ** b;
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      return b === 0 ? Number.NaN : a / b;
    default:
      return b === 0 ? Number.NaN : a % b;
  }
}

describe("calculate", () => {
  it("agrees with JavaScript's arithmetic", () => {
    fc.assert(
      fc.property(sums.sum, ({ ours, value }) => {
        if (ours.length > 1000 || !Number.isFinite(value)) return;
        expect(calculate(ours)).toBe(value);
      }),
      { numRuns: 500 },
    );
  });

  it("gives * and / precedence over + and -", () => {
    const flat = fc.array(fc.tuple(fc.constantFrom("+", "-", "*", "/"), fc.integer({ min: 1, max: 99 })), {
      maxLength: 8,
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 99 }), flat, (first, rest) => {
        const terms = [[1, first] as [number, number]];
        for (const [operator, value] of rest) {
          const last = terms.at(-1);
          if (operator === "*" && last !== undefined) last[1] *= value;
          else if (operator === "/" && last !== undefined) last[1] /= value;
          else terms.push([operator === "-" ? -1 : 1, value]);
        }
        const expected = terms.reduce(
          (total, [sign, value]) => (sign < 0 ? total - value : total + value),
          0,
        );
        expect(calculate(`${first}${rest.map(([o, v]) => ` ${o} ${v}`).join("")}`)).toBe(expected);
      }),
    );
  });

  it.each([
    ["15% of 340", 51],
    ["200 + 10%", 200.1],
    ["7 % 4", 3],
    ["50% * 50%", 0.25],
    ["2^3^2", 512],
    ["-2^2", -4],
    ["(-2)^2", 4],
    ["--2^2", 4],
    ["2^-3^2", 2 ** -9],
    ["2^50%", Math.SQRT2],
    ["(1 + 2)% of 200", 6],
    ["5%%", 0.0005],
    ["7 mod -4", 3],
    ["2 to the power of 3", 8],
    ["2^-1", 0.5],
    ["12 times 7 plus 1", 85],
    ["7 divided by 2", 3.5],
    ["9 − 4 × 2 ÷ 8", 8],
    ["1,200 / 4", 300],
    ["max(1, 200, 3)", 200],
    ["sqrt(2) ^ 2 - abs(-2)", Math.SQRT2 ** 2 - 2],
    ["2 * pi", 2 * Math.PI],
    ["1e3 + .5", 1000.5],
  ])("%s", (expression, value) => {
    expect(calculate(expression)).toBe(value);
  });

  it.each([
    ["", /empty/, 1],
    ["1 +", /unexpected end/, 4],
    ["2 ** ", /unexpected end/, 6],
    ["(1 + 2", /unexpected end/, 7],
    ["(1 + )", /unexpected '\)'/, 6],
    ["1 + 2)", /unexpected '\)'/, 6],
    ["2 3", /unexpected '3'/, 3],
    ["max(2 3)", /unexpected '3'/, 7],
    ["1,", /unexpected ','/, 2],
    ["1 + $", /unexpected '\$'/, 5],
  ])("%j cannot be parsed, and the error has the position", (expression, message, position) => {
    const error = failureOf(expression);
    expect(error.message).toMatch(message);
    expect(error.details.position).toBe(position);
  });

  it.each([
    ["1 / (2 - 2)", /division by zero/],
    ["7 mod 0", /division by zero/],
    ["exit(1)", /unknown name 'exit'/],
    ["true", /unknown name 'true'/],
    ["this", /unknown name/],
    ["pi(2)", /'pi' is not a function/],
    ["sqrt + 1", /expected '\(' after 'sqrt'/],
    ["()", /one value in brackets/],
    ["sqrt(-1)", /not a real number/],
    ["9^999", /too large/],
    ["sqrt(1, 2)", /takes 1 value/],
  ])("%j cannot be evaluated", (expression, message) => {
    expect(failureOf(expression).message).toMatch(message);
  });

  it("[AGT-ACT-07] limits the length and the nesting of an expression", () => {
    expect(failureOf("(".repeat(900)).message).toMatch(/levels deep/);
    expect(failureOf("-".repeat(900)).message).toMatch(/levels deep/);
    expect(failureOf("1".repeat(5000)).message).toMatch(/longer than/);
  });

  it("throws only bad_expression, for any text", () => {
    const pieces = fc.constantFrom(
      "1",
      "2.5",
      "(",
      ")",
      "+",
      "-",
      "*",
      "/",
      "%",
      "^",
      ",",
      " of ",
      "sqrt",
      "pi",
      "x",
      "€",
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 30 }), (parts) => {
        try {
          expect(Number.isFinite(calculate(parts.join("")))).toBe(true);
        } catch (error) {
          expect(error).toMatchObject({ code: "bad_expression" });
        }
      }),
    );
  });
});

function failureOf(expression: string): MailroomError<string> {
  try {
    calculate(expression);
  } catch (error) {
    if (hasCode(error, "bad_expression")) return error;
    throw error;
  }
  throw new Error(`${expression} was accepted`);
}

describe("the result", () => {
  it("is rounded to twelve digits, or to the decimal places that were asked for", () => {
    expect(formatNumber(0.1 + 0.2)).toBe("0.3");
    expect(formatNumber(-0)).toBe("0");
    expect(formatNumber(2 / 3, 2)).toBe("0.67");
  });

  it("the action checks its arguments", async () => {
    const action = calculatorAction();
    expect(await action.check({ expression: "1", precision: 13 })).toMatchObject({ ok: false });
    expect(await action.check({ expression: "10/4", precision: 1 })).toMatchObject({ ok: true });
  });
});
