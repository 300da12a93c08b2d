/**
 * Registers two swarms in a registry that is kept in a file. Run by fsync.test.ts under strace.
 *
 *   node --import tsx test/fsync/registrar.ts <registry file>
 */

import { systemClock } from "../../src/base/index.js";
import { systemIds } from "../../src/base/node.js";
import { Federation } from "../../src/federation/index.js";
import { openStore } from "../../src/store/index.js";

const [registryFile = ""] = process.argv.slice(2);
const store = await openStore({ path: ":memory:" });
const federation = await Federation.open({
  store,
  clock: systemClock,
  ids: systemIds,
  swarm: "alpha",
  registryFile,
  report: ({ message }) => {
    throw new Error(message);
  },
});
for (const name of ["beta", "gamma"]) {
  await federation.registry.register({ name, baseUrl: `https://${name}.invalid`, volatile: false });
}
await federation.close();
await store.close();
