/** Checklist items 42, 43 and 45: what an invite is good for, how often, and who may make one. */
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
  it("[ASP-OPER-03] 42. a single-use invite admits one of twenty who come at once (8.11)", async () => {
    const { id } = await alice.node.create("Lab");
    const token = tokenOf(await alice.node.invite(id, { maxUses: 1 }));
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

  it("42. the store itself refuses a use too many, and takes the member that came with it back", async () => {
    const { id } = await alice.node.create("Lab");
    const invite = { key: "k", swarmId: id, maxUses: 1, createdAt: 0 };
    const admit = (agent: Agent) => {
      const member = { ...agent.node.core.self, agentId: agent.name };
      const rows = [
        { kind: "mesh.invite.use", invite },
        { kind: "mesh.member.put", swarmId: id, member },
      ];
      return alice.store.commit({ appends: [], rows });
    };
    const answers = await Promise.allSettled([admit(bob), admit(carol)]);
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    await alice.node.core.load();
    expect(membersAt(alice, id)).toEqual(["alice", "bob"]);
  });

  it("43. another spelling of a token is no second token (8.12)", async () => {
    const { id } = await alice.node.create("Lab");
    const token = tokenOf(await alice.node.invite(id, { maxUses: 1 }));
    for (const padding of ["=", "=="]) {
      expect((await alice.post("/swarm/join", joinBody(bob, token + padding))).status).toBe(400);
    }
    expect((await alice.post("/swarm/join", joinBody(bob, token))).status).toBe(200);
    expect((await alice.post("/swarm/join", joinBody(carol, token))).status).toBe(403);
  });

  it("[ASP-ENDP-05, ASP-ENDP-06, ASP-ENDP-07] 45. the wrong place, swarm, time, algorithm and signer each have their answer (8.14)", async () => {
    const lab = await mesh.swarm(alice, bob);
    const token = tokenOf(await alice.node.invite(lab));
    const at = async (agent: Agent, invite: string) => {
      const response = await agent.post("/swarm/join", joinBody(carol, invite));
      return [response.status, bodyOf(response).error?.code];
    };
    expect(await at(bob, token)).toEqual([403, "NOT_MASTER"]);
    expect(await at(carol, token)).toEqual([404, "SWARM_NOT_FOUND"]);
    const short = tokenOf(await alice.node.invite(lab, { lifetime: 1_000 }));
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
    const revoked = await alice.node.invite(lab);
    await alice.node.revoke(lab, revoked);
    expect(await at(alice, tokenOf(revoked))).toEqual([403, "NOT_AUTHORIZED"]);
    expect(membersAt(alice, lab)).toEqual(["alice", "bob"]);
  });

  it("[ASP-OPER-10, ASP-SECU-03] members may invite where the swarm allows it, and nowhere else", async () => {
    const open = await alice.node.create("Open", { allowMemberInvite: true });
    await bob.node.join(await alice.node.invite(open.id));
    await carol.node.join(await bob.node.invite(open.id));
    expect(membersAt(alice, open.id)).toEqual(["alice", "bob", "carol"]);
    const closed = await mesh.swarm(alice, bob);
    await expect(bob.node.invite(closed)).rejects.toMatchObject({ code: "not_allowed" });
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
