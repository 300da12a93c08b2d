/** The document about the server, for programs and for people. */
import { docsPage } from "../docs-page.js";
import type { Door } from "../door.js";
import { describeMounts } from "../mounts.js";
import { openApiDocument } from "../openapi.js";
import { describeRawRoutes } from "../raw-routes.js";
import { definePublicRoute, NOTHING, PUBLIC, type Route } from "../route.js";

export function docsRoutes(door: Door, others: readonly Route[]): Route[] {
  const json = definePublicRoute({
    ...NOTHING,
    id: "getOpenApi",
    method: "GET",
    path: "/openapi.json",
    tag: "server",
    summary: "This document",
    access: PUBLIC,
    answers: { 200: { description: "OpenAPI 3.1.", contentType: "application/json" } },
    handle: async () => ({ status: 200, body: document }),
  });
  const html = definePublicRoute({
    ...NOTHING,
    id: "getDocs",
    method: "GET",
    path: "/docs",
    tag: "server",
    summary: "This document, to be read by people",
    access: PUBLIC,
    answers: { 200: { description: "A page.", contentType: "text/html" } },
    handle: async () => ({
      status: 200,
      body: page.html,
      headers: {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": `default-src 'none'; style-src '${page.styleHash}'; frame-ancestors 'none'`,
      },
    }),
  });
  const { rawRoutes = [], mounts = [] } = door.options;
  const described = [...others, json, html, ...describeMounts(mounts), ...describeRawRoutes(rawRoutes)];
  const document = openApiDocument(described, {
    version: door.options.version,
    ...(door.options.publicUrl !== undefined && { url: door.options.publicUrl }),
  });
  const page = docsPage(document);
  return [json, html];
}
