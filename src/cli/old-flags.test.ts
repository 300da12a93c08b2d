import { expect, it } from "vitest";
import { modernFlags } from "./old-flags.js";

it.each([
  [
    ["server", "-rf", "r.json"],
    ["server", "--swarm-registry", "r.json"],
  ],
  [
    ["client", "http://x", "-ak", "t"],
    ["client", "http://x", "--api-key", "t"],
  ],
  [
    ["client", "http://x", "m", "--", "-ak"],
    ["client", "http://x", "m", "--", "-ak"],
  ],
  [
    ["client", "http://x", "m", "hi", "-rf", "user_response"],
    ["client", "http://x", "m", "hi", "-rf", "user_response"],
  ],
  [
    ["tasks", "list"],
    ["tasks", "list"],
  ],
])("%j", (given, wanted) => {
  expect(modernFlags(given)).toEqual(wanted);
});
