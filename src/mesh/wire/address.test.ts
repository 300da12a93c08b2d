import { expect, it } from "vitest";
import { addressBehind } from "./address.js";

const from = (forwarded?: string) => ({
  method: "POST",
  path: "/swarm/join",
  headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded },
  body: new Uint8Array(),
  address: "127.0.0.1",
});

it("is the connection's without proxies, whatever the caller says", () => {
  expect(addressBehind(0, from("203.0.113.9"))).toBe("127.0.0.1");
});

it("is the one that our outermost proxy saw; what the caller wrote before it does not count", () => {
  expect(addressBehind(1, from("203.0.113.9"))).toBe("203.0.113.9");
  expect(addressBehind(1, from("198.51.100.1, 203.0.113.9"))).toBe("203.0.113.9");
  expect(addressBehind(2, from("198.51.100.1, 203.0.113.9, 10.0.0.2"))).toBe("203.0.113.9");
});

it("is the connection's where a proxy says nothing sensible", () => {
  for (const forwarded of [undefined, "", "unknown", "203.0.113.9, "]) {
    expect(addressBehind(1, from(forwarded))).toBe("127.0.0.1");
  }
  expect(addressBehind(3, from("203.0.113.9"))).toBe("127.0.0.1");
});
