/** The doors of a server: how they are attacked, and what honest clients ask of them. */
import type { Attack } from "./attacker.js";
import { attacksOn } from "./http-attacks.js";
import { MAP_ATTACKS } from "./map-attacks.js";

const rpc = (method: string, params: object) => JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });

const MCP_LIST = rpc("tools/list", {});
const A2A_LIST = rpc("ListTasks", {});

export const DOOR_ATTACKS: Readonly<Record<string, Readonly<Record<string, Attack>>>> = {
  map: MAP_ATTACKS,
  http: attacksOn({ path: "/message", body: '{"body":"hello","wait":false}', reads: "/tasks" }),
  mcp: attacksOn({ path: "/mcp", body: MCP_LIST }),
  a2a: attacksOn({ path: "/a2a", body: A2A_LIST }),
  federation: attacksOn({ path: "/interswarm/forward", body: '{"message":{}}' }),
  mesh: attacksOn({ path: "/swarm/message", body: '{"protocol_version":"0.1.0"}' }),
};
