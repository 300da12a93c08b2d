/** MAP beside a mailroom: conversations in the same store, tasks as conversations, remote agents. */
import { ConnectionError, modelQuestioner } from "../../agents/model/index.js";
import type { Authenticator } from "../../auth/index.js";
import type { Settings } from "../../config/index.js";
import { MapServer, modelSummariser, type Summariser } from "../../conversations/index.js";
import { systemClock, systemIds } from "../../library/clock.js";
import type { Mailroom } from "../../library/mailroom.js";
import type { FullStore } from "../../store/index.js";
import { CliError } from "../exit.js";
import { versions } from "../version.js";
import { modelEnvironment } from "./swarm.js";

export interface MapParts {
  readonly mailroom: Mailroom;
  readonly store: FullStore;
  readonly authenticator: Authenticator;
  readonly report: (error: unknown) => void;
}

/** Nothing if it is switched off. */
export async function openMap(
  settings: Pick<Settings, "map" | "server" | "models">,
  { mailroom, store, authenticator, report }: MapParts,
): Promise<MapServer | undefined> {
  const { map, server } = settings;
  if (!map.enabled) return undefined;
  const summariser = map.mail ? summariserOf(settings, report) : undefined;
  return MapServer.open({
    store,
    index: store.conversations,
    clock: systemClock,
    ids: systemIds,
    authenticator,
    // In development nobody needs a credential; who shows none is whoever the authenticator takes them for.
    authRequired: !server.dev,
    dev: server.dev,
    isolate: map.isolate,
    runtime: mailroom.runtime,
    systemInfo: { name: "mailroom", version: versions().mailroom },
    report,
    mail: map.mail && (summariser === undefined ? {} : { summariser }),
  });
}

/**
 * The model that is configured; nothing if none is.
 * @throws CliError when the name leads to no model
 */
function summariserOf(
  { map, models }: Pick<Settings, "map" | "models">,
  report: (error: unknown) => void,
): Summariser | undefined {
  const { summaryModel: name, summaryTimeout: timeLimit } = map;
  if (name === undefined) return undefined;
  try {
    const model = modelQuestioner({ llm: name, timeLimit }, { env: modelEnvironment(models) });
    if (model.missing !== undefined) report(new Error(`map.summary_model: ${model.missing}`));
    return modelSummariser({ name, report, ask: (question, signal) => model.ask(question, signal) });
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error;
    throw new CliError("bad_config", `map.summary_model: ${error.message}`, { cause: error });
  }
}
