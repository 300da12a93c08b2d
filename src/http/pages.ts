/** Serves the pages of extensions behind the listener's limits and headers. */
import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance } from "fastify";
import { type Page, PUBLIC, pathOf } from "../extension/index.js";
import type { RequestAuthenticator } from "./authentication.js";

export function installPages(
  app: FastifyInstance,
  callers: RequestAuthenticator,
  pages: readonly Page[],
): void {
  for (const page of pages) {
    const onRequest = async (request: Parameters<typeof callers.identify>[0]) => {
      await callers.identify(request, PUBLIC);
    };
    // Relative, as every address that a browser gets: the server may be below a path of a proxy.
    const inside = `${page.path.slice(page.path.lastIndexOf("/") + 1)}/`;
    app.get(page.path, { onRequest }, async (_request, reply) => reply.redirect(inside, 308));
    app.get(`${page.path}/*`, { onRequest }, async (request, reply) => {
      const { status, headers, body } = await page.handle({
        path: pathOf(request).slice(page.path.length + 1),
        headers: request.headers,
      });
      return reply
        .code(status)
        .headers(headers)
        .send(body === undefined ? undefined : Buffer.from(body.buffer, body.byteOffset, body.byteLength));
    });
  }
}

/** Sends people who open the server in a browser to its page. Programs get the server's description. */
export function redirectHome(app: FastifyInstance, pages: readonly Page[]): void {
  const home = pages.find((page) => page.home === true);
  if (home === undefined) return;
  const target = `${home.path.slice(1)}/`;
  app.addHook("onRequest", (request, reply, done) => {
    if (request.url === "/" && request.method === "GET" && isNavigation(request.headers)) {
      void reply.redirect(target, 302);
      return;
    }
    done();
  });
}

function isNavigation(headers: IncomingHttpHeaders): boolean {
  return headers["sec-fetch-mode"] === "navigate" && headers.accept?.includes("text/html") === true;
}
