import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  booleanKind,
  bytesKind,
  choiceKind,
  durationKind,
  httpUrlKind,
  integerKind,
  type Kind,
  listKind,
  originKind,
  pathKind,
  tableKind,
  trustProxyKind,
} from "./setting-kinds.js";

/** The value of a TOML value, or `undefined` if it is rejected. */
const read = <T>(kind: Kind<T>, raw: unknown): T | undefined => {
  const parsed = kind.parse(raw);
  return "value" in parsed ? parsed.value : undefined;
};
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
    for (const [value, ms] of given) expect(read(durationKind(), value)).toBe(ms);
  });

  it("rejects anything else, and less than its minimum", () => {
    for (const value of [-1, "", "soon", "5 weeks", "-3s", "1m30s", true, Number.NaN, "9".repeat(30)]) {
      expect(read(durationKind(), value)).toBeUndefined();
    }
    expect(read(durationKind({ min: 1 }), 0)).toBeUndefined();
  });

  it("is shown in the form in which it can be written", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e12 }), (ms) => {
        const kind = durationKind();
        expect(readText(kind, kind.show(ms))).toBe(ms);
      }),
    );
    expect(durationKind().show(5_400_000)).toBe("90m");
  });
});

describe("a size", () => {
  it("is bytes, or a number with its unit, and is shown in that form", () => {
    expect(read(bytesKind(), 100)).toBe(100);
    expect(read(bytesKind(), "4MB")).toBe(4 * 1024 * 1024);
    expect(read(bytesKind(), 0)).toBeUndefined();
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 40 }), (bytes) => {
        expect(readText(bytesKind(), bytesKind().show(bytes))).toBe(bytes);
      }),
    );
  });
});

describe("text from the environment", () => {
  it("can express every kind of value", () => {
    for (const yes of ["true", "TRUE", "1", "yes", "on"]) expect(readText(booleanKind, yes)).toBe(true);
    for (const no of ["false", "0", "no", "off"]) expect(readText(booleanKind, no)).toBe(false);
    expect(readText(booleanKind, "maybe")).toBeUndefined();
    expect(readText(integerKind({ max: 10 }), "7")).toBe(7);
    for (const bad of ["", "7.5", "11", "0x7", "seven", "-1"])
      expect(readText(integerKind({ max: 10 }), bad)).toBeUndefined();
    expect(readText(listKind(integerKind()), "1, 2,3,")).toEqual([1, 2, 3]);
    expect(readText(tableKind(choiceKind(["a", "b"])), "x=a, y=b")).toEqual({ x: "a", y: "b" });
    expect(readText(tableKind(choiceKind(["a", "b"])), "x")).toBeUndefined();
    expect(readText(tableKind(choiceKind(["a", "b"])), "x=c")).toBeUndefined();
  });

  it("names the proxies to trust", () => {
    expect(readText(trustProxyKind, "true")).toBe(true);
    expect(readText(trustProxyKind, "off")).toBe(false);
    expect(readText(trustProxyKind, "1")).toBe(1);
    expect(readText(trustProxyKind, "2")).toBe(2);
    expect(readText(trustProxyKind, "10.0.0.1, 10.0.0.0/8")).toEqual(["10.0.0.1", "10.0.0.0/8"]);
  });
});

describe("a list", () => {
  it("may be a single value without brackets", () => {
    expect(read(listKind(originKind), "https://app.example.com")).toEqual(["https://app.example.com"]);
    expect(read(listKind(originKind), [])).toEqual([]);
  });
});

describe("an origin", () => {
  it("is the value that browsers send", () => {
    for (const good of ["*", "http://localhost:3000", "https://app.example.com"])
      expect(read(originKind, good)).toBe(good);
    for (const bad of ["https://app.example.com/", "app.example.com", "https://a.example/x", "null"]) {
      expect(read(originKind, bad)).toBeUndefined();
    }
  });
});

describe("a URL", () => {
  it("is http or https, and is shown without its password", () => {
    expect(read(httpUrlKind, "https://id.example/x")).toBe("https://id.example/x");
    for (const bad of ["id.example", "file:///etc/passwd", "ftp://x", ""])
      expect(read(httpUrlKind, bad)).toBeUndefined();
    expect(httpUrlKind.show("https://ann:sesame@id.example/x")).toBe("https://id.example/x");
  });
});

describe("a path", () => {
  it("is resolved against the directory it was written in", () => {
    expect(pathKind.resolve?.("b/c", (path) => `/a/${path}`)).toBe("/a/b/c");
  });
});
