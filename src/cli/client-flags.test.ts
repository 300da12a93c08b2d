import { describe, expect, it } from "vitest";
import { clientFlagsFirst } from "./client-flags.js";

const URL = "http://127.0.0.1:8000";

describe("flags of the client", () => {
  it.each([
    ["after the URL", ["client", URL, "--token", "T"], ["client", "--token", "T", URL]],
    [
      "between the URL and the command",
      ["client", URL, "-v", "--timeout", "5", "whoami", "--json"],
      ["client", "-v", "--timeout", "5", URL, "whoami", "--json"],
    ],
    [
      "before the URL and after it",
      ["client", "-c", "mail.toml", URL, "--token=T", "whoami"],
      ["client", "-c", "mail.toml", "--token=T", URL, "whoami"],
    ],
    [
      "the token at the end",
      ["client", URL, "message", "hi", "-t", "broadcast", "--token", "T"],
      ["client", "--token", "T", URL, "message", "hi", "-t", "broadcast"],
    ],
  ])("are found %s", (_where, given, expected) => {
    expect(clientFlagsFirst(given)).toEqual(expected);
  });

  it.each([
    ["the flags of the client's commands", ["client", URL, "message", "hi", "-t", "broadcast", "--json"]],
    ["what follows --", ["client", URL, "message", "--", "--token", "is a word"]],
    ["other commands", ["tasks", "list", "--token", "T"]],
    ["a client without a URL", ["client", "--token", "T"]],
    ["nothing at all", []],
  ])("leaves %s alone", (_what, given) => {
    expect(clientFlagsFirst(given)).toEqual(given);
  });
});
