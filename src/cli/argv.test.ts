import { describe, expect, it } from "vitest";
import { normalizeArgv } from "./argv.js";

const URL = "http://127.0.0.1:8000";

describe("normalizeArgv", () => {
  it.each([
    ["server -rf r.json", "server --swarm-registry r.json"],
    [`client ${URL} -ak t`, `client --api-key t ${URL}`],
    [`client ${URL} m -- -ak`, `client ${URL} m -- -ak`],
    [`client ${URL} m hi -rf user_response`, `client ${URL} m hi -rf user_response`],
    ["tasks list", "tasks list"],
  ])("replaces the reference's short flags where the command has them: %s", (given, expected) => {
    expect(normalizeArgv(given.split(" "))).toEqual(expected.split(" "));
  });

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
  ])("moves the client's flags before the URL: %s", (_where, given, expected) => {
    expect(normalizeArgv(given)).toEqual(expected);
  });

  it.each([
    ["the flags of the client's commands", ["client", URL, "message", "hi", "-t", "broadcast", "--json"]],
    ["what follows --", ["client", URL, "message", "--", "--token", "is a word"]],
    ["other commands", ["tasks", "list", "--token", "T"]],
    ["a client without a URL", ["client", "--token", "T"]],
    ["no arguments", []],
  ])("leaves %s unchanged", (_what, given) => {
    expect(normalizeArgv(given)).toEqual(given);
  });

  it("turns --version before a command into the command", () => {
    expect(normalizeArgv(["--version"])).toEqual(["version"]);
    expect(normalizeArgv(["server", "--version"])).toEqual(["server", "--version"]);
  });
});
