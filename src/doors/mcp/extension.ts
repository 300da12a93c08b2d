/** MCP at `/mcp`. Its SDK is large, so it is loaded with the first request. */
import { defineExtension, type Mount } from "../../extension/index.js";
import type { Mailroom } from "../../library/index.js";
import type { McpDoor, McpHttpDoor } from "./index.js";
import { MCP_OPERATION } from "./operation.js";
import { mcpSettings } from "./settings.js";

const load = () => import("./index.js");

interface Opened {
  readonly door: McpDoor;
  readonly http: McpHttpDoor;
}

export const mcp = defineExtension({
  name: "mcp",
  settings: mcpSettings,
  create({ settings, server: { strictIds, adminsActForOwners }, report }) {
    if (!settings.enabled) return undefined;
    const onError = (cause: Error) => report({ code: "internal_error", message: cause.message, cause });
    let mailroom: Mailroom | undefined;
    let opened: Promise<Opened> | undefined;
    const open = (): Promise<Opened> => {
      opened ??= load().then(({ createMcpHttpDoor, McpDoor }) => {
        if (mailroom === undefined) throw new Error("MCP was called before the server was attached");
        const door = new McpDoor(mailroom, { strictIds, adminsActForOwners, onError });
        return { door, http: createMcpHttpDoor(door, onError) };
      });
      return opened;
    };
    const mount: Mount = {
      path: "/mcp",
      operations: [MCP_OPERATION],
      headers: {
        sent: ["mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"],
        read: ["mcp-session-id"],
      },
      roles: ["user", "admin", "member"],
      admit: async (caller) => (await open()).door.check(caller),
      handle: async (call) => (await open()).http.handle(call),
    };
    return {
      mounts: [mount],
      attach: (context) => {
        mailroom = context.mailroom;
      },
      drain: async () => (await opened)?.http.close(),
    };
  },
});
