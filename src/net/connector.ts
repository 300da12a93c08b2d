/** Opens sockets to addresses that the guard has judged, and to no others. */
import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { buildConnector } from "undici";
import type { Timers } from "./call.js";
import type { Guard, Refusal } from "./guard.js";
import type { ConnectionTls } from "./tls.js";

/** The guard's word, on its way through the socket's error path. */
export class RefusedConnection extends Error {
  override readonly name = "RefusedConnection";
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Every address of a name. Handed in by tests; otherwise the operating system's resolver. */
export type Resolve = (host: string) => Promise<readonly ResolvedAddress[]>;

export const systemResolve: Resolve = (host) =>
  new Promise((resolve, reject) => {
    systemLookup(host, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)));
  });

export interface ConnectorOptions {
  readonly guard: Guard;
  readonly tls: ConnectionTls;
  readonly resolve: Resolve;
  readonly connectTimeLimit: number;
  readonly clock: Timers;
}

export function guardedConnector(options: ConnectorOptions): buildConnector.connector {
  const { guard, tls, resolve, connectTimeLimit, clock } = options;
  return (request, callback) => {
    const scheme = request.protocol === "https:" ? "https:" : "http:";
    const host = request.hostname;
    const port = Number(request.port) || (scheme === "https:" ? 443 : 80);
    const judge = (address: string): Refusal | undefined => guard.checkAddress(scheme, host, port, address);

    const connectTo = (addresses: readonly ResolvedAddress[]): void => {
      // The socket asks this instead of the resolver, so there is no second answer that could differ.
      const connect = buildConnector({ ...tls, timeout: connectTimeLimit, lookup: answering(addresses) });
      connect(request, callback);
    };

    // Sockets do not look literals up, so a check in `lookup` alone would never see them.
    if (isIP(host) !== 0) {
      const refusal = judge(host);
      if (refusal !== undefined) return callback(new RefusedConnection(refusal), null);
      return connectTo([]);
    }
    inTime(resolve(host), connectTimeLimit, clock).then(
      (addresses) => {
        const permitted = addresses.filter(({ address }) => judge(address) === undefined);
        if (permitted.length > 0) return connectTo(permitted);
        const refusal = judge(addresses[0]?.address ?? "");
        callback(
          new RefusedConnection(refusal ?? { code: "blocked_address", message: `${host} has no address` }),
          null,
        );
      },
      (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null),
    );
  };
}

/** Resolvers have limits of their own, which may be much longer. */
function inTime<T>(pending: Promise<T>, limit: number, clock: Timers): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(limit, () =>
      reject(
        Object.assign(new Error(`the resolver did not answer within ${limit} ms`), { code: "EAI_AGAIN" }),
      ),
    );
    pending.then(resolve, reject).finally(cancel);
  });
}

function answering(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (host, { all, family }, callback) => {
    const fitting = addresses.filter((one) => family === undefined || family === 0 || one.family === family);
    const first = fitting[0];
    if (first === undefined) {
      return callback(
        Object.assign(new Error(`${host} has no fitting address`), { code: "ENOTFOUND" }),
        "",
        0,
      );
    }
    if (all) callback(null, [...fitting]);
    else callback(null, first.address, first.family);
  };
}
