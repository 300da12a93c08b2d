import { describe, expect, it } from "vitest";
import { keyLines } from "./toml-lines.js";

const DOCUMENT = `# a comment
title = "x"

[server]
port = 9000   # [not.a.table]
text = """
[server.fake]
port = 1
"""
list = [
  "a", # ]
  "b",
]
tls.cert = "c.pem"
swarm = { name = "desk", "odd key" = 1 }

[ server . settings ]
'strict_ids' = true

[[people]]
name = "ann"
[[people]]
name = "bob"
age = 4
`;

describe("keyLines", () => {
  it("finds the line of every key, whatever way it is written", () => {
    expect(Object.fromEntries(keyLines(DOCUMENT))).toEqual({
      title: 2,
      server: 4,
      "server.port": 5,
      "server.text": 6,
      "server.list": 10,
      "server.tls": 14,
      "server.tls.cert": 14,
      "server.swarm": 15,
      "server.swarm.name": 15,
      "server.swarm.odd key": 15,
      "server.settings": 17,
      "server.settings.strict_ids": 18,
      people: 20,
      "people.name": 21,
      "people.age": 24,
    });
  });

  it("counts lines of other systems, and finds nothing in nothing", () => {
    expect(keyLines("\uFEFFa = 1\r\n\r\nb = 2\r\n").get("b")).toBe(3);
    expect(keyLines("").size).toBe(0);
    expect(keyLines("# only this").size).toBe(0);
  });
});
