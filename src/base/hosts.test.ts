import { expect, it } from "vitest";
import { isLoopbackHost } from "./hosts.js";

it.each(["localhost", "a.localhost", "::1", "[::1]", "127.0.0.1", "127.9.8.7"])(
  "%s is this machine",
  (host) => {
    expect(isLoopbackHost(host)).toBe(true);
  },
);

it.each([
  "",
  "localhost.example.com",
  "notlocalhost",
  ".localhost",
  "0.0.0.0",
  "127.0.0.1.example.com",
  "[::2]",
])("'%s' is not", (host) => {
  expect(isLoopbackHost(host)).toBe(false);
});
