/** Serves the coder of the office: `node coder-process.mjs <url> <answers>`. After so many answers it only listens. */
import { WebSocket } from "ws";

const [url = "", answers = "0"] = process.argv.slice(2);
let left = Number(answers);
let next = 1;
const socket = new WebSocket(url, { headers: { authorization: "Bearer member:coder" } });
const request = (method, params) =>
  socket.send(JSON.stringify({ jsonrpc: "2.0", id: next++, method, params }));

socket.on("open", () => {
  request("map/connect", { protocolVersion: 1, participantType: "agent" });
  request("map/agents/register", { agentId: "coder" });
});
socket.on("message", (data) => {
  const { method, params } = JSON.parse(String(data));
  if (method !== "map/message") return;
  const { id, from, payload } = params.message;
  process.stdout.write(`${id}\n`);
  if (left-- <= 0) return;
  request("map/send", { to: { agent: from }, payload: `did ${payload.body}`, meta: { correlationId: id } });
});
