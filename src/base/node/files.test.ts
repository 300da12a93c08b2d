import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createFile, replaceFile } from "./files.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "mailroom-files-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

describe("a file that is made", () => {
  it("is the owner's alone, with its folders, and nothing else is left", () => {
    const path = join(folder, "a", "b", "key");
    createFile(path, "secret");
    expect(readFileSync(path, "utf8")).toBe("secret");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, "a")).mode & 0o777).toBe(0o700);
    expect(readdirSync(join(folder, "a", "b"))).toEqual(["key"]);
  });

  it("never takes the place of another", () => {
    const path = join(folder, "key");
    writeFileSync(path, "the old one");
    expect(() => createFile(path, "a new one")).toThrow(/EEXIST/);
    expect(readFileSync(path, "utf8")).toBe("the old one");
    expect(readdirSync(folder)).toEqual(["key"]);
  });
});

describe("a file that is replaced", () => {
  it("is the new one, the owner's alone, also where a crash left something of the last attempt", () => {
    const path = join(folder, "registry.json");
    writeFileSync(path, "old", { mode: 0o644 });
    writeFileSync(`${path}.${process.pid}.tmp`, "half of");
    replaceFile(path, "new");
    expect(readFileSync(path, "utf8")).toBe("new");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(["registry.json"]);
  });
});
