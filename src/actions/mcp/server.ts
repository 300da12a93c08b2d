/**
 * The connection to one MCP server: opened when first needed and reopened after a loss. A failure affects only the
 * current call.
 */

import type {
  Client,
  JsonSchemaValidatorResult,
  jsonSchemaValidator,
  Tool,
} from "@modelcontextprotocol/client";
import { MailroomError } from "../../base/index.js";
import { createFetch } from "../../net/index.js";
import { type OutboundOptions, outbound } from "../outbound.js";
import { boundedFetch } from "./bounded.js";
import { toMcpServerError } from "./errors.js";

/** An MCP server to connect to: a command (stdio) or a URL (streamable HTTP). */
export type McpServerOptions = McpStdioOptions | McpHttpOptions;

interface McpCommonOptions {
  /** Prefix of its tools' names: `<name>__<tool>`. */
  readonly name: string;
  /** Milliseconds that a call may take without reporting progress. Default: 60 seconds. */
  readonly timeLimit?: number;
  /** Receives problems that cost a tool and not the server. Default: `process.emitWarning`. */
  readonly warn?: (message: string) => void;
}

/** A server that runs as a child process. */
export interface McpStdioOptions extends McpCommonOptions {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to the few variables that every process needs. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** A server over streamable HTTP, behind the outbound guard. */
export interface McpHttpOptions extends McpCommonOptions, Pick<OutboundOptions, "client" | "allow"> {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Maximum bytes of one response or of one event of a stream. Default: 8 MiB. */
  readonly maxBytes?: number;
}

const DEFAULT_MCP_TIME_LIMIT = 60_000;

/** A call that reports progress may take this many times its limit. */
const WITH_PROGRESS = 10;
/** Results may contain images. */
const LARGEST_ANSWER = 8 * 1024 * 1024;

export interface McpCallOptions {
  readonly signal?: AbortSignal;
  /** Whether the call may be repeated on a new connection if the current one is lost. */
  readonly again?: boolean;
  /** Whether an error may contain the output of the server's process. Only the operator may see it. */
  readonly showOutput?: boolean;
}

export interface McpRequest {
  readonly signal?: AbortSignal;
  readonly timeout: number;
  readonly resetTimeoutOnProgress: true;
  readonly maxTotalTimeout: number;
  onprogress(): void;
}

/**
 * Results are not checked against the schemas of the server, which may be hostile: agents read them as text, and a check
 * would protect the server's author only.
 */
const UNCHECKED: jsonSchemaValidator = {
  getValidator<T>() {
    return (input: unknown): JsonSchemaValidatorResult<T> => ({
      valid: true,
      data: input as T,
      errorMessage: undefined,
    });
  },
};

export class McpConnection {
  readonly name: string;
  readonly timeLimit: number;
  /** Receives the tools when the server says that they have changed. */
  onTools: ((tools: readonly Tool[]) => void) | undefined;
  readonly #options: McpServerOptions;
  #client: Promise<Client> | undefined;
  #closed = false;
  /** The end of the process's standard error, for error messages. */
  #lastWords = "";

  constructor(options: McpServerOptions) {
    this.#options = options;
    this.name = options.name;
    this.timeLimit = options.timeLimit ?? DEFAULT_MCP_TIME_LIMIT;
  }

  /** Milliseconds for a call with progress. */
  get longestCall(): number {
    return this.timeLimit * WITH_PROGRESS;
  }

  warn(message: string): void {
    const text = `MCP server '${this.name}': ${message}`;
    if (this.#options.warn !== undefined) this.#options.warn(text);
    else process.emitWarning(text, { code: "MAILROOM_MCP_SERVER" });
  }

  /** Runs an operation with the connected client. @throws MailroomError */
  async use<T>(
    work: (client: Client, request: McpRequest) => Promise<T>,
    options: McpCallOptions = {},
  ): Promise<T> {
    const request: McpRequest = {
      timeout: this.timeLimit,
      resetTimeoutOnProgress: true,
      maxTotalTimeout: this.longestCall,
      // Servers report progress only to those who ask for it.
      onprogress: () => {},
      ...(options.signal !== undefined && { signal: options.signal }),
    };
    const client = this.#connected();
    try {
      return await work(await client, request);
    } catch (error) {
      options.signal?.throwIfAborted();
      // Drop a lost connection; keep it when only the call failed.
      const gone = this.#client !== client || isConnectionLoss(error);
      if (gone && this.#client === client) await this.#drop(client);
      if (gone && options.again === true && !this.#closed)
        return this.use(work, { ...options, again: false });
      throw toMcpServerError(error, this.name, options.showOutput === true ? this.#lastWords : "");
    }
  }

  /** Closes the connection and ends a child process. */
  async close(): Promise<void> {
    this.#closed = true;
    const client = this.#client;
    if (client !== undefined) await this.#drop(client);
  }

  #connected(): Promise<Client> {
    if (this.#closed) throw new MailroomError("mcp_server_closed", `MCP server '${this.name}' was closed`);
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
      {
        versionNegotiation: { mode: "auto", probe: { timeoutMs: Math.min(this.timeLimit, 10_000) } },
        jsonSchemaValidator: UNCHECKED,
        listChanged: {
          tools: {
            onChanged: (_error, tools) => {
              if (tools !== null) this.onTools?.(tools);
            },
          },
        },
      },
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
    // A stream of notifications may be idle without limit.
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
  throw new MailroomError("mcp_server_bad_address", `MCP server '${name}': '${url}' is not a URL`);
}

/** Expired sessions, broken sockets, ended processes. */
function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? String(error.code) : "";
  return (
    /CONNECTION_CLOSED|NOT_CONNECTED|EPIPE|ECONN|unreachable/i.test(code) ||
    /session not found|not connected|connection closed|write after end/i.test(error.message)
  );
}
