import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { Timers } from "../base/index.js";
import { createHttpClient, type HttpClient, type HttpClientOptions } from "./client.js";
import { NetError, type NetErrorCode } from "./errors.js";
import { createFetch } from "./fetch.js";
import { createGuard } from "./guard.js";

const clock: Timers = {
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};
const local = createGuard({ allow: ["loopback"] });

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

function client(options: Partial<HttpClientOptions> = {}): HttpClient {
  const made = createHttpClient({ clock, guard: local, ...options });
  cleanups.push(() => made.close());
  return made;
}

async function serve(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server: Server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}`;
}

async function failure(promise: Promise<unknown>): Promise<NetError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof NetError)) throw new Error(`expected a NetError, got ${String(error)}`);
  return error;
}

describe("a request", () => {
  it("returns status, headers and body of any status", async () => {
    const origin = await serve((request, response) => {
      response.writeHead(418, { "x-method": request.method ?? "", "set-cookie": ["a=1", "b=2"] });
      request.pipe(response);
    });
    const answer = await client().request(`${origin}/tea`, { method: "POST", body: "héllo" });
    expect(answer).toMatchObject({ status: 418, url: `${origin}/tea` });
    expect(answer.headers).toMatchObject({ "x-method": "POST", "set-cookie": "a=1, b=2" });
    expect(answer.text()).toBe("héllo");
  });

  it.each([
    ["announced", (response: ServerResponse) => response.end("x".repeat(2_000))],
    [
      "streamed",
      (response: ServerResponse) => {
        response.write("x".repeat(900));
        setImmediate(() => response.end("x".repeat(900)));
      },
    ],
  ])("rejects a response that is too long (%s)", async (_, answer) => {
    const origin = await serve((_request, response) => answer(response));
    const error = await failure(client().request(origin, { maxBytes: 1_000 }));
    expect(error).toMatchObject({ code: "response_too_large", mayHaveArrived: true });
  });

  it("times out when the response does not start or does not end", async () => {
    let arrived = false;
    const origin = await serve((request, response) => {
      arrived = true;
      if (request.url === "/half") response.write("half");
    });
    for (const path of ["/never", "/half"]) {
      arrived = false;
      // On a busy machine the time can end before there is a connection.
      for (let timeLimit = 50; !arrived; timeLimit *= 2) {
        const error = await failure(client().request(origin + path, { timeLimit }));
        expect(error).toMatchObject({ code: "timed_out" });
        if (arrived) expect(error).toMatchObject({ mayHaveArrived: true });
      }
    }
  });

  /** Accepts connections and never responds. */
  async function silence(): Promise<string> {
    const sockets: Socket[] = [];
    const server = createTcpServer((socket) => sockets.push(socket.on("error", () => undefined)));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    cleanups.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it("times out, or stops with the caller's signal, while connecting", async () => {
    const url = `https://${await silence()}/`;
    const late = await failure(client({ connectTimeLimit: 600_000 }).request(url, { timeLimit: 50 }));
    expect(late).toMatchObject({ code: "timed_out", mayHaveArrived: false });
    const stopped = await failure(client().request(url, { signal: AbortSignal.timeout(50) }));
    expect(stopped).toMatchObject({ code: "aborted", mayHaveArrived: false });
  });

  it("times out while the resolver does not answer, by its own limit or the connection's", async () => {
    const resolve = () => new Promise<never>(() => undefined);
    const url = "https://silent.example/";
    expect(await failure(client({ resolve }).request(url, { timeLimit: 50 }))).toMatchObject({
      code: "timed_out",
      mayHaveArrived: false,
    });
    expect(await failure(client({ resolve, connectTimeLimit: 50 }).request(url))).toMatchObject({
      code: "unresolved_host",
      mayHaveArrived: false,
    });
  });

  it("that ended while all connections were busy is never sent", async () => {
    const asked: string[] = [];
    const origin = await serve((request, response) => {
      asked.push(request.url ?? "");
      if (request.url === "/held") response.write("one");
      else response.end();
    });
    const http = client({ connectionsPerOrigin: 1 });
    const held = await http.open(`${origin}/held`);
    const error = await failure(http.request(`${origin}/late`, { timeLimit: 50 }));
    expect(error).toMatchObject({ code: "timed_out", mayHaveArrived: false });
    const next = http.request(`${origin}/next`);
    held.close();
    expect((await next).status).toBe(200);
    expect(asked).toEqual(["/held", "/next"]);
  });

  it("stops with the caller's signal", async () => {
    const controller = new AbortController();
    const origin = await serve(() => controller.abort());
    expect((await failure(client().request(origin, { signal: controller.signal }))).code).toBe("aborted");
    const late = await failure(client().request(origin, { signal: AbortSignal.abort() }));
    expect(late).toMatchObject({ code: "aborted", mayHaveArrived: false });
  });

  it("reports that nothing was sent when there was no connection", async () => {
    const server = createTcpServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const error = await failure(client().request(`http://127.0.0.1:${port}/`));
    expect(error).toMatchObject({ code: "unreachable", mayHaveArrived: false });
  });

  it("reports an unknown result when the connection breaks", async () => {
    const origin = await serve((request) => request.socket.destroy());
    const error = await failure(client().request(origin, { method: "POST", body: "x" }));
    expect(error).toMatchObject({ code: "unreachable", mayHaveArrived: true });
  });

  it("reports a peer that does not speak HTTP", async () => {
    const server = createTcpServer((socket) => socket.write("220 mail ready\r\n\r\n"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    cleanups.push(() => server.close());
    const { port } = server.address() as AddressInfo;
    expect((await failure(client().request(`http://127.0.0.1:${port}/`))).code).toBe("bad_response");
  });

  it("keeps queries out of error messages", async () => {
    const error = await failure(client().request("http://example.com/a?token=secret"));
    expect(error.code).toBe("insecure_url");
    expect(`${error.message}${error.url}`).not.toContain("secret");
  });
});

