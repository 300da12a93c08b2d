/**
 * A MAP server in a process of its own, to be killed.
 *
 *   node child.js <data directory>
 *
 * It opens nothing before it gets a byte on its standard input, so that the next one can be loaded while the last still
 * lives; then it says its port.
 */
import { readSync } from "node:fs";
import { createServer } from "node:http";
import { attachMap, MapServer } from "../../src/conversations/index.js";
import { systemClock, systemIds } from "../../src/library/clock.js";
import { openStore } from "../../src/store/index.js";

const [directory = ""] = process.argv.slice(2);
readSync(0, Buffer.alloc(1));
const store = await openStore({ directory });
const map = await MapServer.open({
  store,
  index: store.conversations,
  clock: systemClock,
  ids: systemIds,
  dev: true,
  report: (error) => process.stderr.write(`${String(error)}\n`),
});
const http = createServer();
attachMap(http, map);
http.listen(0, "127.0.0.1", () => {
  const address = http.address();
  if (typeof address === "object" && address !== null) process.stdout.write(`${address.port}\n`);
});
