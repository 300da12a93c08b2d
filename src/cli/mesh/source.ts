/** Runs mesh operations in the running server if there is one, else in this process (decision C4). */

import { z } from "zod";
import { type ErrorCode, isErrorCode, MailroomError } from "../../base/index.js";
import { MESH_CONTROL_PATH } from "../../doors/mesh/index.js";
import type { AdminOperationName, AdminResult } from "../../mesh/index.js";
import type { LocalServer } from "../../server/control.js";
import { atServerOr } from "../../server/control.js";
import { resolveDataDirectory } from "../data-directory.js";
import type { DataOptions } from "../options.js";
import type { Terminal } from "../terminal.js";

/** @throws MailroomError when the operation fails */
export async function askMesh(
  name: AdminOperationName,
  given: object,
  options: DataOptions,
  terminal: Terminal,
): Promise<AdminResult> {
  const { settings, data } = await resolveDataDirectory(placeOf(options), terminal);
  const report = (line: string) => terminal.note(line);
  const withServer = async (server: LocalServer) => {
    try {
      return await askServer(server, name, given);
    } finally {
      await server.close();
    }
  };
  return atServerOr(data, report, withServer, async () => {
    // Loaded on demand: usually a server is running and this is not needed.
    const { executeOffline } = await import("./offline.js");
    return executeOffline(name, given, { settings, data, report });
  });
}

/** Only these options are settings: a flag such as `--swarm` means something else here. */
export function placeOf({ data, config, json }: DataOptions): DataOptions {
  return {
    ...(data !== undefined && { data }),
    ...(config !== undefined && { config }),
    ...(json !== undefined && { json }),
  };
}

const Answer = z.record(z.string(), z.unknown());
const ErrorBody = z.object({ detail: z.string(), code: z.string() });

async function askServer({ fetch }: LocalServer, operation: string, given: object): Promise<AdminResult> {
  const response = await fetch(`http://localhost${MESH_CONTROL_PATH}`, {
    method: "POST",
    body: JSON.stringify({ operation, arguments: given }),
  });
  const answer: unknown = await response.json();
  if (response.ok) return Answer.parse(answer);
  const failure = ErrorBody.safeParse(answer);
  throw failure.success
    ? new MailroomError(knownCode(failure.data.code), failure.data.detail)
    : new MailroomError("failure", `the server responded with status ${response.status}`);
}

/** The server may be of a newer version. */
function knownCode(code: string): ErrorCode {
  return isErrorCode(code) ? code : "failure";
}
