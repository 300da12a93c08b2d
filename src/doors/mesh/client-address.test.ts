import { expect, it } from "vitest";
import { addressBehind } from "./client-address.js";

const from = (forwarded?: string) => ({
  method: "POST",
  path: "/swarm/join",
  headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded },
  body: new Uint8Array(),
  address: "127.0.0.1",
});

it("the client address is the connection's without proxies, whatever the headers claim", () => {
  expect(addressBehind(0, from("203.0.113.9"))).toBe("127.0.0.1");
});

it("the client address is the one that the outermost trusted proxy saw, not one that the client wrote before it", () => {
  expect(addressBehind(1, from("203.0.113.9"))).toBe("203.0.113.9");
  expect(addressBehind(1, from("198.51.100.1, 203.0.113.9"))).toBe("203.0.113.9");
  expect(addressBehind(2, from("198.51.100.1, 203.0.113.9, 10.0.0.2"))).toBe("203.0.113.9");
});

it("the client address is the connection's when a proxy reports no valid address", () => {
  for (const forwarded of [undefined, "", "unknown", "203.0.113.9, "]) {
    expect(addressBehind(1, from(forwarded))).toBe("127.0.0.1");
  }
  expect(addressBehind(3, from("203.0.113.9"))).toBe("127.0.0.1");
});
