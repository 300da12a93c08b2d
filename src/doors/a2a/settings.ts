/** Settings of the Agent2Agent protocol. */
import {
  boolean,
  defineSettings,
  duration,
  httpUrlKind,
  isTable,
  type Kind,
  list,
  type SettingValues,
  table,
  textKind,
} from "../../base/index.js";

export interface A2aAgent {
  readonly url: string;
  readonly token?: string;
}

/** The token is a secret or refers to the environment, so it is never shown. */
const agentKind: Kind<A2aAgent> = {
  name: "a table with 'url' (where the agent card is) and optionally 'token'",
  brief: "`url`, `token`",
  parse: (raw) => {
    const { url, token, ...unknown } = isTable(raw) ? raw : {};
    const [address, credential] = [httpUrlKind.parse(url), textKind.parse(token)];
    if (!("value" in address) || Object.keys(unknown).length > 0) return { problem: undefined };
    if (token === undefined) return { value: { url: address.value } };
    if (!("value" in credential)) return { problem: undefined };
    return { value: { url: address.value, token: credential.value } };
  },
  fromText: (url) => ({ url }),
  show: ({ url }) => url,
};

export const a2aSettings = defineSettings({
  enabled: boolean("a2a.enabled", {
    default: true,
    doc: "Serve the swarm as an A2A agent. Its card requires `server.public_url` or `server.dev`.",
  }),
  agents: table("a2a.agents", agentKind, {
    default: {},
    secret: true,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the file contains this text
    doc: 'A2A agents that the swarm may write to, by alias: `lab = { url = "https://lab.example.com", token = "${LAB_TOKEN}" }` is `name@lab`.',
  }),
  deliveryTimeout: duration("a2a.delivery_timeout", {
    min: 1,
    default: "2m",
    doc: "How long to retry an unreachable A2A agent before notifying the sender.",
  }),
  allow: list("a2a.allow", textKind, {
    default: [],
    doc: "Destinations outside the public internet where A2A agents may be, such as `10.0.0.0/8` or `loopback`.",
  }),
});

export type A2aSettings = SettingValues<typeof a2aSettings>;
