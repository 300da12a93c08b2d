/** The mesh agent of a server: actions, carrier, operator routes, control operations and the TLS listener. */
import { MailroomError } from "../../base/index.js";
import { type CreateContext, defineExtension } from "../../extension/index.js";
import { type MeshSettings, meshIdentity, meshSettings } from "../../mesh/index.js";
import { meshAdminRoutes } from "./admin-routes.js";
import { meshControl } from "./control.js";
import { meshRoutes } from "./routes.js";
import { MeshActions, ServedMesh } from "./served-mesh.js";

export const mesh = defineExtension({
  name: "mesh",
  settings: meshSettings,
  async create(context) {
    const { settings, clock, store, dataDirectory } = context;
    const actions = new MeshActions(clock, settings.github.token);
    const served = await openMesh(context);
    const shared = { actions: actions.byReference };
    if (served === undefined || dataDirectory === undefined) {
      return { ...shared, control: [meshControl(undefined)], close: () => actions.close() };
    }
    actions.use(served.agent);
    const parts = { agent: served.agent, reads: store.mesh, directory: dataDirectory };
    let start = async () => {};
    return {
      ...shared,
      carrier: served.carrier,
      outbox: served.agent.outbox,
      routes: [...meshRoutes(served), ...meshAdminRoutes(parts)],
      control: [meshControl(parts)],
      attach({ runtime }) {
        start = () => served.start(runtime);
      },
      start: () => start(),
      facts: () => ({ mesh: served.facts }),
      reload: () => served.renew(),
      drain: () => served.stop(),
      async close() {
        await served.close();
        await actions.close();
      },
    };
  },
});

/** A data directory in which `mesh init` was run belongs to a mesh agent. */
async function openMesh(context: CreateContext<MeshSettings>): Promise<ServedMesh | undefined> {
  const { settings, dataDirectory, store, clock, ids, report, names } = context;
  const identity = dataDirectory === undefined ? undefined : meshIdentity(dataDirectory);
  if (dataDirectory === undefined || identity === undefined) {
    if (settings.listen === undefined) return undefined;
    throw new MailroomError(
      "not_initialized",
      "mesh.listen is set, but this data directory has no mesh agent: run 'mailroom mesh init' first",
    );
  }
  const isNameTaken = (name: string) => names.isTaken(name);
  return ServedMesh.open(
    { settings, directory: dataDirectory, store, clock, ids, report, isNameTaken },
    identity,
  );
}
