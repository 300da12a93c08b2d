/** MAP over TLS, with a certificate that clients verify. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { WebSocket } from "ws";
import { ConversationClient } from "../../src/client/index.js";
import { folder, run, serve } from "../cli/cli.js";

it("[MAP-OURS-27] MAP works over TLS with a certificate that programs and the command line verify", async () => {
  await using here = await folder();
  const cwd = here.path;
  const [cert, key] = [join(cwd, "cert.pem"), join(cwd, "key.pem")];
  makeCertificate(cert, key);
  await writeFile(join(cwd, "mail.toml"), '[server.tls]\ncert = "cert.pem"\nkey = "key.pem"\n');
  await using server = await serve([], { cwd });
  const token = server.facts.admin_token ?? "";
  const url = server.url.replace("127.0.0.1", "localhost");
  expect(url).toMatch(/^https:/);

  const ca = readFileSync(cert);
  const client = await ConversationClient.connect(url, { token, open: (at) => new WebSocket(at, { ca }) });
  const { id } = await client.create({ subject: "in private" });
  const events = await client.follow({ conversationId: id });
  // Longer than one TLS record.
  const words = "ß".repeat(100_000);
  await client.say(id, words);
  const { value } = await events.next();
  expect(value).toMatchObject({ type: "mail.turn.added", data: { turn: { content: { text: words } } } });
  client.close();

  // A client without the certificate does not connect.
  await expect(
    ConversationClient.connect(url, { token, open: (at) => new WebSocket(at) }),
  ).rejects.toMatchObject({ code: "unreachable" });
  const bare = new WebSocket(`${url.replace("https", "ws")}/map`);
  await expect(
    new Promise((resolve, reject) => {
      bare.once("open", resolve);
      bare.once("error", reject);
    }),
  ).rejects.toThrow();

  const args = ["conversations", "list", "--json", "--url", url, "--token", token];
  const listed = await run(args, { cwd, env: { NODE_EXTRA_CA_CERTS: cert } });
  expect(JSON.parse(listed.stdout)).toMatchObject({ conversations: [{ id, subject: "in private" }] });
  expect((await run(args, { cwd })).code).not.toBe(0);
}, 60_000);

function makeCertificate(cert: string, key: string): void {
  const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"];
  const name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  execFileSync("openssl", ["req", ...kind, ...name, "-keyout", key, "-out", cert], { stdio: "ignore" });
}
