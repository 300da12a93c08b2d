import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CalculatorError, calculate, calculatorAction, formatNumber } from "./calculator.js";

interface Sum {
  readonly ours: string;
  readonly value: number;
}

/** Expressions with the value that JavaScript's own operators give, built side by side. */
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

/** What is no number stays none: JavaScript makes 1 of its power of 0, and 0 of what is divided by infinity. */
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

  it("keeps the precedence of + - * / without brackets", () => {
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
    ["", /nothing to calculate/, 1],
    ["1 +", /found the end/, 4],
    ["2 ** ", /found the end/, 6],
    ["(1 + 2", /expected '\)' for the '\(' at position 1/, 7],
    ["1 / (2 - 2)", /division by zero/, 3],
    ["2 3", /the number 3 is not expected/, 3],
    ["exit(1)", /'exit' is not known/, 1],
    ["1 + $", /'\$' means nothing/, 5],
    ["sqrt(-1)", /no real value/, 1],
    ["9^999", /too large/, 2],
    ["sqrt(1, 2)", /takes 1 value/, 1],
  ])("%j says what is wrong and where", (expression, message, position) => {
    const error = failureOf(expression);
    expect(error.message).toMatch(message);
    expect(error.position).toBe(position);
  });

  it("[AGT-ACT-07] cannot be made to exhaust the stack or the clock", () => {
    expect(failureOf("(".repeat(900)).message).toMatch(/levels deep/);
    expect(failureOf("-".repeat(900)).message).toMatch(/levels deep/);
    expect(failureOf("1".repeat(5000)).message).toMatch(/longer than/);
  });

  it("never throws anything else than its own error, whatever is written", () => {
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
          expect(error).toBeInstanceOf(CalculatorError);
        }
      }),
    );
  });
});

function failureOf(expression: string): CalculatorError {
  try {
    calculate(expression);
  } catch (error) {
    if (error instanceof CalculatorError) return error;
    throw error;
  }
  throw new Error(`${expression} was accepted`);
}

describe("the result", () => {
  it("is written without the noise of binary fractions", () => {
    expect(formatNumber(0.1 + 0.2)).toBe("0.3");
    expect(formatNumber(-0)).toBe("0");
    expect(formatNumber(2 / 3, 2)).toBe("0.67");
  });

  it("comes from the action, too", async () => {
    const action = calculatorAction();
    expect(await action.check({ expression: "1", precision: 13 })).toMatchObject({ ok: false });
    expect(await action.check({ expression: "10/4", precision: 1 })).toMatchObject({ ok: true });
  });
});
