import { describe, expect, it } from "vitest";
import { parseSwarmUrl } from "./swarm-url.js";

describe("swarm:// URLs", () => {
  it("lead to a server over https, with the token decoded", () => {
    expect(parseSwarmUrl("swarm://connect?server=mail.example.com:8443&token=a%2Bb")).toEqual({
      action: "connect",
      url: "https://mail.example.com:8443",
      token: "a+b",
    });
    expect(parseSwarmUrl("swarm://invite?server=example.com")).toEqual({
      action: "invite",
      url: "https://example.com",
    });
  });

  it.each([
    ["http://connect?server=example.com", "is not a swarm:// URL"],
    ["swarm://elsewhere?server=example.com", "unknown action"],
    ["swarm://connect?token=x", "has no server"],
    ["swarm://connect?server=", "has no server"],
    ["swarm://connect?server=good.example%40evil.example", "is not a host"],
    ["swarm://connect?server=example.com/path", "is not a host"],
  ])("%s is refused", (text, reason) => {
    expect(() => parseSwarmUrl(text)).toThrow(reason);
  });
});
