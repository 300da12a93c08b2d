/** The uses of an invite, and which members can issue one. */
import { describe, expect, it } from "vitest";
import { keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import { signInvite } from "../../src/mesh/invite/token.js";
import {
  type Agent,
  alice,
  bob,
  bodyOf,
  carol,
  forEachTest,
  joinBody,
  membersAt,
  mesh,
  tokenOf,
} from "./harness.js";

forEachTest();

describe("an invite", () => {
  it("[ASP-OPER-03] a single-use invite admits one of twenty concurrent agents", async () => {
    const { id } = await alice.agent.create("Lab");
    const token = tokenOf(await alice.agent.invite(id, { maxUses: 1 }));
    const joiners = Array.from({ length: 20 }, (_, index) => {
      const pair = keyPairFromSeed(Buffer.alloc(32, index + 1));
      const sender = {
        agent_id: `joiner-${index}`,
        endpoint: `https://j${index}.example.com`,
        public_key: pair.publicKey.text,
      };
      return alice.post("/swarm/join", joinBody(bob, token, sender), {}, `198.51.100.${index}`);
    });
    const answers = (await Promise.all(joiners)).map((response) => [
      response.status,
      bodyOf(response).error?.code,
    ]);
    expect(answers.filter(([status]) => status === 200)).toHaveLength(1);
    expect(answers.filter(([, code]) => code === "TOKEN_EXHAUSTED")).toHaveLength(19);
    expect(membersAt(alice, id)).toHaveLength(2);
  });

  it("the store refuses a use beyond the limit and discards the member of the same commit", async () => {
    const { id } = await alice.agent.create("Lab");
    const invite = { key: "k", swarmId: id, maxUses: 1, createdAt: 0 };
    const admit = (agent: Agent) => {
      const member = { ...agent.agent.context.self, agentId: agent.name };
      const rows = [
        { kind: "mesh.invite.use", invite },
        { kind: "mesh.member.put", swarmId: id, member },
      ];
      return alice.store.commit({ appends: [], rows });
    };
    const answers = await Promise.allSettled([admit(bob), admit(carol)]);
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    await alice.agent.context.load();
    expect(membersAt(alice, id)).toEqual(["alice", "bob"]);
  });

  it("another encoding of a token is not a second token", async () => {
    const { id } = await alice.agent.create("Lab");
    const token = tokenOf(await alice.agent.invite(id, { maxUses: 1 }));
    for (const padding of ["=", "=="]) {
      expect((await alice.post("/swarm/join", joinBody(bob, token + padding))).status).toBe(400);
    }
    expect((await alice.post("/swarm/join", joinBody(bob, token))).status).toBe(200);
    expect((await alice.post("/swarm/join", joinBody(carol, token))).status).toBe(403);
  });

  it("[ASP-ENDP-05, ASP-ENDP-06, ASP-ENDP-07] an invite with a wrong master, swarm, time, algorithm or signer gets the matching error", async () => {
    const lab = await mesh.swarm(alice, bob);
    const token = tokenOf(await alice.agent.invite(lab));
    const at = async (agent: Agent, invite: string) => {
      const response = await agent.post("/swarm/join", joinBody(carol, invite));
      return [response.status, bodyOf(response).error?.code];
    };
    expect(await at(bob, token)).toEqual([403, "NOT_MASTER"]);
    expect(await at(carol, token)).toEqual([404, "SWARM_NOT_FOUND"]);
    const short = tokenOf(await alice.agent.invite(lab, { lifetime: 1_000 }));
    mesh.clock.jump(1_001);
    expect(await at(alice, short)).toEqual([401, "TOKEN_EXPIRED"]);
    const [, payload = "", signature = ""] = token.split(".");
    const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${payload}.${signature}`;
    expect(await at(alice, none)).toEqual([400, "INVALID_TOKEN"]);
    const forged = signInvite(
      {
        swarmId: lab,
        master: "alice",
        endpoint: alice.endpoint,
        issuedAt: Math.floor(mesh.clock.now() / 1_000),
      },
      carol.pair,
    );
    expect(await at(alice, forged)).toEqual([401, "INVALID_SIGNATURE"]);
    const revoked = await alice.agent.invite(lab);
    await alice.agent.revoke(lab, revoked);
    expect(await at(alice, tokenOf(revoked))).toEqual([403, "NOT_AUTHORIZED"]);
    expect(membersAt(alice, lab)).toEqual(["alice", "bob"]);
  });

  it("[ASP-OPER-10, ASP-SECU-03] members can issue invites only if the swarm allows it", async () => {
    const open = await alice.agent.create("Open", { allowMemberInvite: true });
    await bob.agent.join(await alice.agent.invite(open.id));
    await carol.agent.join(await bob.agent.invite(open.id));
    expect(membersAt(alice, open.id)).toEqual(["alice", "bob", "carol"]);
    const closed = await mesh.swarm(alice, bob);
    await expect(bob.agent.invite(closed)).rejects.toMatchObject({ code: "not_allowed" });
    const forced = signInvite(
      {
        swarmId: closed,
        master: "alice",
        endpoint: alice.endpoint,
        issuedAt: Math.floor(mesh.clock.now() / 1_000),
        issuer: "bob",
      },
      bob.pair,
    );
    const response = await alice.post("/swarm/join", joinBody(carol, forced));
    expect(bodyOf(response).error?.code).toBe("INVITES_DISABLED");
  });
});
