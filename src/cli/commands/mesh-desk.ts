/** Where operations on the mesh are carried out: in the running server if there is one, else here (decisions C4). */
import { z } from "zod";
import type { OperationName, Outcome } from "../../mesh/index.js";
import { MESH_PATH } from "../control/path.js";
import { atServerOr } from "../control/patience.js";
import type { LocalServer } from "../control/reach.js";
import { CliError } from "../exit.js";
import type { PlaceOptions } from "../options.js";
import { placeFor } from "../place.js";
import type { Terminal } from "../terminal.js";
import { explained } from "./mesh-errors.js";

/** @throws CliError when it cannot be done */
export async function askMesh(
  name: OperationName,
  given: object,
  options: PlaceOptions,
  terminal: Terminal,
): Promise<Outcome> {
  const { settings, data } = await placeFor(options, terminal);
  const report = (line: string) => terminal.note(line);
  const withServer = async (server: LocalServer) => {
    try {
      return await askServer(server, name, given);
    } finally {
      await server.close();
    }
  };
  return atServerOr(data, report, withServer, async () => {
    // Loaded only now: most of the time a server runs, and needs nothing of this here.
    const { carryOutHere } = await import("./mesh-here.js");
    return carryOutHere(name, given, { settings, data, report });
  });
}

const Answer = z.record(z.string(), z.unknown());
const Complaint = z.object({ detail: z.string(), code: z.string() });

async function askServer({ fetch }: LocalServer, operation: string, given: object): Promise<Outcome> {
  const response = await fetch(`http://localhost${MESH_PATH}`, {
    method: "POST",
    body: JSON.stringify({ operation, arguments: given }),
  });
  const answer: unknown = await response.json();
  if (response.ok) return Answer.parse(answer);
  const complaint = Complaint.safeParse(answer);
  throw complaint.success
    ? explained(complaint.data.code, complaint.data.detail)
    : new CliError("failure", `the server answers ${response.status}`);
}
