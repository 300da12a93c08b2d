import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { makeDirectories } from "./directories.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "mailroom-directories-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

it("makes what is missing with the mode that is asked for, and says where that begins", () => {
  const path = join(folder, "a", "b", "c");
  mkdirSync(join(folder, "a"), 0o755);
  expect(makeDirectories(path, 0o700)).toBe(join(folder, "a", "b"));
  expect(statSync(path).mode & 0o777).toBe(0o700);
  expect(statSync(join(folder, "a")).mode & 0o777).toBe(0o755);
  expect(makeDirectories(path, 0o700)).toBeUndefined();
  expect(makeDirectories("/")).toBeUndefined();
});

it("follows a link to a directory, and refuses what is a file or lies below one", () => {
  mkdirSync(join(folder, "real"));
  symlinkSync(join(folder, "real"), join(folder, "link"));
  expect(makeDirectories(join(folder, "link", "in"))).toBe(join(folder, "link", "in"));
  writeFileSync(join(folder, "file"), "");
  expect(() => makeDirectories(join(folder, "file"))).toThrow("EEXIST");
  expect(() => makeDirectories(join(folder, "file", "in", "it"))).toThrow(/ENOTDIR|EEXIST/);
});
