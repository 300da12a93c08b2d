/** JSON-RPC 2.0 envelopes: from text to a request or a precise error, and back (map-mail 1.2). */
import { MapError, type WireError } from "../domain/errors.js";

/** Given back as it came, type and all. */
export type RequestId = string | number | null;

export type Incoming =
  | {
      readonly kind: "request";
      readonly id: RequestId;
      readonly method: string;
      readonly params: Readonly<Record<string, unknown>> | undefined;
    }
  | {
      readonly kind: "notification";
      readonly method: string;
      readonly params: Readonly<Record<string, unknown>> | undefined;
    }
  /** We never ask, so an answer is for nobody. */
  | { readonly kind: "response" }
  | { readonly kind: "invalid"; readonly id: RequestId; readonly error: MapError };

function invalid(error: MapError, id: RequestId = null): Incoming {
  return { kind: "invalid", id, error };
}

export function parseFrame(text: string): Incoming {
  let frame: unknown;
  try {
    frame = JSON.parse(text);
  } catch {
    return invalid(new MapError("PARSE_ERROR"));
  }
  if (Array.isArray(frame)) return invalid(new MapError("INVALID_REQUEST", "batches are not supported"));
  if (!isRecord(frame)) return invalid(new MapError("INVALID_REQUEST", "a frame is one JSON object"));
  const { id, method, params } = frame;
  const known = typeof id === "string" || typeof id === "number" || id === null ? id : null;
  if (frame.jsonrpc !== "2.0") {
    return invalid(new MapError("INVALID_REQUEST", 'the field jsonrpc must be "2.0"'), known);
  }
  if (method === undefined && (Object.hasOwn(frame, "result") || Object.hasOwn(frame, "error"))) {
    return { kind: "response" };
  }
  if (typeof method !== "string") {
    return invalid(new MapError("INVALID_REQUEST", "method must be a string"), known);
  }
  if (id !== undefined && known !== id) {
    return invalid(new MapError("INVALID_REQUEST", "id must be a string, a number or null"));
  }
  if (params !== undefined && !isRecord(params)) {
    if (id === undefined) return { kind: "notification", method, params: undefined };
    return invalid(new MapError("INVALID_PARAMS", "params must be an object"), known);
  }
  return id === undefined
    ? { kind: "notification", method, params }
    : { kind: "request", id: known, method, params };
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function resultFrame(id: RequestId, result: object): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${JSON.stringify(result)}}`;
}

export function errorFrame(id: RequestId, error: WireError): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":${JSON.stringify(error)}}`;
}

export function notificationFrame(method: string, params: object): string {
  return `{"jsonrpc":"2.0","method":"${method}","params":${JSON.stringify(params)}}`;
}
