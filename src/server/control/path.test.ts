import { expect, it } from "vitest";
import { controlPath } from "./path.js";

it("is a socket in the data directory, or a pipe on Windows", () => {
  expect(controlPath("/srv/mail", "linux")).toBe("/srv/mail/control.sock");
  expect(controlPath("C:\\Mail", "win32")).toMatch(/^\\\\\.\\pipe\\mailroom-[0-9a-f]{24}$/);
  expect(controlPath("c:\\mail", "win32")).toBe(controlPath("C:\\Mail", "win32"));
});

it("is nothing where the operating system could not open it", () => {
  expect(controlPath(`/${"d".repeat(120)}`, "linux")).toBeUndefined();
});
