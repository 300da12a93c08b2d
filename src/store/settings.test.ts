import { describe, expect, it } from "vitest";
import { storeSettings } from "./settings.js";

const { kind } = storeSettings.declarations.database;

describe("store.database", () => {
  it("is SQLite or memory", () => {
    expect(kind.parse("none")).toEqual({ value: "memory" });
    expect(kind.parse("sqlite")).toEqual({ value: "sqlite" });
    expect(kind.parse("mysql://x")).toHaveProperty("problem");
  });

  it("rejects a PostgreSQL URL without repeating its password", () => {
    for (const url of ["postgres://ann:sesame@db/x", "postgresql://ann:sesame@db/x"]) {
      expect(kind.parse(url)).toEqual({ problem: expect.stringMatching(/PostgreSQL/) });
      expect(JSON.stringify(kind.parse(url))).not.toMatch(/sesame/);
    }
  });
});