describe("the guard at the socket", () => {
  it.each(["http://127.0.0.1:1/", "http://2130706433:1/", "http://[::1]:1/", "http://[::ffff:7f00:1]:1/"])(
    "rejects the literal %s",
    async (url) => {
      const error = await failure(client({ guard: createGuard() }).request(url));
      expect(error).toMatchObject({ code: "blocked_address", mayHaveArrived: false });
    },
  );

  it("checks literals at the socket too, where no name is resolved", async () => {
    // As if the URL check had been forgotten.
    const guard = { ...createGuard(), checkUrl: () => undefined };
    for (const url of ["http://127.0.0.1:1/", "http://[::1]:1/"]) {
      expect((await failure(client({ guard }).request(url))).code).toBe("blocked_address");
    }
  });

  it("rejects a name that resolves to this machine", async () => {
    const resolve = async () => [{ address: "127.0.0.1", family: 4 }];
    const error = await failure(
      client({ guard: createGuard(), resolve }).request("https://innocent.example/"),
    );
    expect(error.code).toBe("blocked_address");
    expect(error.message).toContain("innocent.example resolves to 127.0.0.1");
  });

  it("resolves once per connection, so that DNS rebinding gains nothing", async () => {
    let asked = 0;
    const resolve = async () => {
      asked += 1;
      return [{ address: "127.0.0.1", family: 4 }];
    };
    const origin = await serve((_request, response) => response.end("here"));
    const { port } = new URL(origin);
    const http = client({ guard: createGuard({ allow: ["rebind.example"] }), resolve });
    const answer = await http.request(`http://rebind.example:${port}/`);
    expect(answer.text()).toBe("here");
    expect(asked).toBe(1);
  });

  it("uses only the allowed addresses of a name", async () => {
    const origin = await serve((_request, response) => response.end("here"));
    const { port } = new URL(origin);
    const resolve = async () => [
      { address: "10.0.0.1", family: 4 },
      { address: "127.0.0.1", family: 4 },
    ];
    const answer = await client({ resolve }).request(`http://both.localhost:${port}/`);
    expect(answer.status).toBe(200);
  });

  it("does not reuse a permissive guard's connection for a strict guard", async () => {
    const origin = await serve((_request, response) => response.end());
    const http = client();
    await http.request(origin);
    expect((await failure(http.request(origin, { guard: createGuard() }))).code).toBe("blocked_address");
  });

  it("reports a name without an address", async () => {
    const resolve = () => Promise.reject(Object.assign(new Error("no such name"), { code: "ENOTFOUND" }));
    const error = await failure(client({ resolve }).request("https://nowhere.example/"));
    expect(error).toMatchObject({ code: "unresolved_host", mayHaveArrived: false });
  });
});

