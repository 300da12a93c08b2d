/** What agents think with, what they may touch, and the protocols by which others reach them. */
import { z } from "zod";
import type { Section } from "../declare.js";
import { duration, type Kind, listOf, mapOf, path, text, truth } from "../kinds.js";

const Price = z.strictObject({
  input: z.number().nonnegative(),
  output: z.number().nonnegative(),
  cached_input: z.number().nonnegative().exactOptional(),
  cache_write: z.number().nonnegative().exactOptional(),
});

/** Per million tokens. The same words as `prices` in `agent_params`. */
const price: Kind<z.infer<typeof Price>> = {
  name: "a table with 'input' and 'output', and perhaps 'cached_input' and 'cache_write': numbers per million tokens",
  brief: "`input`, `output`, …",
  schema: Price,
  fromText: (given) => given,
  show: ({ input, output }) => `${input}/${output}`,
};

export function modelPrices(models: Section) {
  return models.setting("prices", {
    kind: mapOf(price),
    default: {},
    doc: 'What models cost per million tokens, by `llm`: `"openai/gpt-5" = { input = 1.25, output = 10 }`. Without a price no cost is counted.',
  });
}

export function actionSettings(actions: Section) {
  return {
    fileRoots: actions.setting("file_roots", {
      kind: listOf(path),
      default: [],
      doc: "Directories that the file actions may read and write. Without any they refuse every call.",
    }),
    allow: actions.setting("allow", {
      kind: listOf(text),
      default: [],
      doc: "Addresses that are not of the public internet and that actions may call all the same, as `10.0.0.0/8` or `loopback`.",
    }),
  };
}

export function mcpSettings(mcp: Section) {
  return {
    enabled: mcp.setting("enabled", { kind: truth, default: true, doc: "Whether there is MCP at `/mcp`." }),
  };
}

const A2aAgent = z.strictObject({
  url: z.url({ protocol: /^https?$/ }),
  token: z.string().min(1).exactOptional(),
});

/** Its token is a reference to the environment or a secret, so it is never shown. */
const a2aAgent: Kind<z.infer<typeof A2aAgent>> = {
  name: "a table with 'url' (where the agent card is found) and perhaps 'token'",
  brief: "`url`, `token`",
  schema: A2aAgent,
  fromText: (given) => ({ url: given }),
  show: ({ url }) => url,
};

export function a2aSettings(a2a: Section) {
  return {
    enabled: a2a.setting("enabled", {
      kind: truth,
      default: true,
      doc: "Whether the swarm is served as an A2A agent. Its card needs `server.public_url`, or `server.dev`.",
    }),
    agents: a2a.setting("agents", {
      kind: mapOf(a2aAgent),
      default: {},
      secret: true,
      // biome-ignore lint/suspicious/noTemplateCurlyInString: this is what stands in the file
      doc: 'A2A agents that the swarm may write to, by alias: `lab = { url = "https://lab.example.com", token = "${LAB_TOKEN}" }` is `name@lab`.',
    }),
    deliveryTimeout: a2a.setting("delivery_timeout", {
      kind: duration({ min: 1 }),
      default: 120_000,
      doc: "How long an A2A agent that cannot be reached is tried again before the sender is told.",
    }),
    allow: a2a.setting("allow", {
      kind: listOf(text),
      default: [],
      doc: "Addresses that are not of the public internet and where A2A agents may be all the same, as `10.0.0.0/8` or `loopback`.",
    }),
  };
}
