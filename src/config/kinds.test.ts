import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  choice,
  database,
  duration,
  httpUrl,
  type Kind,
  listOf,
  mapOf,
  origin,
  path,
  size,
  trustProxy,
  truth,
  whole,
} from "./kinds.js";

/** The value of a TOML value, or `undefined` if it is refused. */
const read = <T>(kind: Kind<T>, given: unknown): T | undefined => kind.schema.safeParse(given).data;
const readText = <T>(kind: Kind<T>, given: string): T | undefined => read(kind, kind.fromText(given));

describe("a time", () => {
  it("is seconds, or a number with its unit", () => {
    const given: [number | string, number][] = [
      [3600.0, 3_600_000],
      [0.5, 500],
      ["90", 90_000],
      ["500ms", 500],
      ["90s", 90_000],
      ["1.5m", 90_000],
      ["15 M", 900_000],
      ["12h", 43_200_000],
      ["7d", 604_800_000],
    ];
    for (const [value, ms] of given) expect(read(duration(), value)).toBe(ms);
  });

  it("is nothing else, and not less than it may be", () => {
    for (const value of [-1, "", "soon", "5 weeks", "-3s", "1m30s", true, Number.NaN, "9".repeat(30)]) {
      expect(read(duration(), value)).toBeUndefined();
    }
    expect(read(duration({ min: 1 }), 0)).toBeUndefined();
  });

  it("is shown as it can be written", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e12 }), (ms) => {
        const kind = duration();
        expect(readText(kind, kind.show(ms))).toBe(ms);
      }),
    );
    expect(duration().show(5_400_000)).toBe("90m");
  });
});

describe("a size", () => {
  it("is bytes, or a number with its unit, and shown as it can be written", () => {
    expect(read(size(), 100)).toBe(100);
    expect(read(size(), "4MB")).toBe(4 * 1024 * 1024);
    expect(read(size(), 0)).toBeUndefined();
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 40 }), (bytes) => {
        expect(readText(size(), size().show(bytes))).toBe(bytes);
      }),
    );
  });
});

describe("text from the environment", () => {
  it("can be every kind of value", () => {
    for (const yes of ["true", "TRUE", "1", "yes", "on"]) expect(readText(truth, yes)).toBe(true);
    for (const no of ["false", "0", "no", "off"]) expect(readText(truth, no)).toBe(false);
    expect(readText(truth, "maybe")).toBeUndefined();
    expect(readText(whole({ max: 10 }), "7")).toBe(7);
    for (const bad of ["", "7.5", "11", "0x7", "seven", "-1"])
      expect(readText(whole({ max: 10 }), bad)).toBeUndefined();
    expect(readText(listOf(whole()), "1, 2,3,")).toEqual([1, 2, 3]);
    expect(readText(mapOf(choice(["a", "b"])), "x=a, y=b")).toEqual({ x: "a", y: "b" });
    expect(readText(mapOf(choice(["a", "b"])), "x")).toBeUndefined();
    expect(readText(mapOf(choice(["a", "b"])), "x=c")).toBeUndefined();
  });

  it("says whose forwarding headers are believed", () => {
    expect(readText(trustProxy, "true")).toBe(true);
    expect(readText(trustProxy, "off")).toBe(false);
    expect(readText(trustProxy, "1")).toBe(1);
    expect(readText(trustProxy, "2")).toBe(2);
    expect(readText(trustProxy, "10.0.0.1, 10.0.0.0/8")).toEqual(["10.0.0.1", "10.0.0.0/8"]);
  });
});

describe("a list", () => {
  it("may be one value without brackets", () => {
    expect(read(listOf(origin), "https://app.example.com")).toEqual(["https://app.example.com"]);
    expect(read(listOf(origin), [])).toEqual([]);
  });
});

describe("an origin", () => {
  it("is what browsers send", () => {
    for (const good of ["*", "http://localhost:3000", "https://app.example.com"])
      expect(read(origin, good)).toBe(good);
    for (const bad of ["https://app.example.com/", "app.example.com", "https://a.example/x", "null"]) {
      expect(read(origin, bad)).toBeUndefined();
    }
  });
});

describe("a URL", () => {
  it("is http or https, and shown without its password", () => {
    expect(read(httpUrl, "https://id.example/x")).toBe("https://id.example/x");
    for (const bad of ["id.example", "file:///etc/passwd", "ftp://x", ""])
      expect(read(httpUrl, bad)).toBeUndefined();
    expect(httpUrl.show("https://ann:sesame@id.example/x")).toBe("https://id.example/x");
  });
});

describe("a path", () => {
  it("is relative to where it was written", () => {
    expect(path.resolve?.("b/c", "/a")).toBe("/a/b/c");
    expect(path.resolve?.("/b/c", "/a")).toBe("/b/c");
  });
});

describe("the database", () => {
  it("is SQLite or nothing, and PostgreSQL is refused in words that do not repeat its password", () => {
    expect(read(database, "none")).toBe("memory");
    expect(read(database, "sqlite")).toBe("sqlite");
    for (const url of ["postgres://ann:sesame@db/x", "postgresql://ann:sesame@db/x"]) {
      const message = database.schema.safeParse(url).error?.issues[0]?.message;
      expect(message).toMatch(/PostgreSQL/);
      expect(message).not.toMatch(/sesame/);
    }
    expect(read(database, "mysql://x")).toBeUndefined();
  });
});
