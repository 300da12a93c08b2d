import { fastify } from "fastify";
import { describe, expect, it } from "vitest";
import type { ListenerOptions } from "./options.js";
import { peerAddress } from "./peer-address.js";

/** The framework cannot be configured with a number of proxies directly. */
type Trust = Exclude<ListenerOptions["trustProxy"], number | undefined>;

const TRUSTS: readonly Trust[] = [
  false,
  true,
  "loopback, 10.0.0.0/8",
  ["127.0.0.1", "10.0.0.1"],
  ["127.0.0.1", "fc00::/7"],
  ["uniquelocal"],
];
const FORWARDED = [
  undefined,
  "203.0.113.9",
  "198.51.100.1, 203.0.113.9",
  "198.51.100.1,10.0.0.1",
  "198.51.100.1, fc00::1 , 10.0.0.1",
  "",
];

/** Compares both results for the same request, on a real socket. */
async function ask(trustProxy: Trust, forwarded: string | undefined) {
  const trusted = typeof trustProxy === "object" ? [...trustProxy] : trustProxy;
  const app = fastify({ trustProxy: trusted });
  const addressOf = peerAddress(trustProxy);
  app.get("/", async (request) => ({ theirs: request.ip, ours: addressOf(request.raw) }));
  try {
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    const headers = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
    return (await (await fetch(url, { headers })).json()) as { theirs: string; ours: string };
  } finally {
    await app.close();
  }
}

describe("the client address of an upgrade", () => {
  it.each(TRUSTS.flatMap((trust) => FORWARDED.map((forwarded) => ({ trust, forwarded }))))(
    "equals that of a request: $trust, $forwarded",
    async ({ trust, forwarded }) => {
      const { theirs, ours } = await ask(trust, forwarded);
      expect(ours).toBe(theirs);
    },
  );

  it("follows the configured number of proxies", async () => {
    expect((await ask(false, "198.51.100.1, 203.0.113.9")).ours).toBe("127.0.0.1");
    const counted = peerAddress(1);
    const request = {
      socket: { remoteAddress: "127.0.0.1" },
      headers: { "x-forwarded-for": "198.51.100.1, 203.0.113.9" },
    };
    expect(counted(request)).toBe("203.0.113.9");
  });
});
