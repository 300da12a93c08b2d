/**
 * One MCP server as a user of it: connected when first needed, connected again after it went away. What goes wrong is
 * an error of the call that met it, never of the swarm.
 */
import type { Client } from "@modelcontextprotocol/client";
import { createFetch } from "../../net/index.js";
import { type OutboundOptions, outbound } from "../outbound.js";
import { boundedFetch } from "./bounded.js";
import { McpServerError } from "./errors.js";

export type McpServerOptions = McpStdioOptions | McpHttpOptions;

interface McpCommonOptions {
  /** What its tools' names begin with: `<name>__<tool>`. */
  readonly name: string;
  /** Milliseconds for one call. Default: 60 seconds. */
  readonly timeLimit?: number;
}

/** A server that runs as a process of ours. */
export interface McpStdioOptions extends McpCommonOptions {
  readonly command: string;
  readonly args?: readonly string[];
  /** In addition to the few variables that every process needs. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** A server that is reached over streamable HTTP, behind the outbound guard. */
export interface McpHttpOptions extends McpCommonOptions, Pick<OutboundOptions, "client" | "allow"> {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes of one answer, or of one event of a stream. Default: 8 MiB. */
  readonly maxBytes?: number;
}

export const DEFAULT_MCP_TIME_LIMIT = 60_000;
/** Results may hold pictures. */
const LARGEST_ANSWER = 8 * 1024 * 1024;

export interface McpCallOptions {
  readonly signal?: AbortSignal;
  /** May be asked a second time on a fresh connection if the first one turns out to be gone. */
  readonly again?: boolean;
}

export class McpConnection {
  readonly name: string;
  readonly timeLimit: number;
  readonly #options: McpServerOptions;
  #client: Promise<Client> | undefined;
  #closed = false;
  /** The end of what the process wrote to its standard error, for messages about its failure. */
  #lastWords = "";

  constructor(options: McpServerOptions) {
    this.#options = options;
    this.name = options.name;
    this.timeLimit = options.timeLimit ?? DEFAULT_MCP_TIME_LIMIT;
  }

  /** Does something with the connected client. @throws McpServerError */
  async use<T>(
    work: (
      client: Client,
      request: { readonly signal?: AbortSignal; readonly timeout: number },
    ) => Promise<T>,
    options: McpCallOptions = {},
  ): Promise<T> {
    const request = {
      timeout: this.timeLimit,
      ...(options.signal !== undefined && { signal: options.signal }),
    };
    const client = this.#connected();
    try {
      return await work(await client, request);
    } catch (error) {
      options.signal?.throwIfAborted();
      // Somebody who sees that the connection is gone forgets it; a failure of the call itself leaves it alone.
      const gone = this.#client !== client || isConnectionLoss(error);
      if (gone && this.#client === client) await this.#drop(client);
      if (gone && options.again === true && !this.#closed)
        return this.use(work, { ...options, again: false });
      throw McpServerError.from(error, this.name, this.#lastWords);
    }
  }

  /** Lets the server go; a process of ours ends. */
  async close(): Promise<void> {
    this.#closed = true;
    const client = this.#client;
    if (client !== undefined) await this.#drop(client);
  }

  #connected(): Promise<Client> {
    if (this.#closed) throw new McpServerError("closed", `MCP server '${this.name}' was closed`);
    if (this.#client === undefined) {
      const connecting = this.#connect(() => {
        if (this.#client === connecting) this.#client = undefined;
      });
      connecting.catch(() => {
        if (this.#client === connecting) this.#client = undefined;
      });
      this.#client = connecting;
    }
    return this.#client;
  }

  async #connect(onClose: () => void): Promise<Client> {
    const { Client } = await import("@modelcontextprotocol/client");
    const client = new Client(
      { name: "mailroom", version: "1" },
      { versionNegotiation: { mode: "auto", probe: { timeoutMs: Math.min(this.timeLimit, 10_000) } } },
    );
    client.onclose = onClose;
    const transport = await this.#transport();
    try {
      await client.connect(transport, { timeout: this.timeLimit });
    } catch (error) {
      await client.close().catch(() => {});
      throw error;
    }
    return client;
  }

  async #transport() {
    const options = this.#options;
    if ("command" in options) {
      const { StdioClientTransport, getDefaultEnvironment } = await import(
        "@modelcontextprotocol/client/stdio"
      );
      const transport = new StdioClientTransport({
        command: options.command,
        args: [...(options.args ?? [])],
        env: { ...getDefaultEnvironment(), ...options.env },
        stderr: "pipe",
        ...(options.cwd !== undefined && { cwd: options.cwd }),
      });
      this.#lastWords = "";
      transport.stderr?.on("data", (chunk: unknown) => {
        this.#lastWords = (this.#lastWords + String(chunk)).slice(-500);
      });
      return transport;
    }
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
    const { client } = outbound(options);
    // A stream of notifications may be silent for as long as it likes.
    const send = createFetch(client, { timeLimit: this.timeLimit, idleLimit: 0 });
    return new StreamableHTTPClientTransport(urlOf(options.url, this.name), {
      fetch: boundedFetch(send, options.maxBytes ?? LARGEST_ANSWER),
      requestInit: { headers: { ...options.headers } },
    });
  }

  async #drop(client: Promise<Client>): Promise<void> {
    if (this.#client === client) this.#client = undefined;
    await client.then((connected) => connected.close()).catch(() => {});
  }
}

function urlOf(url: string, name: string): URL {
  if (URL.canParse(url)) return new URL(url);
  throw new McpServerError("bad_address", `MCP server '${name}': '${url}' is not a URL`);
}

/** Sessions that the server no longer knows, sockets that broke, processes that ended. */
function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? String(error.code) : "";
  return (
    /CONNECTION_CLOSED|NOT_CONNECTED|EPIPE|ECONN|unreachable/i.test(code) ||
    /session not found|not connected|connection closed|write after end/i.test(error.message)
  );
}
