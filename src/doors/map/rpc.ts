/** JSON-RPC 2.0 envelopes: from text to a request or a precise error, and back (REF-25). */
import { encodeJson, exceedsDepth, isRecord, JsonDepthError, MAX_JSON_DEPTH } from "../../base/index.js";
import { MapError, type WireError } from "../../conversations/index.js";

/** Returned unchanged, including its type. */
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
  /** The server sends no requests, so it ignores responses. */
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
  if (!isRecord(frame)) return invalid(new MapError("INVALID_REQUEST", "a frame must be a JSON object"));
  const { id, method, params } = frame;
  const known = typeof id === "string" || isExact(id) || id === null ? id : null;
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
    return invalid(
      new MapError("INVALID_REQUEST", "id must be a string, a number that JavaScript holds exactly, or null"),
    );
  }
  // Each level takes at least two characters, so short texts need no check.
  if (text.length > 2 * MAX_JSON_DEPTH && exceedsDepth(frame, MAX_JSON_DEPTH)) {
    const { message } = new JsonDepthError();
    return invalid(
      new MapError("INVALID_PARAMS", `the frame is ${message}`, {
        reason: "too_deep",
        limit: MAX_JSON_DEPTH,
      }),
      known,
    );
  }
  if (params !== undefined && !isRecord(params)) {
    if (id === undefined) return { kind: "notification", method, params: undefined };
    return invalid(new MapError("INVALID_PARAMS", "params must be an object"), known);
  }
  return id === undefined
    ? { kind: "notification", method, params }
    : { kind: "request", id: known, method, params };
}

/** Whether the number goes back as it came: 2^53 + 1 and 1e400 would not. */
function isExact(id: unknown): id is number {
  return typeof id === "number" && Number.isFinite(id) && (!Number.isInteger(id) || Number.isSafeInteger(id));
}

export function resultFrame(id: RequestId, result: object): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${encodeJson(result)}}`;
}

export function errorFrame(id: RequestId, error: WireError): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":${JSON.stringify(error)}}`;
}

export function notificationFrame(method: string, params: object): string {
  return `{"jsonrpc":"2.0","method":"${method}","params":${encodeJson(params)}}`;
}
