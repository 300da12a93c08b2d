/** Simple statistics of the numbers in a text. */
import { z } from "zod";
import { defineAction } from "../../actions/index.js";
import { formatNumber } from "./calculator.js";

export function numbersIn(text: string): readonly number[] {
  return (text.match(/(?<![\w.-])-?\d+(?:\.\d+)?(?![\w-])/g) ?? []).map(Number);
}

/** Returns `undefined` for an empty list. */
export function describeNumbers(numbers: readonly number[]): string | undefined {
  if (numbers.length === 0) return undefined;
  const sorted = numbers.toSorted((a, b) => a - b);
  const sum = numbers.reduce((total, number) => total + number, 0);
  const at = (index: number): number => sorted[index] ?? 0;
  const middle = Math.floor(sorted.length / 2);
  const median = sorted.length % 2 === 1 ? at(middle) : (at(middle - 1) + at(middle)) / 2;
  const mean = sum / numbers.length;
  const parts = { count: numbers.length, sum, mean, median, smallest: at(0), largest: at(sorted.length - 1) };
  return Object.entries(parts)
    .map(([name, value]) => `${name} ${formatNumber(value)}`)
    .join(", ");
}

export function describeNumbersAction(name = "describe_numbers") {
  return defineAction({
    name,
    description: "Finds the numbers in a text and returns their count, sum, mean, median and range.",
    parameters: z.strictObject({ text: z.string().describe("A text with numbers in it") }),
    idempotent: true,
    run: ({ text }) => {
      const description = describeNumbers(numbersIn(text));
      if (description === undefined) throw new Error("the text contains no numbers");
      return description;
    },
  });
}
