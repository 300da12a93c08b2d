/** Pages for browsers on the server's listener: read without a credential, not part of the described interface. */
import type { IncomingHttpHeaders } from "node:http";

export interface PageRequest {
  /** Below the page's own path, without a leading slash or a query; as it was sent, not decoded. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

export interface PageResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

export interface Page {
  /** `/console`: it and everything below it, for GET and HEAD. Routes below it come first. */
  readonly path: string;
  /** Browsers that open `/` are sent to this page; programs get the server's description. */
  readonly home?: boolean;
  handle(request: PageRequest): Promise<PageResponse>;
}

/** The part of a request that tells where it comes from. */
export interface RequestOrigin {
  readonly headers: IncomingHttpHeaders;
  /** Host and port as the client sees them, behind trusted proxies too. */
  readonly host: string;
}
