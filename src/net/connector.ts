/** Opens sockets only to addresses that the guard has checked. */
import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import type { buildConnector } from "undici";
import { MailroomError, type Timers } from "../base/index.js";
import type { Guard, GuardRefusal } from "./guard.js";
import type { ConnectionTls } from "./tls.js";

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Resolves all addresses of a name. Tests pass their own; the default is the operating system's resolver. */
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
  readonly http2: boolean;
}

export function guardedConnector(
  build: typeof buildConnector,
  options: ConnectorOptions,
): buildConnector.connector {
  const { guard, tls, resolve, connectTimeLimit, clock, http2 } = options;
  return (request, callback) => {
    const scheme = request.protocol === "https:" ? "https:" : "http:";
    const host = request.hostname;
    const port = Number(request.port) || (scheme === "https:" ? 443 : 80);
    const refusalFor = (address: string): GuardRefusal | undefined =>
      guard.checkAddress(scheme, host, port, address);

    const connectTo = (addresses: readonly ResolvedAddress[]): void => {
      // The socket uses this instead of the resolver, so that no second lookup can differ.
      const connect = build({
        ...tls,
        timeout: connectTimeLimit,
        lookup: answering(addresses),
        allowH2: http2,
      });
      connect(request, callback);
    };

    // Sockets do not resolve literals, so a check in `lookup` alone would never see them.
    if (isIP(host) !== 0) {
      const refusal = refusalFor(host);
      if (refusal !== undefined) return callback(new MailroomError(refusal.code, refusal.message), null);
      return connectTo([]);
    }
    inTime(resolve(host), connectTimeLimit, clock).then(
      (addresses) => {
        const permitted = addresses.filter(({ address }) => refusalFor(address) === undefined);
        if (permitted.length > 0) return connectTo(permitted);
        const { code, message } = refusalFor(addresses[0]?.address ?? "") ?? {
          code: "blocked_address",
          message: `${host} has no address`,
        };
        callback(new MailroomError(code, message), null);
      },
      (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null),
    );
  };
}

/** Resolvers have their own limits, which may be much longer. */
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
        Object.assign(new Error(`${host} has no usable address`), { code: "ENOTFOUND" }),
        "",
        0,
      );
    }
    if (all) callback(null, [...fitting]);
    else callback(null, first.address, first.family);
  };
}
