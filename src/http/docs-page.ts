/** The OpenAPI document as one page that loads nothing: no scripts, fonts or foreign hosts. */
import { hash } from "node:crypto";
import type { OpenApiDocument, Operation } from "./openapi.js";

export interface DocsPage {
  readonly html: string;
  /** For the page's content security policy. */
  readonly styleHash: string;
}

const STYLE = `
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
h1 small { font-weight: normal; opacity: .6; font-size: 1rem; }
nav ul { columns: 2; padding-left: 1.2rem; }
section { border-top: 1px solid var(--line); padding: .5rem 0 1rem; }
h3 { margin: .5rem 0; } code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
.method { display: inline-block; min-width: 3.2rem; font-weight: 700; }
.roles { float: right; opacity: .7; font-size: .9rem; }
table { border-collapse: collapse; width: 100%; } td, th { border: 1px solid var(--line); padding: .3rem .6rem;
  text-align: left; vertical-align: top; }
pre { overflow-x: auto; background: color-mix(in srgb, currentColor 6%, transparent); padding: .8rem; border-radius: .4rem; }
details > summary { cursor: pointer; } p.pre { white-space: pre-line; margin: 0; }
`;

export function docsPage(document: OpenApiDocument): DocsPage {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const byTag = document.tags.map((tag) => ({
    tag,
    operations: operations.filter(({ operation }) => operation.tags.includes(tag.name)),
  }));
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(document.info.title)}: HTTP</title><style>${STYLE}</style></head><body>
<h1>${escapeHtml(document.info.title)} <small>MAIL ${escapeHtml(document.info.version)}</small></h1>
<p>Machine-readable: <a href="openapi.json">openapi.json</a>. Send <code>Authorization: Bearer &lt;token&gt;</code>; every
refusal is <code>{"detail": …, "code": …}</code>.</p>
<nav>${byTag
    .map(
      ({ tag, operations: own }) =>
        `<h2>${escapeHtml(tag.name)}</h2><p>${escapeHtml(tag.description)}</p><ul>${own
          .map(
            ({ path, method, operation }) =>
              `<li><a href="#${escapeHtml(operation.operationId)}"><code>${method} ${escapeHtml(path)}</code></a></li>`,
          )
          .join("")}</ul>`,
    )
    .join("")}</nav>
${operations.map((entry) => section(entry)).join("\n")}
<h2>Schemas</h2>
${Object.entries(document.components.schemas)
  .map(
    ([name, schema]) =>
      `<section id="schema-${escapeHtml(name)}"><details><summary><code>${escapeHtml(name)}</code></summary>${json(schema)}</details></section>`,
  )
  .join("\n")}
</body></html>
`;
  return { html, styleHash: `sha256-${hash("sha256", STYLE, "base64")}` };
}

function section(entry: { path: string; method: string; operation: Operation }): string {
  const { path, method, operation } = entry;
  const roles = operation["x-roles"]?.join(", ") ?? "anyone";
  const proofs = Object.keys(operation.security[0] ?? {}).filter((scheme) => scheme !== "bearer");
  return `<section id="${escapeHtml(operation.operationId)}">
<span class="roles">${escapeHtml([roles, ...proofs].join(" + "))}</span>
<h3><span class="method">${method}</span> <code>${escapeHtml(path)}</code></h3>
<p>${escapeHtml(operation.summary)}.${operation.description === undefined ? "" : ` ${escapeHtml(operation.description)}`}</p>
${protocol(operation)}${parameters(operation)}${body(operation)}
<table><tr><th>Status</th><th>Meaning</th></tr>${Object.entries(operation.responses)
    .map(
      ([status, response]) =>
        `<tr><td>${escapeHtml(status)}</td><td><p class="pre">${escapeHtml(response.description.replaceAll("\n\n", "\n"))}</p>${schemaLinks(response.content)}</td></tr>`,
    )
    .join("")}</table>
</section>`;
}

function protocol({ externalDocs: docs }: Operation): string {
  if (docs === undefined) return "";
  return `<p>Protocol: <a href="${escapeHtml(docs.url)}">${escapeHtml(docs.description)}</a></p>`;
}

function parameters({ parameters: list = [] }: Operation): string {
  if (list.length === 0) return "";
  return `<table><tr><th>Parameter</th><th>In</th><th></th></tr>${list
    .map(
      (parameter) =>
        `<tr><td><code>${escapeHtml(parameter.name)}</code>${parameter.required ? " *" : ""}</td><td>${parameter.in}</td><td>${escapeHtml(parameter.description ?? "")}</td></tr>`,
    )
    .join("")}</table>`;
}

function body({ requestBody }: Operation): string {
  return requestBody === undefined ? "" : `<p>Body: ${schemaLinks(requestBody.content)}</p>`;
}

function schemaLinks(content: Operation["responses"][string]["content"] = {}): string {
  return Object.entries(content)
    .map(([type, { schema }]) => {
      const names = [...JSON.stringify(schema ?? {}).matchAll(/#\/components\/schemas\/(\w+)/g)].map(
        (match) => match[1],
      );
      const links = names.map(
        (name) => `<a href="#schema-${escapeHtml(name ?? "")}">${escapeHtml(name ?? "")}</a>`,
      );
      return `<code>${escapeHtml(type)}</code> ${links.join(", ")}`;
    })
    .join("; ");
}

function json(value: unknown): string {
  return `<pre>${escapeHtml(JSON.stringify(value, null, 2))}</pre>`;
}

function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
