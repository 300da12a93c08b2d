/** From what people write to a client: URLs, `swarm://` links, tokens. */
import { MailClient, type MailClientOptions, parseSwarmUrl } from "../client/index.js";
import { CliError, EXIT } from "./exit.js";

export interface Address {
  readonly url: string;
  readonly token?: string;
}

/** @throws CliError when it leads nowhere */
export function parseAddress(text: string, token?: string): Address {
  try {
    if (text.startsWith("swarm:")) {
      const link = parseSwarmUrl(text);
      const chosen = token ?? link.token;
      return { url: link.url, ...(chosen !== undefined && { token: chosen }) };
    }
    // `127.0.0.1:8000` is what people type.
    const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
    return { url: new MailClient(url).url, ...(token !== undefined && { token }) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new CliError("usage", message, { exit: EXIT.usage, cause: error });
  }
}

export function clientFor(address: Address, options: Omit<MailClientOptions, "token"> = {}): MailClient {
  return new MailClient(address.url, {
    ...options,
    ...(address.token !== undefined && { token: address.token }),
  });
}

/** Ctrl-C ends a command in good order. A second one ends the process. */
export function interruptible(): { readonly signal: AbortSignal; readonly release: () => void } {
  const control = new AbortController();
  const onSignal = () => {
    process.removeListener("SIGINT", onSignal);
    control.abort(new CliError("interrupted", "interrupted", { exit: EXIT.interrupted }));
  };
  process.on("SIGINT", onSignal);
  return { signal: control.signal, release: () => void process.removeListener("SIGINT", onSignal) };
}
