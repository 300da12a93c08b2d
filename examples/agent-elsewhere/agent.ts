/**
 * An agent that runs in a process of its own. It needs the server's address and a member token; nothing else of the
 * swarm is here.
 *
 *   npx tsx examples/agent-elsewhere/agent.ts <url> <token>
 */
import { serveAgent } from "agent-mailroom/client";

const [url = "", token = ""] = process.argv.slice(2);
const agent = await serveAgent(url, { token, name: "coder", run: (mail) => `Reviewed: ${mail.body}` });
process.once("SIGTERM", () => agent.close());
await agent.finished;
