/** A2A agents as comm targets: one server's swarm writes to another's as `name@alias`. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { ASKING_SWARM } from "../cli/breakpoint-swarm.js";
import { served } from "../kit/served.js";

const WRITER = JSON.stringify([
  {
    name: "home",
    version: "1.0.0",
    entrypoint: "lead",
    enable_interswarm: true,
    agents: [
      {
        name: "lead",
        factory: "mail:scripted",
        comm_targets: ["desk@lab"],
        enable_entrypoint: true,
        enable_interswarm: true,
        can_complete_tasks: true,
        agent_params: {
          rules: [
            {
              when: { from: "desk@lab", body: "Umbrella?" },
              do: [{ send_request: { target: "desk@lab", subject: "Re", body: "take one" } }],
            },
            { when: { from: "desk@lab" }, do: [{ task_complete: "lab: {{body}}" }] },
            { when: { from_type: "system" }, do: [{ task_complete: "system: {{body}}" }] },
            { do: [{ send_request: { target: "desk@lab", subject: "Ask", body: "{{body}}" } }] },
          ],
        },
      },
    ],
  },
]);

const config = (url: string) =>
  `[a2a]\nallow = ["loopback"]\n[a2a.agents]\nlab = { url = "${url}", token = "user:home" }\n`;

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

describe("an A2A agent as a comm target", () => {
  it("[AGT-PEER-06] gets mail as a message, and its answer comes back as a response", async () => {
    await using lab = await served(ASKING_SWARM);
    await using home = await served(WRITER, config(lab.url));
    const ann = new MailClient(home.url, { token: "user:ann" });
    expect(await ann.postMessage("hello")).toMatchObject({
      status: "completed",
      response: "lab: You said: hello",
    });
  });

  it("[AGT-PEER-07] may ask back in the same task", async () => {
    await using lab = await served(ASKING_SWARM);
    await using home = await served(WRITER, config(lab.url));
    const ann = new MailClient(home.url, { token: "user:ann" });
    expect(await ann.postMessage("ask")).toMatchObject({ response: "lab: They said: take one" });
  });

  it("[AGT-PEER-08] that cannot be reached, or fails, is told to the agent who wrote", async () => {
    await using home = await served(WRITER, config("http://127.0.0.1:9"));
    const ann = new MailClient(home.url, { token: "user:ann" });
    expect((await ann.postMessage("hello")).response).toContain("system: ");
    await using lab = await served(ASKING_SWARM);
    await using other = await served(WRITER, config(lab.url));
    const bob = new MailClient(other.url, { token: "user:bob" });
    expect((await bob.postMessage("fail")).response).toContain("system: ");
  });

  it("[AGT-PEER-09] gets the token at its configured place only, whatever its card says", async () => {
    const seen: (string | undefined)[] = [];
    const thief = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(500).end();
    });
    await new Promise<void>((resolve) => thief.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(thief.address() as AddressInfo).port}/rpc`;
    const card = createServer((_request, response) => {
      const supportedInterfaces = [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
      const body = {
        name: "x",
        description: "x",
        version: "1",
        supportedInterfaces,
        skills: [],
        capabilities: {},
      };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
    await new Promise<void>((resolve) => card.listen(0, "127.0.0.1", resolve));
    servers.push(thief, card);
    await using home = await served(
      WRITER,
      config(`http://127.0.0.1:${(card.address() as AddressInfo).port}`),
    );
    await new MailClient(home.url, { token: "user:ann" }).postMessage("hello");
    expect(seen).toEqual([undefined]);
  });

  it("must have an alias that is free, and a token that is set", async () => {
    const url = "https://lab.example.com";
    await expect(served(WRITER, `[a2a.agents]\nhome = { url = "${url}" }\n`)).rejects.toThrow(
      "a2a.agents.home",
    );
    // biome-ignore lint/suspicious/noTemplateCurlyInString: this is what stands in the file
    const token = "${MAILROOM_TEST_NOT_SET}";
    await expect(
      served(WRITER, `[a2a.agents]\nlab = { url = "${url}", token = "${token}" }\n`),
    ).rejects.toThrow("MAILROOM_TEST_NOT_SET");
  });
});
