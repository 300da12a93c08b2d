/** Parses URLs, `swarm://` links and tokens into a server address. */
import { MailroomError, messageOf } from "../base/index.js";
import { MailClient, type MailClientOptions, parseSwarmUrl } from "../client/index.js";

export interface ServerAddress {
  readonly url: string;
  readonly token?: string;
}

/**
 *
 * @throws MailroomError for an invalid address
 */
export function parseAddress(text: string, token?: string): ServerAddress {
  try {
    if (text.startsWith("swarm:")) {
      const link = parseSwarmUrl(text);
      const chosen = token ?? link.token;
      return { url: link.url, ...(chosen !== undefined && { token: chosen }) };
    }
    // Accepts `127.0.0.1:8000` without a scheme.
    const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
    return { url: new MailClient(url).url, ...(token !== undefined && { token }) };
  } catch (error) {
    const message = messageOf(error);
    throw new MailroomError("usage", message, { cause: error });
  }
}

export function clientFor(
  address: ServerAddress,
  options: Omit<MailClientOptions, "token"> = {},
): MailClient {
  return new MailClient(address.url, {
    ...options,
    ...(address.token !== undefined && { token: address.token }),
  });
}

/** Ctrl-C aborts the command cleanly. A second one ends the process. */
export function interruptible(): { readonly signal: AbortSignal; readonly release: () => void } {
  const control = new AbortController();
  const onSignal = () => {
    process.removeListener("SIGINT", onSignal);
    control.abort(new MailroomError("interrupted", "interrupted"));
  };
  process.on("SIGINT", onSignal);
  return { signal: control.signal, release: () => void process.removeListener("SIGINT", onSignal) };
}
