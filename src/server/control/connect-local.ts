/** Finds a running server by its data directory. */
import { connect } from "node:net";
import { Agent, fetch as undiciFetch } from "undici";
import { MailroomError } from "../../base/index.js";
import { type FetchFunction, MailClient } from "../../client/index.js";
import { controlPath } from "./path.js";

/** A server that runs on this machine, spoken to through its control socket. */
export interface LocalServer {
  /** As local admin, or as the principal `as` (`role:id`). */
  client(as?: string): MailClient;
  readonly fetch: FetchFunction;
  close(): Promise<void>;
}

export async function isServerRunning(data: string): Promise<boolean> {
  const path = controlPath(data);
  return path !== undefined && (await answers(path));
}

/** Nothing if no server runs on this data directory. */
export async function reachLocalServer(data: string): Promise<LocalServer | undefined> {
  const path = controlPath(data);
  if (path === undefined || !(await answers(path))) return undefined;
  const agent = new Agent({ connect: { socketPath: path } });
  const fetch: FetchFunction = async (url, init) => {
    const { method, headers, body, signal } = init;
    const response = await undiciFetch(url, {
      ...(method !== undefined && { method }),
      headers: Object.fromEntries(new Headers(headers)),
      ...(typeof body === "string" && { body }),
      ...(signal && { signal }),
      dispatcher: agent,
    });
    // Rebuilt as the global class: undici's own is another one to the compiler and to `instanceof`.
    return new Response(response.body, {
      status: response.status,
      headers: Object.fromEntries(response.headers),
    });
  };
  return {
    client: (as) => new MailClient("http://localhost", { fetch, ...(as !== undefined && { token: as }) }),
    fetch,
    close: () => agent.destroy(),
  };
}

/** For commands that can do nothing without one. @param holder who has the data open without serving it */
export function noServerOn(data: string, holder?: string): MailroomError {
  const what =
    holder === undefined
      ? `no server runs on ${data}`
      : `no server answers on ${data}, which ${holder} has open`;
  return new MailroomError("no_server", what);
}

/** A socket that a dead server left behind refuses connections. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
