/** MAP at `/map`, on the listener and on the control socket. */
import { defineSettings, hasCode, MailroomError, type SettingValues } from "../../base/index.js";
import { conversationSettings, modelSummarizer, type Summarizer } from "../../conversations/index.js";
import {
  AnswersForOthers,
  type CreateContext,
  defineExtension,
  type Upgrade,
} from "../../extension/index.js";
import { capabilitiesOf, mapSettings } from "./settings.js";

const settings = defineSettings({
  map: mapSettings.declarations,
  conversations: conversationSettings.declarations,
});
type Values = SettingValues<typeof settings>;

export const map = defineExtension({
  name: "map",
  settings,
  async create(context) {
    const { server, store, clock, ids, authenticator, report } = context;
    const { map: own, conversations } = context.settings;
    if (!own.enabled) return undefined;
    const { MapServer, mapUpgrade } = await import("./index.js");
    const summarizer = own.mail ? await createSummarizer(context) : undefined;
    const upgrades: Upgrade[] = [];
    let close = async () => {};
    return {
      upgrades,
      async attach({ mailroom, runtime }) {
        const opened = await MapServer.open({
          store,
          index: store.conversations,
          clock,
          ids,
          authenticator,
          // In development mode a client without a credential is the authenticator's default caller.
          authRequired: !server.dev,
          dev: server.dev,
          isolate: own.isolate,
          runtime,
          answers: new AnswersForOthers(mailroom, server),
          systemInfo: { name: "mailroom", version: server.version },
          report: (cause) => report({ code: "internal_error", message: String(cause), cause }),
          limits: own.limits,
          mail: own.mail && {
            rules: conversations,
            capabilities: capabilitiesOf(own.capabilities),
            ...(summarizer !== undefined && { summarizer }),
          },
        });
        const upgrade = mapUpgrade(opened);
        upgrades.push(upgrade);
        close = async () => {
          await opened.close();
          upgrade.close();
        };
      },
      drain: () => close(),
    };
  },
});

/** @throws MailroomError `bad_config` if the name of the summary model does not resolve to a model */
async function createSummarizer(context: CreateContext<Values>): Promise<Summarizer | undefined> {
  const { settings, env, report } = context;
  const { summaryModel: name, summaryTimeout: timeLimit } = settings.map;
  if (name === undefined) return undefined;
  const { oneShotModel } = await import("../../agents/index.js");
  try {
    const model = oneShotModel({ llm: name, timeLimit }, { env });
    if (model.missing !== undefined) {
      report({ code: "no_credentials", message: `map.summary_model: ${model.missing}` });
    }
    return modelSummarizer({
      name,
      report: (cause) => report({ code: "model_failed", message: String(cause), cause }),
      ask: (question, signal) => model.ask(question, signal),
    });
  } catch (error) {
    if (!hasCode(error, "bad_model")) throw error;
    throw new MailroomError("bad_config", `map.summary_model: ${error.message}`, { cause: error });
  }
}
