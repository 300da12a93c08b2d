/** The mesh over the control socket: the operator's requests while the server runs (decision C4). */

import type { ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { z } from "zod";
import { isMailroomError, MailroomError } from "../../base/index.js";
import type { ControlOperation } from "../../extension/index.js";
import { type AdminParts, operate } from "../../mesh/index.js";

const Asked = z.object({ operation: z.string(), arguments: z.unknown() });

/** Operations on the mesh, on the control socket only. */
export const MESH_CONTROL_PATH = "/control/mesh";

/** `parts` are absent in a server that is not a mesh agent. */
export function meshControl(parts: AdminParts | undefined): ControlOperation {
  return {
    path: MESH_CONTROL_PATH,
    async handle(request, response) {
      try {
        if (parts === undefined) {
          throw new MailroomError(
            "not_initialized",
            "the running server is not a mesh agent: run 'mailroom mesh init' and restart it",
          );
        }
        const asked = Asked.parse(await json(request));
        send(response, 200, await operate(parts, asked.operation, asked.arguments));
      } catch (error) {
        if (!isMailroomError(error)) throw error;
        send(response, 400, { detail: error.message, code: error.code });
      }
    },
  };
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
