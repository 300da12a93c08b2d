/** The mesh over the control socket: what its operator asks for while the server runs (decisions C4). */
import type { IncomingMessage, ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { z } from "zod";
import { MeshError, type OperatorParts, operate } from "../../mesh/index.js";
import { MESH_PATH } from "./path.js";

const Asked = z.object({ operation: z.string(), arguments: z.unknown() });

/** `parts` are absent in a server that is no agent of the mesh. */
export function meshControl(parts: OperatorParts | undefined) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    if (new URL(request.url ?? "/", "http://control").pathname !== MESH_PATH) return false;
    try {
      if (parts === undefined) {
        throw new MeshError(
          "not_initialised",
          "the running server is no agent of the mesh: run 'mailroom mesh init' and start it again",
        );
      }
      const asked = Asked.parse(await json(request));
      send(response, 200, await operate(parts, asked.operation, asked.arguments));
    } catch (error) {
      if (!(error instanceof MeshError)) throw error;
      send(response, 400, { detail: error.message, code: error.code });
    }
    return true;
  };
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
