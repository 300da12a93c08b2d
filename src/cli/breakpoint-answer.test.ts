import { expect, it } from "vitest";
import { parseAnswer } from "./breakpoint-answer.js";

it("one text answers the only call, several answer one each", () => {
  expect(parseAnswer(["a=b, or not"])).toBe("a=b, or not");
  expect(parseAnswer(["yes,", "if", "it", "rains"])).toBe("yes, if it rains");
  expect(parseAnswer(["c1=yes", "c2=x=y"])).toEqual([
    { call_id: "c1", content: "yes" },
    { call_id: "c2", content: "x=y" },
  ]);
  expect(() => parseAnswer(["c1=yes", "no"])).toThrow("CALL_ID=text");
});
