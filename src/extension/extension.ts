/**
 * The contract between the server and what it serves. A door or a carrier is one extension: a folder with a factory, and
 * one line in the server's list.
 */
import type { Authenticator, Tokens } from "../auth/index.js";
import type { Clock, Ids, ModuleSettings, Report, SettingValues } from "../base/index.js";
import type { Action, Carrier, DeliveryResult, OutgoingMail, Runtime } from "../engine/index.js";
import type { Bus } from "../journal/index.js";
import type { DefinitionInForce, Mailroom } from "../library/index.js";
import type { FullStore } from "../store/index.js";
import type { ControlOperation } from "./control.js";
import type { Logger } from "./logger.js";
import type { Mount } from "./mount.js";
import type { NameTable } from "./names.js";
import type { OutboxQueue } from "./outbox-queue.js";
import type { Page, RequestOrigin } from "./page.js";
import type { RawRoute, Route } from "./route.js";
import type { ExtensionHealth, ServerState } from "./server-state.js";
import type { Upgrade } from "./upgrade.js";

/** One line of the server's list. Read before anything is opened, so that flags and documents know its settings. */
export interface ExtensionFactory<S extends ModuleSettings = ModuleSettings> {
  /** Unique, kebab-case. Names the health check and the log field. */
  readonly name: string;
  readonly settings?: S;
  /**
   * Builds the extension, or returns nothing when its settings switch it off. May open files and read its tables. Must
   * not listen, send, start timers or touch tasks: nothing that it does here is visible outside the process.
   * @throws MailroomError `bad_config` or `name_taken`
   */
  create(context: CreateContext<SettingValues<S>>): Extension | undefined | Promise<Extension | undefined>;
}

/** A factory whose settings are known only where it was defined. The server passes it values of its own declarations. */
export interface AnyExtensionFactory {
  readonly name: string;
  readonly settings?: ModuleSettings;
  create(context: CreateContext<never>): Extension | undefined | Promise<Extension | undefined>;
}

/** What several extensions read. */
export interface ServerFacts {
  /** Mailroom's own version. */
  readonly version: string;
  /** Development mode: every `role:id` is accepted as a bearer token, and only this machine is served. */
  readonly dev: boolean;
  /** Where clients reach this server. Never guessed from the bind address (decision D10). */
  readonly publicUrl: string | undefined;
  /** Whether the main listener speaks TLS. */
  readonly tls: boolean;
  /** Rejects task ids that are not UUIDs (decision A3). */
  readonly strictIds: boolean;
  /** Lets admins answer and post for the owners of tasks (decision A6). */
  readonly adminsActForOwners: boolean;
  /** Milliseconds that a request waits for the end of its round, unless the caller asks for less. */
  readonly waitTimeout: number;
}

/** What an extension is built from. */
export interface CreateContext<Values = unknown> {
  readonly settings: Values;
  readonly server: ServerFacts;
  /** The name of the local swarm. */
  readonly swarm: string;
  /** Absent when everything is kept in memory. */
  readonly dataDirectory: string | undefined;
  readonly store: FullStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
  /** The environment, with the model keys and URLs of the settings in place of those of the process. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly authenticator: Authenticator;
  readonly tokens: Tokens;
  /** A key of 32 bytes for one purpose, from the secret of the data directory; the same after a restart. */
  readonly secret: (purpose: string) => Uint8Array;
  readonly names: NameTable;
  /** For failures that no caller waits for. Logged with the extension's name. */
  readonly report: Report;
}

/** What an extension gets when the runtime exists. */
export interface AttachContext {
  /** What the server reports about itself. */
  readonly state: ServerState;
  readonly definition: DefinitionInForce;
  readonly mailroom: Mailroom;
  readonly runtime: Runtime;
  readonly bus: Bus;
}

/** What the server loads: a carrier, routes, mounts, a lifecycle. Every part is optional. */
export interface Extension {
  /** Delivers mail to the names that this extension has claimed. */
  readonly carrier?: Carrier | DeliveryCarrier;
  /** What it delivers through the outbox. */
  readonly outbox?: OutboxQueue;
  /** Actions that swarm files can name: `mesh/mesh_send`. */
  readonly actions?: Readonly<Record<string, Action>>;
  /** What MAIL tools do that run like actions (`discover_swarms`). */
  readonly systemActions?: readonly Action[];
  /** Checked, described by OpenAPI, authenticated. Read after `attach`. */
  readonly routes?: readonly (Route | RawRoute)[];
  /** Protocols that write their own responses (MCP, A2A, files), behind the same authentication and limits. */
  readonly mounts?: readonly Mount[];
  /** Pages for browsers. */
  readonly pages?: readonly Page[];
  /** WebSocket upgrades, behind the same origin check and failure limits. */
  readonly upgrades?: readonly Upgrade[];
  /** Operations on the control socket, for local administrators. */
  readonly control?: readonly ControlOperation[];
  /** Advertised in `GET /`. */
  readonly capabilities?: readonly string[];
  /** Further fields of `GET /`. */
  readonly info?: Readonly<Record<string, unknown>>;
  /** A bearer for a request without `Authorization`. It is then treated as if it had come in that header. */
  credential?(request: RequestOrigin): LentCredential | undefined;
  /** The same for a WebSocket, whose proof comes with its first message. */
  credentialWith?(cookies: string | undefined, proof: string): string | undefined;
  /** The runtime exists and has not recovered: subscribe here. Nothing may leave the process. */
  attach?(context: AttachContext): void | Promise<void>;
  /** The main listener is open at `url` and tasks recover: deliver, poll, listen. */
  start?(at: { readonly url: string }): void | Promise<void>;
  /** Stop accepting, notify clients, finish what is running. The signal aborts at the deadline. */
  drain?(deadline: AbortSignal): void | Promise<void>;
  /** Release everything. Called once, also when another extension's `create`, `attach` or `start` failed. */
  close?(): void | Promise<void>;
  /** Read certificates again. A throw keeps the ones in use. */
  reload?(): void | Promise<void>;
  /** Facts for the operator, shown when the server has started: `{ mesh: { port: 8443 } }`. */
  facts?(): Readonly<Record<string, unknown>>;
  /** Cheap and synchronous: called by every `GET /health`. */
  health?(): ExtensionHealth;
}

/** A bearer that stands for a caller for some time. */
export interface LentCredential {
  readonly bearer: string;
  /** When open streams of the caller end, in milliseconds since the epoch. */
  readonly expires: number;
}

/** The simple form of a carrier: the server stores the mail in its outbox, retries, and settles it with the task. */
export interface DeliveryCarrier {
  owns(swarm: string): boolean;
  /**
   * Delivers one message. A throw is retried with backoff; a message may arrive twice after a crash, so pass on its id.
   */
  deliver(
    mail: OutgoingMail,
    attempt: { readonly number: number; readonly signal: AbortSignal },
  ): Promise<DeliveryResult>;
}

/**
 * Defines an extension, and infers the types of its settings. See `docs/extensions.md` for a complete one.
 * Infers the types of the settings.
 * @example
 * export const hello = defineExtension({
 *   name: "hello",
 *   create: () => ({ routes: [helloRoute] }),
 * });
 */
export function defineExtension<S extends ModuleSettings>(factory: ExtensionFactory<S>): ExtensionFactory<S> {
  return factory;
}