describe("redirects", () => {
  /** Echoes the request; /to?<url> redirects there with the status in the path. */
  const echo = (request: IncomingMessage, response: ServerResponse): void => {
    const url = new URL(request.url ?? "/", "http://x");
    const status = Number(url.pathname.slice(1));
    if (status >= 300) {
      response.writeHead(status, { location: decodeURIComponent(url.search.slice(1)) }).end();
      return;
    }
    response.end(JSON.stringify({ method: request.method, headers: request.headers }));
  };

  it("are returned as responses by default", async () => {
    const origin = await serve(echo);
    expect((await client().request(`${origin}/302?/200`)).status).toBe(302);
  });

  it("keep headers within an origin and turn a POST into a GET where RFC 9110 requires it", async () => {
    const origin = await serve(echo);
    const headers = { authorization: "Bearer s", "content-type": "text/plain" };
    const post = { method: "POST", body: "x", headers, maxRedirects: 3 };
    const seeOther = JSON.parse((await client().request(`${origin}/303?/200`, post)).text());
    expect(seeOther).toMatchObject({ method: "GET", headers: { authorization: "Bearer s" } });
    expect(seeOther.headers["content-type"]).toBeUndefined();
    const temporary = JSON.parse((await client().request(`${origin}/307?/200`, post)).text());
    expect(temporary).toMatchObject({ method: "POST", headers: { "content-type": "text/plain" } });
  });

  it("never send credentials to another origin, whatever the header's name", async () => {
    const there = await serve(echo);
    const here = await serve(echo);
    const answer = await client().request(`${here}/302?${encodeURIComponent(`${there}/200`)}`, {
      headers: { authorization: "Bearer s", cookie: "c=1", "x-wake-secret": "w", accept: "text/plain" },
      maxRedirects: 1,
    });
    const { headers } = JSON.parse(answer.text());
    expect(headers.accept).toBe("text/plain");
    for (const name of ["authorization", "cookie", "x-wake-secret"]) expect(headers[name]).toBeUndefined();
  });

  it.each<[string, string, NetErrorCode]>([
    ["a blocked address", "https://169.254.169.254/", "blocked_address"],
    ["a blocked name", "https://sneaky.example/", "blocked_address"],
    ["another scheme", "file:///etc/passwd", "invalid_url"],
    ["http elsewhere", "http://example.com/", "insecure_url"],
    ["not a URL", "https://", "invalid_url"],
  ])("are checked like any URL: %s", async (_, target, code) => {
    const origin = await serve(echo);
    const resolve = async () => [{ address: "192.168.0.1", family: 4 }];
    const url = `${origin}/302?${encodeURIComponent(target)}`;
    expect((await failure(client({ resolve }).request(url, { maxRedirects: 5 }))).code).toBe(code);
  });

  it("do not send a body to another origin", async () => {
    const there = await serve(echo);
    const here = await serve(echo);
    const url = `${here}/307?${encodeURIComponent(there)}`;
    const error = await failure(client().request(url, { method: "POST", body: "secret", maxRedirects: 5 }));
    expect(error.code).toBe("blocked_redirect");
  });

  it("are limited in number", async () => {
    const origin = await serve((_request, response) => response.writeHead(302, { location: "/" }).end());
    expect((await failure(client().request(origin, { maxRedirects: 3 }))).code).toBe("too_many_redirects");
  });
});

describe("streams", () => {
  it("deliver parts as they arrive, beyond the time limit of the head", async () => {
    let go = (): void => undefined;
    const origin = await serve((_request, response) => {
      response.write("one");
      go = () => response.end("two");
    });
    const stream = await client().open(origin, { timeLimit: 1_000 });
    const parts: string[] = [];
    for await (const part of stream.body) {
      parts.push(Buffer.from(part).toString());
      go();
    }
    expect(parts).toEqual(["one", "two"]);
  });

  it("fail with a NetError when the connection breaks", async () => {
    const origin = await serve((_request, response) => {
      response.write("one");
      setImmediate(() => response.destroy());
    });
    const stream = await client().open(origin);
    const read = async (): Promise<void> => {
      for await (const _ of stream.body);
    };
    expect((await failure(read())).code).toBe("unreachable");
  });
});

describe("fetch", () => {
  it("is the same client in the shape of fetch", async () => {
    const origin = await serve((request, response) => {
      if (request.url === "/empty") response.writeHead(204).end();
      else request.pipe(response);
    });
    const guarded = createFetch(client());
    expect(await (await guarded(origin, { method: "POST", body: "hello" })).text()).toBe("hello");
    expect((await guarded(`${origin}/empty`)).status).toBe(204);
    const strict = createFetch(client({ guard: createGuard() }));
    await expect(strict(origin)).rejects.toMatchObject({ code: "blocked_address" });
  });
});
