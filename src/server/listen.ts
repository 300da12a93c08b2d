/** Opens the listener, with errors that say what to do. */
import { MailroomError } from "../base/index.js";
import type { HttpListener } from "../http/index.js";

/** @throws MailroomError `port_in_use`, `port_refused` or `bad_host` */
export async function listenAt(http: HttpListener, host: string, port: number): Promise<string> {
  try {
    return await http.listen({ host, port });
  } catch (cause) {
    switch (cause instanceof Error && "code" in cause ? cause.code : undefined) {
      case "EADDRINUSE":
        throw new MailroomError("port_in_use", `port ${port} on ${host} is in use by another program`, {
          cause,
        });
      case "EACCES":
        throw new MailroomError("port_refused", `this user may not listen on port ${port}`, { cause });
      case "EADDRNOTAVAIL":
      case "ENOTFOUND":
        throw new MailroomError("bad_host", `'${host}' is not an address of this machine`, { cause });
      default:
        throw cause;
    }
  }
}
