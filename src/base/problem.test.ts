import { expect, it } from "vitest";
import { messageOf } from "./problem.js";

it("messageOf has a text for everything that can be thrown", () => {
  expect(messageOf(new Error("no room"))).toBe("no room");
  expect(messageOf(new TypeError(""))).toBe("TypeError");
  expect(messageOf("text")).toBe("text");
  expect(messageOf(undefined)).toBe("undefined");
});
