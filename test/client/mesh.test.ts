/** The typed client's calls for the mesh. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { initMesh, makeDevCertificates } from "../../src/mesh/index.js";
import { controlPath } from "../../src/server/control/path.js";
import { createServer } from "../../src/server/index.js";
import { opsSwarm } from "../console/ops.js";
import { meshCommand } from "../mesh/command.js";
import { freePort } from "../mesh/kit.js";

it("shows the mesh, makes and revokes an invite, and passes on why an operation is refused", async () => {
  const data = await mkdtemp(join(tmpdir(), "mailroom-mesh-"));
  onTestFinished(() => rm(data, { recursive: true, force: true }));
  const tls = join(data, "tls");
  await makeDevCertificates(tls, Date.now());
  const port = await freePort();
  initMesh({ directory: data, agentId: "desk", endpoint: `https://localhost:${port}/swarm`, dev: true });
  const files = { cert: join(tls, "dev.pem"), key: join(tls, "dev.key"), ca: join(tls, "dev-ca.pem") };
  const server = await createServer({
    swarm: opsSwarm({ pace: 0 }),
    dev: true,
    data,
    settings: { log: { level: "silent" }, mesh: { listen: `localhost:${port}`, ...files } },
  });
  onTestFinished(() => server.close(0));
  const { admin } = new MailClient(await server.listen({ port: 0 }), { token: "admin:root" });
  const path = controlPath(data);
  if (path !== undefined) await server.openControl(path);
  expect((await meshCommand(["create", "--name", "Partners", "--data", data])).code).toBe(0);

  const { agent_id, swarms } = await admin.getMesh();
  expect(agent_id).toBe("desk");
  expect(swarms).toMatchObject([{ name: "Partners", is_master: true, members: [{ agent_id: "desk" }] }]);
  const swarm = swarms[0]?.swarm_id;
  const made = await admin.operateMesh("invite", { swarm, max_uses: 3 });
  expect(made.invite_token).toEqual(expect.any(String));
  const [invite] = (await admin.getMesh()).swarms[0]?.invites ?? [];
  expect(invite).toMatchObject({ uses: 0, max_uses: 3, revoked_at: null });
  await admin.operateMesh("revoke", { swarm, invite: invite?.key });
  expect((await admin.getMesh()).swarms[0]?.invites).toMatchObject([{ revoked_at: expect.any(Number) }]);
  await expect(admin.operateMesh("kick", { swarm, agent: "nobody" })).rejects.toMatchObject({ status: 404 });
  // Ignored, the invite would be good for any number of members.
  await expect(admin.operateMesh("invite", { swarm, max_use: 1 })).rejects.toMatchObject({
    status: 400,
    detail: expect.stringContaining("did you mean 'max_uses'?"),
  });
});
